//! Spans of requests and attempts, for a collector that speaks OTLP.
//!
//! Whether a request is traced is decided when its head is there. One that is gets its spans at its end, when all that
//! they say is known; they go into a bounded queue, and a thread of its own sends them. What finds the queue full, or
//! no collector, is lost and counted: nobody waits for a trace. Without `tracing.otlp_endpoint` there is nothing of it.

mod export;
mod otlp;

use http::{HeaderMap, HeaderValue};
use prometheus::IntCounter;
use tokio::sync::mpsc;

pub use export::Exporter;
use export::Message;
pub(super) use otlp::{Attribute, Kind, Span, Status};

use super::access::trace_id;

/// Where spans go.
#[derive(Clone, Debug)]
pub struct Spans {
    queue: mpsc::Sender<Message>,
    dropped: IntCounter,
    ratio: f64,
}

/// A traced request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) id: u128,
    /// Its own span.
    pub(super) span: u64,
    /// The client's span; 0 where there is none.
    pub(super) parent: u64,
}

/// The span of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    trace: u128,
    pub(super) span: u64,
}

/// What a client's `traceparent` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parent {
    trace: u128,
    span: u64,
    sampled: bool,
}

impl Spans {
    /// Begins the trace of a request with these fields, if it is one of those that are traced. Peers that are `trusted`
    /// decide for theirs; of all others' the same part is traced, by the trace's id, so that everybody who goes by
    /// that traces the same ones.
    pub(super) fn begin(&self, headers: &HeaderMap, trusted: bool) -> Option<Trace> {
        let parent = Parent::of(headers);
        let id = parent.map_or_else(|| fastrand::u128(1..), |parent| parent.trace);
        let decided = parent.filter(|_| trusted).is_some_and(|parent| parent.sampled);
        (decided || is_sampled(id, self.ratio)).then(|| Trace {
            id,
            span: fastrand::u64(1..),
            parent: parent.map_or(0, |parent| parent.span),
        })
    }

    /// Hands the spans of one request over.
    pub(super) fn send(&self, spans: Vec<Span>) {
        let count = spans.len() as u64;
        if self.queue.try_send(Message::Spans(spans)).is_err() {
            self.dropped.inc_by(count);
        }
    }
}

/// Whether a trace is among so large a part of all: its last 7 bytes are random, by the W3C's rules for ids.
fn is_sampled(id: u128, ratio: f64) -> bool {
    const BITS: u32 = 53;
    #[expect(clippy::cast_precision_loss, reason = "so many bits fit")]
    let place = (id & ((1 << BITS) - 1)) as f64 / (1_u64 << BITS) as f64;
    place < ratio
}

impl Trace {
    /// The span of an attempt to begin.
    pub(super) fn hop(self) -> Hop {
        Hop {
            trace: self.id,
            span: fastrand::u64(1..),
        }
    }
}

impl Hop {
    /// What a provider is told: that it is called by this attempt.
    pub(super) fn traceparent(self) -> HeaderValue {
        let text = format!("00-{:032x}-{:016x}-01", self.trace, self.span);
        HeaderValue::try_from(text).expect("hexadecimal digits and hyphens are a header value")
    }
}

impl Parent {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let trace = trace_id(headers);
        let text = headers.get("traceparent").filter(|_| trace != 0)?;
        let mut parts = text.to_str().ok()?.split('-').skip(2);
        let mut number = |digits: usize| {
            let part = parts.next().filter(|part| part.len() == digits)?;
            u64::from_str_radix(part, 16).ok()
        };
        let (span, flags) = (number(16)?, number(2)?);
        (span != 0).then_some(Self {
            trace,
            span,
            sampled: flags & 1 == 1,
        })
    }
}

#[cfg(test)]
mod tests;
