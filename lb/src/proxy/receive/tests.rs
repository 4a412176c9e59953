use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::Frame;
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

// [PROXY-11]
#[test]
fn the_model_may_stand_in_a_header_or_the_query() {
    let uri: Uri = "/v1/realtime?x=1&model=a%2Fb&model=c".parse().unwrap();
    assert_eq!(named_elsewhere(&uri, &HeaderMap::new()).as_deref(), Some("a/b"));
    let mut headers = HeaderMap::new();
    headers.insert("x-lb-model", http::HeaderValue::from_static("d"));
    assert_eq!(named_elsewhere(&uri, &headers).as_deref(), Some("d"));
    assert_eq!(
        named_elsewhere(&"/v1/x".parse().unwrap(), &HeaderMap::new()),
        None
    );
}

// [PROXY-12]
#[test]
fn the_bodys_model_wins_and_a_broken_body_needs_another_place() {
    let body = Bytes::from_static(b"{}");
    let said = |model: &str| {
        Some(Ok(Envelope {
            model: Some(model.to_owned()),
            ..Envelope::default()
        }))
    };
    let named = |scanned, elsewhere: Option<&str>| {
        resolve(body.clone(), scanned, elsewhere.map(str::to_owned)).map(|received| received.model)
    };
    assert_eq!(named(said("a"), Some("b")), Ok("a".to_owned()));
    assert_eq!(
        named(Some(Ok(Envelope::default())), Some("b")),
        Ok("b".to_owned())
    );
    let broken = || Some(Err(crate::wire::envelope::EnvelopeError::NotObject));
    assert_eq!(named(broken(), Some("b")), Ok("b".to_owned()));
    assert_eq!(
        named(broken(), None),
        Err(Refusal::BadBody("the body is not a JSON object".to_owned()))
    );
    assert_eq!(named(Some(Ok(Envelope::default())), None), Err(no_model()));
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
    let rules = Rules {
        max_body_bytes: 1 << 20,
        body_timeout: 60 * second,
        body_grace: 10 * second,
    };
    let collected = async |every, pieces, size| {
        let begun = Instant::now();
        let mut body = Dripping {
            every,
            pieces,
            size,
            sleep: Box::pin(tokio::time::sleep(every)),
        };
        let read = collect(&mut body, rules, |_| ()).await;
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
