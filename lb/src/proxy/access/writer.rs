//! The thread that writes lines.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use prometheus::IntCounter;

use super::line::{Line, Record};

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One JSON object.
    Json,
    /// An event like any other, in whatever form those have.
    Event,
}

/// Where workers put their lines.
#[derive(Clone, Debug)]
pub struct AccessLog {
    queue: SyncSender<Message>,
    dropped: IntCounter,
}

/// The thread that writes them.
#[derive(Debug)]
pub struct Writer {
    queue: SyncSender<Message>,
    thread: JoinHandle<()>,
}

enum Message {
    Line(Box<Line>),
    Stop,
}

impl AccessLog {
    /// Starts the writer. What finds its queue full is counted in `dropped`.
    pub fn start(form: Form, dropped: IntCounter) -> io::Result<(Self, Writer)> {
        let (queue, lines) = sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("lb-access-log".to_owned())
            .spawn(move || write(&lines, form, &mut io::stderr()))?;
        let writer = Writer {
            queue: queue.clone(),
            thread,
        };
        Ok((Self { queue, dropped }, writer))
    }

    pub(super) fn write(&self, line: Box<Line>) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.queue.try_send(Message::Line(line))
        {
            self.dropped.inc();
        }
    }
}

impl Writer {
    /// Writes what is still queued and ends the thread. Where nobody takes what is written, that is given up after
    /// `limit`.
    pub fn finish(self, limit: Duration) {
        let mut waited = Duration::ZERO;
        let mut told = false;
        while waited < limit && !self.thread.is_finished() {
            // A writer that is gone has nothing to be told.
            told = told || !matches!(self.queue.try_send(Message::Stop), Err(TrySendError::Full(_)));
            sleep(STEP);
            waited += STEP;
        }
        if self.thread.is_finished() && self.thread.join().is_err() {
            tracing::error!("the access log's thread panicked");
        }
    }
}

/// Writes until it is told to stop, or nobody is left who could write a line.
fn write(lines: &Receiver<Message>, form: Form, out: &mut impl io::Write) {
    let mut text = Vec::new();
    while let Ok(first) = lines.recv() {
        let mut next = Some(first);
        let mut gathered = false;
        while let Some(message) = next {
            match message {
                Message::Stop => return flush(&mut text, out),
                Message::Line(line) => put(&mut text, form, &line.record()),
            }
            if text.len() >= BATCH {
                flush(&mut text, out);
            }
            next = lines.try_recv().ok();
            if next.is_none() && !std::mem::replace(&mut gathered, true) {
                // Waking a thread costs more than a line does: the next ones are waited for together.
                sleep(GATHER);
                next = lines.try_recv().ok();
            }
        }
        flush(&mut text, out);
    }
}

fn put(text: &mut Vec<u8>, form: Form, record: &Record<'_>) {
    match form {
        Form::Json => {
            // Neither a vector nor these types can fail.
            drop(serde_json::to_writer(&mut *text, record));
            text.push(b'\n');
        }
        Form::Event => event(record),
    }
}

fn flush(text: &mut Vec<u8>, out: &mut impl io::Write) {
    if !text.is_empty() {
        // Where stderr is closed there is nobody to be told.
        drop(out.write_all(text));
        text.clear();
    }
}

fn event(record: &Record<'_>) {
    let attempts = serde_json::to_string(&record.attempts).unwrap_or_default();
    tracing::info!(
        target: TARGET,
        request_id = record.request_id,
        trace_id = record.trace_id,
        key = record.key,
        client = %record.client,
        method = record.method,
        path = record.path,
        model = record.model,
        preset = record.preset,
        stream = record.stream,
        status = record.status,
        outcome = record.outcome,
        provider = record.provider,
        endpoint = record.endpoint,
        upstream_model = record.upstream_model,
        attempts,
        queue_ms = record.queue_ms,
        first_token_ms = record.first_token_ms,
        total_ms = record.total_ms,
        bytes_in = record.bytes_in,
        bytes_out = record.bytes_out,
        exempt = record.exempt,
        cancelled = record.cancelled,
        "request"
    );
}

/// The target of access lines that are events: written whatever the log's level is.
pub const TARGET: &str = "lb::access";

/// Lines that may wait to be written.
const QUEUE: usize = 8192;

/// How long the writer lets lines gather.
const GATHER: Duration = Duration::from_millis(20);

/// How often the end of the thread is looked for.
const STEP: Duration = Duration::from_millis(2);

/// Text that is written at once. Bytes.
const BATCH: usize = 64 * 1024;

#[cfg(test)]
mod tests;
