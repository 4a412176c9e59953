//! What one line says.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderValue, Method, Request, StatusCode};
use serde::Serialize;

use super::{Ending, Trace, trace_id};
use crate::metrics::AttemptOutcome;
use crate::policy::time::{Instant, millis};
use crate::upstream::{Chain, Endpoint, Link};

/// A request as its worker saw it. It owns all of it: a view of the request's head would keep the connection's whole
/// read buffer for as long as the response streams.
#[derive(Debug)]
pub(super) struct Line {
    /// The request's id, its path and the name of its key, one behind the other.
    text: String,
    id: usize,
    path: usize,
    /// Since the epoch, at the request's head.
    pub(super) unix: Duration,
    client: IpAddr,
    method: Method,
    /// 0 where there is none.
    trace: u128,
    pub(super) chain: Option<Arc<Chain>>,
    /// What its spans are called, where it is traced.
    pub(super) traced: Option<Trace>,
    pub(super) stream: bool,
    pub(super) exempt: bool,
    pub(super) status: Option<StatusCode>,
    pub(super) bytes_in: u64,
    pub(super) attempts: Vec<Tried>,
    ended: Option<(Ending, Instant)>,
}

/// One attempt.
#[derive(Debug)]
pub(super) struct Tried {
    /// Its target's place in the chain.
    pub(super) link: usize,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) started: Instant,
    /// What its span is called; 0 where there is none.
    pub(super) span: u64,
    /// How, and after how long; `None` where the client left before.
    pub(super) ended: Option<(AttemptOutcome, Duration)>,
}

/// Room for the name of a client's key.
const KEY: usize = 32;

impl Line {
    pub(super) fn new<B>(unix: Duration, client: IpAddr, id: &HeaderValue, request: &Request<B>) -> Self {
        let path = request.uri().path();
        let mut text = String::with_capacity(id.len() + path.len() + KEY);
        text.push_str(id.to_str().unwrap_or_default());
        let id = text.len();
        text.push_str(path);
        Self {
            path: text.len(),
            text,
            id,
            unix,
            client,
            method: request.method().clone(),
            trace: trace_id(request.headers()),
            chain: None,
            traced: None,
            stream: false,
            exempt: false,
            status: None,
            bytes_in: 0,
            attempts: Vec::new(),
            ended: None,
        }
    }

    /// As it is, but traced. A trace that begins here is the line's.
    pub(super) fn traced(mut self, trace: Option<Trace>) -> Self {
        self.traced = trace;
        self.trace = trace.map_or(self.trace, |trace| trace.id);
        self
    }

    /// When its request's head was there, and how long it took.
    pub(super) fn span_of_time(&self) -> (Instant, Duration) {
        let ended = self.ended.as_ref();
        ended.map_or_else(Default::default, |(ending, begun)| (*begun, ending.total))
    }

    /// What the provider of an attempt calls the model.
    pub(super) fn upstream_model(&self, tried: &Tried) -> Option<&str> {
        let link = self.chain.as_deref()?.links.get(tried.link)?;
        link.upstream_model.as_deref()
    }

    pub(super) fn known_as(&mut self, key: &str) {
        self.text.truncate(self.path);
        self.text.push_str(key);
    }

    /// Its request, whose head was there at `begun`, has ended.
    pub(super) fn end(&mut self, ending: &Ending, begun: Instant) {
        self.ended = Some((*ending, begun));
    }

    /// What is written of it.
    pub(super) fn record(&self) -> Record<'_> {
        let (ending, begun) = match &self.ended {
            Some((ending, begun)) => (Some(ending), *begun),
            None => (None, Instant::default()),
        };
        let total = ending.map_or(Duration::ZERO, |ending| ending.total);
        let over = begun + total;
        // Of two that ran side by side it is the one that was not cut.
        let was_cut = |tried: &&Tried| tried.ended.is_some_and(|(how, _)| how == AttemptOutcome::Outrun);
        let last = self.attempts.iter().rev().find(|tried| !was_cut(tried));
        let links = self.chain.as_deref().map(|chain| &chain.links[..]);
        let link_of = |tried: &Tried| links.and_then(|links| links.get(tried.link));
        // Before any attempt a preset is told by its first target: what stands for itself is a model.
        let told = last.and_then(link_of).or_else(|| links.and_then(<[Link]>::first));
        let named = self.chain.as_deref().map(|chain| &*chain.name);
        let model = told.map(|link| link.model.config.name.as_str());
        let attempts = self.attempts.iter().map(|tried| AttemptRecord {
            provider: link_of(tried).map_or("", |link| &link.provider.name),
            endpoint: &tried.endpoint.name,
            outcome: tried
                .ended
                .map_or(AttemptOutcome::Cancelled, |(how, _)| how)
                .as_str(),
            ms: millis(
                tried
                    .ended
                    .map_or_else(|| over.since(tried.started), |(_, after)| after),
            ),
        });
        let outcome = ending.map_or("cancelled", |ending| ending.outcome);
        Record {
            ts: humantime::format_rfc3339_millis(UNIX_EPOCH + self.unix + total).to_string(),
            request_id: &self.text[..self.id],
            trace_id: (self.trace != 0).then(|| format!("{:032x}", self.trace)),
            key: Some(&self.text[self.path..]).filter(|key| !key.is_empty()),
            client: self.client,
            method: self.method.as_str(),
            path: &self.text[self.id..self.path],
            model: model.or(named),
            preset: named.filter(|named| model.is_some_and(|model| model != *named)),
            stream: self.stream,
            status: self.status.map(|status| status.as_u16()),
            outcome,
            provider: last.and_then(link_of).map(|link| &*link.provider.name),
            endpoint: last.map(|tried| &*tried.endpoint.name),
            upstream_model: last
                .and_then(link_of)
                .and_then(|link| link.upstream_model.as_deref()),
            attempts: attempts.collect(),
            queue_ms: ending.and_then(|ending| ending.queue).map(millis),
            first_token_ms: ending.and_then(|ending| ending.first_token).map(millis),
            total_ms: millis(total),
            bytes_in: self.bytes_in,
            bytes_out: ending.map_or(0, |ending| ending.bytes),
            exempt: self.exempt,
            cancelled: outcome == "cancelled",
        }
    }
}

/// A line by its keys, in the order in which they are written.
#[derive(Debug, Serialize)]
pub(super) struct Record<'a> {
    /// When the request ended.
    pub(super) ts: String,
    pub(super) request_id: &'a str,
    pub(super) trace_id: Option<String>,
    /// The key's name, never the key.
    pub(super) key: Option<&'a str>,
    pub(super) client: IpAddr,
    pub(super) method: &'a str,
    /// Without the query.
    pub(super) path: &'a str,
    pub(super) model: Option<&'a str>,
    pub(super) preset: Option<&'a str>,
    pub(super) stream: bool,
    /// `None` where the client left before it was answered.
    pub(super) status: Option<u16>,
    pub(super) outcome: &'static str,
    pub(super) provider: Option<&'a str>,
    pub(super) endpoint: Option<&'a str>,
    pub(super) upstream_model: Option<&'a str>,
    pub(super) attempts: Vec<AttemptRecord<'a>>,
    pub(super) queue_ms: Option<f64>,
    pub(super) first_token_ms: Option<f64>,
    pub(super) total_ms: f64,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    pub(super) exempt: bool,
    pub(super) cancelled: bool,
}

/// One attempt of a line.
#[derive(Debug, Serialize)]
pub(super) struct AttemptRecord<'a> {
    pub(super) provider: &'a str,
    pub(super) endpoint: &'a str,
    pub(super) outcome: &'static str,
    ms: f64,
}
