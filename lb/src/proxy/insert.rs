//! What lb itself says in a provider's event stream, where it is asked to: only between two events, and only after the
//! commit.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;

use super::alarm::Alarm;
use crate::clock::Clock;
use crate::config::Model;
use crate::policy::time::Instant;
use crate::wire::openai::ApiError;

/// What a model's streams may have put into them.
#[derive(Debug)]
pub(super) struct Inserts {
    /// An error event is still to be said if the stream breaks off.
    error_event: bool,
    pub(super) keepalive: Option<KeepAlive>,
}

/// Why a stream cannot be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Its connection ended before it did, or was not HTTP any more.
    Broke,
    /// Nothing came for too long.
    Silent,
}

/// Comments for a client whose provider is silent, so that nobody on the way takes the connection for dead.
#[derive(Debug)]
pub(super) struct KeepAlive {
    every: Duration,
    said: Instant,
    alarm: Alarm,
}

impl Inserts {
    /// `None` where the model asks for nothing.
    pub(super) fn of(model: &Model) -> Option<Box<Self>> {
        let keepalive = model.sse_keepalive.map(KeepAlive::new);
        (keepalive.is_some() || model.stream_error_event).then(|| {
            Box::new(Self {
                error_event: model.stream_error_event,
                keepalive,
            })
        })
    }

    /// The event that tells a client of the stream's failure, once. It has no `event:` line: that is the form which
    /// SDKs raise an error for.
    pub(super) fn error_event(&mut self, cause: Cause) -> Option<Bytes> {
        if !std::mem::take(&mut self.error_event) {
            return None;
        }
        let (message, code) = match cause {
            Cause::Broke => ("the provider's stream broke off", "upstream_error"),
            Cause::Silent => ("the provider's stream fell silent", "upstream_timeout"),
        };
        let error = ApiError {
            message,
            kind: "server_error",
            code,
            param: None,
        };
        Some([b"data: ", &error.to_bytes()[..], b"\n\n"].concat().into())
    }
}

impl KeepAlive {
    fn new(every: Duration) -> Self {
        Self {
            every,
            said: Instant::default(),
            alarm: Alarm::default(),
        }
    }

    /// Gives a comment whenever the provider, waited for `since`, and lb itself have been silent for long enough.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        (since, now): (Instant, Instant),
        clock: &Clock,
    ) -> Poll<Bytes> {
        let due = since.max(self.said) + self.every;
        self.alarm.poll(cx, now, due, clock).map(|()| {
            self.said = now;
            COMMENT
        })
    }
}

/// One line: what follows is read as if it had not been there.
const COMMENT: Bytes = Bytes::from_static(b": x\n");

/// Tells a client that a preset's fallback answers, in a block of its own for readers that cut at blank lines.
pub(super) const DEGRADED: Bytes = Bytes::from_static(b": lb degraded\n\n");

/// Whether `start`, the first bytes of a stream, may have something put before them: a byte order mark may not, since
/// it is one only at the very beginning.
pub(super) fn may_precede(start: &[u8]) -> bool {
    !start.starts_with(b"\xEF\xBB\xBF")
}
