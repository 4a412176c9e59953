//! The vectors of `tests/golden/sse-vectors.json`, cut in every place.

use serde::{Deserialize, Deserializer};

use super::properties::reference;
use super::{ROOMY, Seen, observe};
use crate::wire::openai::{Frame, classify};

/// One vector: a stream, and what the standard makes of it.
#[derive(Deserialize)]
#[expect(
    clippy::option_option,
    reason = "null says something that a missing member does not"
)]
struct Vector {
    name: String,
    input: String,
    /// Takes the place of `input` where the stream is not UTF-8.
    input_b64: Option<String>,
    events: Vec<Expected>,
    finish: Option<Unterminated>,
    /// Null: no reconnection time may be taken from this stream.
    #[serde(default, deserialize_with = "present")]
    retry: Option<Option<u64>>,
    chunks: Option<Vec<String>>,
    chunks_b64: Option<Vec<String>>,
    classes: Option<Vec<String>>,
    #[serde(default, deserialize_with = "present")]
    first_data_index: Option<Option<usize>>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
struct Expected {
    r#type: String,
    data: String,
    id: String,
}

#[derive(Deserialize)]
struct Unterminated {
    data: String,
}

fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl Vector {
    fn all() -> Vec<Self> {
        let text = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/golden/sse-vectors.json"
        ));
        serde_json::from_str(text).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        self.input_b64
            .as_ref()
            .map_or_else(|| self.input.clone().into_bytes(), |text| base64(text))
    }

    /// What `chunks` give must be what the vector says.
    fn check<'c>(&self, chunks: impl IntoIterator<Item = &'c [u8]>, cut: &str) {
        let (events, last, observer) = observe(ROOMY, chunks);
        let events: Vec<_> = events.iter().map(Expected::from).collect();
        assert_eq!(events, self.events, "{}, cut {cut}", self.name);
        // Only the vectors about the end of a stream say what it gives; others may be cut off all the same.
        assert_eq!(last, reference(&self.bytes()).1, "{}, cut {cut}", self.name);
        if let Some(finish) = &self.finish {
            let data = last.map(|event| Expected::from(&event).data);
            assert_eq!(data.as_ref(), Some(&finish.data), "{}, cut {cut}", self.name);
        }
        if let Some(retry) = self.retry {
            assert_eq!(observer.retry(), retry, "{}, cut {cut}", self.name);
        }
    }
}

impl From<&Seen> for Expected {
    fn from(event: &Seen) -> Self {
        assert!(!event.opaque);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let kind = if event.kind.is_empty() {
            "message".to_owned()
        } else {
            text(&event.kind)
        };
        Self {
            r#type: kind,
            data: text(&event.data),
            id: text(&event.id),
        }
    }
}

// [SSE-1] [SSE-3]
#[test]
fn every_vector_gives_its_events_at_every_split() {
    let mut random = fastrand::Rng::with_seed(0x55E);
    let vectors = Vector::all();
    assert_eq!(vectors.len(), 90);
    for vector in vectors {
        let bytes = vector.bytes();
        vector.check([&*bytes], "nowhere");
        let every = bytes.len() <= 4096;
        for nth in 0..if every { bytes.len() } else { 1000 } {
            let at = if every { nth } else { random.usize(..bytes.len()) };
            let (left, right) = bytes.split_at(at);
            vector.check([left, right], &format!("at {at}"));
        }
    }
}

// [SSE-1]
#[test]
fn every_vector_gives_its_events_byte_by_byte_and_in_small_pieces() {
    for vector in Vector::all() {
        let bytes = vector.bytes();
        for size in 1..=8 {
            vector.check(bytes.chunks(size), &format!("every {size} bytes"));
        }
    }
}

// [SSE-1]
#[test]
fn the_vectors_that_name_their_chunks_hold_in_these_chunks() {
    let mut found = 0;
    for vector in Vector::all() {
        let chunks: Vec<Vec<u8>> = match (&vector.chunks, &vector.chunks_b64) {
            (Some(chunks), _) => chunks.iter().map(|chunk| chunk.clone().into_bytes()).collect(),
            (_, Some(chunks)) => chunks.iter().map(|chunk| base64(chunk)).collect(),
            _ => continue,
        };
        vector.check(chunks.iter().map(Vec::as_slice), "as the vector says");
        found += 1;
    }
    assert_eq!(found, 4);
}

// [FRAME-1]
#[test]
fn the_vectors_that_name_their_classes_are_classified_so() {
    let mut found = 0;
    for vector in Vector::all() {
        let Some(expected) = &vector.classes else { continue };
        let (events, ..) = observe(ROOMY, [&*vector.bytes()]);
        let frames: Vec<_> = events
            .iter()
            .map(|event| classify(&event.kind, &event.data))
            .collect();
        let classes: Vec<_> = frames.iter().copied().map(class).collect();
        assert_eq!(&classes, expected, "{}", vector.name);
        let first = frames
            .iter()
            .position(|frame| matches!(frame, Frame::Data { .. }));
        assert_eq!(Some(first), vector.first_data_index, "{}", vector.name);
        found += 1;
    }
    assert_eq!(found, 13);
}

fn class(frame: Frame) -> &'static str {
    match frame {
        Frame::Empty => "empty",
        Frame::Data { .. } => "data",
        Frame::Done => "done",
        Frame::Error { .. } => "error",
    }
}

/// RFC 4648, section 4.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let mut bits = 0;
    for (nth, digit) in text.trim_end_matches('=').bytes().enumerate() {
        let value = DIGITS.iter().position(|known| *known == digit).unwrap();
        bits = bits << 6 | value;
        if nth % 4 > 0 {
            bytes.push(u8::try_from(bits >> (6 - 2 * (nth % 4)) & 0xFF).unwrap());
        }
    }
    bytes
}
