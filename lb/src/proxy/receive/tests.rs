use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::Frame;
use tokio::time::Sleep;

use super::*;

/// A body that comes in pieces, each so long after the one before.
struct Dripping {
    every: Duration,
    pieces: usize,
    /// Of the next piece, and of those behind it. Bytes.
    next: usize,
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
        let size = self.size;
        let next = std::mem::replace(&mut self.next, size);
        Poll::Ready(Some(Ok(Frame::data(vec![b' '; next].into()))))
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
    let collected = async |every, pieces, [next, size]: [usize; 2]| {
        let begun = Instant::now();
        let body = Dripping {
            every,
            pieces,
            next,
            size,
            sleep: Box::pin(tokio::time::sleep(every)),
        };
        let budget = Arc::new(Budget::new(1 << 30));
        let room = Room {
            replay_bytes: 1 << 30,
            budget: &budget,
        };
        let read = receive_any(&mut Request::new(Some(body)), rules, room).await;
        let length = read.map(|payload| match payload {
            Payload::Whole { pieces, .. } => pieces.len(),
            _ => panic!("it is kept"),
        });
        assert_eq!(budget.held(), 0);
        (length, begun.elapsed())
    };
    // Fast enough, for as long as it takes.
    assert_eq!(
        collected(second, 300, [600; 2]).await,
        (Ok(180_000), 300 * second)
    );
    // A little too slow: each of its seconds costs it a fifth of its grace's seconds, and then there is none left.
    assert_eq!(
        collected(second, 300, [400; 2]).await,
        (Err(Refusal::SlowBody), 46 * second + 4 * second / 5)
    );
    // Next to nothing.
    assert_eq!(
        collected(second, 300, [1; 2]).await,
        (Err(Refusal::SlowBody), 10 * second + second / 50)
    );
    // Bytes that came quickly buy one silence for those that do not, of which each earns 2 ms.
    assert_eq!(
        collected(second, 300, [500_000, 1]).await,
        (Err(Refusal::SlowBody), 61 * second + 3 * second / 25)
    );
    // Much at first buys no longer silence than any.
    assert_eq!(
        collected(61 * second, 2, [100_000; 2]).await,
        (Err(Refusal::SlowBody), 10 * second)
    );
    assert_eq!(
        collected(59 * second, 1, [100_000; 2]).await.0,
        Err(Refusal::SlowBody)
    );
}

fn rules() -> Rules {
    Rules {
        max_body_bytes: 1 << 20,
        body_timeout: Duration::from_mins(1),
        body_grace: Duration::from_secs(10),
    }
}

/// A body of these chunks, all there.
#[derive(Clone)]
struct Chunks(std::collections::VecDeque<&'static str>);

fn body(chunks: &[&'static str]) -> Chunks {
    Chunks(chunks.iter().copied().collect())
}

impl http_body::Body for Chunks {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(
            self.0
                .pop_front()
                .map(|chunk| Ok(Frame::data(Bytes::from_static(chunk.as_bytes())))),
        )
    }
}

// [BODY-5] [KEY-4]
#[tokio::test]
async fn a_compressed_body_needs_another_place_for_its_model() {
    let budget = Arc::new(Budget::new(100));
    let room = Room {
        replay_bytes: 100,
        budget: &budget,
    };
    let gzip = http::HeaderValue::from_static("gzip");
    let mut request = Request::new(Some(body(&["\u{1f}"])));
    request.headers_mut().insert("content-encoding", gzip);
    let refused = receive(&mut request, Terms::default(), rules(), room)
        .await
        .map(drop);
    assert_eq!(refused, Err(Refusal::Encoding));
    let named = |limited| Terms {
        default_model: Some("m"),
        limited,
        ..Terms::default()
    };
    let refused = receive(&mut request, named(true), rules(), room).await.map(drop);
    assert_eq!(
        refused,
        Err(Refusal::Encoding),
        "a client's limit is not to be got round"
    );
    let (asked, _) = receive(&mut request, named(false), rules(), room)
        .await
        .expect("named");
    assert_eq!(asked.model, "m");
}

async fn received(
    chunks: &[&'static str],
    replay_bytes: u64,
    budget: &Arc<Budget>,
) -> Result<(Asked, Payload), Refusal> {
    let room = Room { replay_bytes, budget };
    receive(
        &mut Request::new(Some(body(chunks))),
        Terms::default(),
        rules(),
        room,
    )
    .await
}

// [BODY-3]
#[tokio::test]
async fn a_body_over_the_limit_is_streamed_from_where_its_model_is_known() {
    let budget = Arc::new(Budget::new(1 << 20));
    let chunks = [r#"{"a":"#, r#""bcdefgh","#, r#""model":"m""#, r#","x":1"#, "}"];
    let (asked, payload) = received(&chunks, 4, &budget).await.expect("JSON");
    let Payload::Streamed { pieces, rest, length } = payload else {
        panic!("too long to keep");
    };
    assert_eq!((asked.model.as_str(), pieces.len(), length), ("m", 26, None));
    assert_eq!(budget.held(), 26, "what has come is held");
    let mut passing = rest.pass(pieces.all(), Vec::new());
    let mut sent = Vec::new();
    while let Some(frame) = passing.frame().await {
        sent.extend_from_slice(&frame.expect("whole").into_data().expect("data"));
    }
    assert_eq!(sent, chunks.concat().as_bytes());
    assert_eq!(budget.held(), 0, "and given back once it is sent");
}

// [BODY-3]
#[tokio::test]
async fn a_streamed_body_that_goes_wrong_is_cut_and_says_why() {
    let budget = Arc::new(Budget::new(1 << 20));
    let bad = [
        [r#"{"model":"m","#, r#""model":"n"}"#],
        [r#"{"model":"m","#, r#""x":tru}"#],
        [r#"{"model":"m","#, r#""x":"#],
    ];
    for chunks in bad {
        let (_, payload) = received(&chunks, 4, &budget).await.expect("so far so good");
        let Payload::Streamed { pieces, rest, .. } = payload else {
            panic!("too long to keep");
        };
        let mut passing = rest.pass(pieces.all(), Vec::new());
        let mut cut = false;
        while let Some(frame) = passing.frame().await {
            cut = frame.is_err();
            if cut {
                break;
            }
        }
        assert!(cut, "{chunks:?} must not look complete");
        assert!(matches!(rest.refused(), Some(Refusal::BadBody(_))), "{chunks:?}");
    }
}

// [BODY-3]
#[tokio::test]
async fn a_second_attempt_gets_nothing_of_what_another_had_a_part_of() {
    let budget = Arc::new(Budget::new(1 << 20));
    let (_, payload) = received(&[r#"{"model":"m""#, "}"], 4, &budget)
        .await
        .expect("JSON");
    let Payload::Streamed { pieces, rest, .. } = payload else {
        panic!("too long to keep");
    };
    let mut untouched = rest.pass(pieces.all(), Vec::new());
    assert!(
        rest.pass(pieces.all(), Vec::new())
            .frame()
            .await
            .expect("a frame")
            .is_ok()
    );
    assert!(untouched.frame().await.expect("a frame").is_err());
}

// [BODY-1]
#[tokio::test(start_paused = true)]
async fn without_room_reading_pauses_and_then_gives_up() {
    let budget = Arc::new(Budget::new(20));
    let (_, kept) = received(&[r#"{"model":"m"}"#], 100, &budget).await.expect("room");
    let begun = Instant::now();
    let refused = received(&[r#"{"model":"m"}"#], 100, &budget).await.map(drop);
    assert_eq!(
        (refused, begun.elapsed()),
        (Err(Refusal::NoRoom), super::super::budget::PATIENCE)
    );
    let waiting = received(&[r#"{"model":"m"}"#], 100, &budget);
    let free = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(kept);
    };
    let (went_on, ()) = tokio::join!(waiting, free);
    assert!(went_on.is_ok());
    drop(went_on);
    assert_eq!(budget.held(), 0);
}

// [BODY-6]
#[tokio::test]
async fn a_refused_body_is_read_to_its_end_and_held_no_more() {
    let budget = Arc::new(Budget::new(1 << 20));
    let chunks = [r#"{"model":"m","model":"#, r#""n""#, "}"];
    assert!(matches!(
        received(&chunks, 100, &budget).await,
        Err(Refusal::BadBody(_))
    ));
    assert_eq!(budget.held(), 0);
}
