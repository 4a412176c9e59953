use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body_util::Full;
use tokio::time::Sleep;

use super::*;

// [PROXY-10]
#[test]
fn escapes_are_decoded_and_what_is_none_stays() {
    assert_eq!(percent_decoded("meta-llama%2FLlama-3.3"), "meta-llama/Llama-3.3");
    assert_eq!(percent_decoded("a%2"), "a%2");
    assert_eq!(percent_decoded("%+f%zz%"), "%+f%zz%");
    assert_eq!(percent_decoded("%e5%a5%bd"), "好");
}

fn request(target: &str, header: Option<&'static str>, body: &'static str) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from(body));
    *request.uri_mut() = target.parse().unwrap();
    if let Some(model) = header {
        let value = http::HeaderValue::from_static(model);
        request.headers_mut().insert("x-lb-model", value);
    }
    request
}

const RULES: Rules = Rules {
    max_body_bytes: 1 << 20,
    body_timeout: Duration::from_mins(1),
    body_grace: Duration::from_secs(10),
};

// [PROXY-11]
#[test]
fn the_model_may_stand_in_a_header_or_the_query() {
    let uri = "/v1/realtime?x=1&model=a%2Fb&model=c";
    assert_eq!(named_elsewhere(&request(uri, None, "")).as_deref(), Some("a/b"));
    assert_eq!(
        named_elsewhere(&request(uri, Some("d"), "")).as_deref(),
        Some("d")
    );
    assert_eq!(named_elsewhere(&request("/v1/x", None, "")), None);
}

// [PROXY-12]
#[tokio::test]
async fn the_bodys_model_wins_and_a_broken_body_needs_another_place() {
    let named = async |body, header| {
        let mut request = request("/v1/x", header, body);
        receive(&mut request, RULES).await.map(|received| received.model)
    };
    assert_eq!(named(r#"{"model":"a"}"#, Some("b")).await, Ok("a".to_owned()));
    assert_eq!(named("{}", Some("b")).await, Ok("b".to_owned()));
    assert_eq!(named("[]", Some("b")).await, Ok("b".to_owned()));
    assert_eq!(named("", Some("b")).await, Ok("b".to_owned()));
    assert_eq!(
        named("[]", None).await,
        Err(Refusal::BadBody("the body is not a JSON object".to_owned()))
    );
    assert_eq!(named("{}", None).await, Err(no_model()));
    assert_eq!(named("", None).await, Err(no_model()));
}

/// A body that comes in pieces, each so long after the one before.
struct Dripping {
    every: Duration,
    pieces: usize,
    size: usize,
    sleep: Pin<Box<Sleep>>,
}

impl http_body::Body for Dripping {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        ready!(self.sleep.as_mut().poll(cx));
        if self.pieces == 0 {
            return Poll::Ready(None);
        }
        self.pieces -= 1;
        if self.pieces > 0 {
            let next = self.sleep.deadline() + self.every;
            self.sleep.as_mut().reset(next);
        }
        Poll::Ready(Some(Ok(Frame::data(vec![b' '; self.size].into()))))
    }
}

// [HTTP-38]
#[tokio::test(start_paused = true)]
async fn a_body_keeps_pace_or_is_given_up() {
    let second = Duration::from_secs(1);
    let collected = async |every, pieces, size| {
        let begun = Instant::now();
        let mut body = Dripping {
            every,
            pieces,
            size,
            sleep: Box::pin(tokio::time::sleep(every)),
        };
        let read = collect(&mut body, RULES, |_| ()).await;
        (read.map(|bytes| bytes.len()), begun.elapsed())
    };
    // Fast enough, for as long as it takes.
    assert_eq!(collected(second, 300, 600).await, (Ok(180_000), 300 * second));
    // A little too slow: 10 s and what has been sent at 500 bytes a second is all it gets.
    assert_eq!(
        collected(second, 300, 400).await,
        (Err(Refusal::SlowBody), 46 * second)
    );
    // Next to nothing.
    assert_eq!(
        collected(second, 300, 1).await,
        (Err(Refusal::SlowBody), 10 * second)
    );
    // Much at first buys no longer silence than any.
    assert_eq!(
        collected(61 * second, 2, 100_000).await,
        (Err(Refusal::SlowBody), 10 * second)
    );
    assert_eq!(collected(59 * second, 1, 100_000).await.0, Err(Refusal::SlowBody));
}
