//! What a client may put in `model`.

use std::time::Duration;

use http::HeaderName;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Name;
use crate::policy::{aimd, bucket, outcome::StatusSet};

/// A name that clients send, and the targets that answer for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// As clients send it; see [`Model::pattern`] for `*` and `prefix/*`.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// Between targets.
    pub strategy: Strategy,
    /// Whether a stream's head waits for its first decisive event.
    pub stream_mode: StreamMode,
    /// What counts as the first token.
    pub first_token: FirstToken,
    /// Bounds of the wait for the first decisive event.
    pub peek: Peek,
    /// What the observer keeps of one event; longer ones flow on unread. Bytes.
    pub max_event_bytes: usize,
    /// Whether a committed stream that breaks off is ended by an error event, where it stands between two events.
    pub stream_error_event: bool,
    /// How long an upstream may be silent before a committed stream's client is sent a comment; `None` is off.
    pub sse_keepalive: Option<Duration>,
    /// How an answer by a preset's fallback says so, where this is the model of the preset that was asked for.
    pub notice: Notice,
    /// Whether responses name the model as the client did.
    pub rewrite_response_model: bool,
    /// Start of an attempt to its response head.
    pub read: Read,
    /// Silence after the first token, or after the head where nothing streams; `None` is no limit.
    pub stream_idle_timeout: Option<Duration>,
    /// How long this model is left alone at an endpoint where it could not answer; `None` is not at all.
    pub cooldown: Option<Duration>,
    /// Continuation pools in definition order; a request with exactly one of a pool's paths goes there.
    pub pools: Vec<NamedPool>,
    /// The default pool, in priority order. At least one.
    pub targets: Vec<Target>,
    /// What happens when a target fails.
    pub fallback: Fallback,
    /// What tells its conversations apart; `None` is nothing.
    pub affinity: Option<Affinity>,
    /// Whether its event streams are those of a model. False only for [`Model::direct`].
    pub observed: bool,
    /// Requests in flight, each until its response body ends; 0 is no limit.
    pub concurrency: u32,
    /// Requests a second; `None` is no limit.
    pub rate: Option<bucket::Params>,
}

/// What tells one conversation from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// The messages up to the first of the user.
    FirstMessages,
    /// The first value of this field.
    Header(HeaderName),
    /// What the client says itself, in `prompt_cache_key`.
    PromptCacheKey,
}

impl Affinity {
    /// Whether a request's body says it.
    pub const fn is_of_body(&self) -> bool {
        matches!(self, Self::FirstMessages | Self::PromptCacheKey)
    }

    /// Its name in answers, without that of a header.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::FirstMessages => "first_messages",
            Self::Header(_) => "header",
            Self::PromptCacheKey => "prompt_cache_key",
        }
    }
}

impl Model {
    /// What stands in for the model of requests that a route sends straight to a provider: they have none, so nothing
    /// is looked for in them, and there is nowhere else to go.
    pub fn direct(provider: usize, stream_idle_timeout: Option<Duration>) -> Self {
        Self {
            name: "_direct".to_owned(),
            kind: Kind::Chat,
            strategy: Strategy::Priority,
            stream_mode: StreamMode::Passthrough,
            first_token: FirstToken::Data,
            peek: Peek {
                max_wait: Duration::ZERO,
                max_bytes: 0,
                past_preamble: false,
                preamble_wait: Duration::ZERO,
            },
            max_event_bytes: 0,
            rewrite_response_model: false,
            stream_error_event: false,
            sse_keepalive: None,
            notice: Notice::Header,
            read: Read::Provider,
            stream_idle_timeout,
            cooldown: None,
            pools: Vec::new(),
            targets: vec![Target {
                provider,
                upstream_model: None,
                weight: 1,
                enabled: true,
            }],
            fallback: Fallback {
                enabled: false,
                max_attempts: None,
                on_status: StatusSet::default(),
                realtime_on_status: StatusSet::default(),
                first_token_timeout: None,
                explicit_first_token_timeout: None,
                aimd: None,
            },
            affinity: None,
            observed: false,
            concurrency: 0,
            rate: None,
        }
    }

    /// Which client names this model answers for.
    pub fn pattern(&self) -> Pattern<'_> {
        Pattern::of(&self.name)
    }
}

/// Which client names a model answers for. An exact name wins over a family, a longer family over a shorter one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern<'a> {
    /// Just this name.
    Exact(&'a str),
    /// Every name that begins with this, which ends in `/`.
    Family(&'a str),
    /// Every name.
    Any,
}

impl<'a> Pattern<'a> {
    /// What a name in the file stands for.
    pub fn of(name: &'a str) -> Self {
        match name.strip_suffix('*') {
            Some("") => Self::Any,
            Some(family) if family.ends_with('/') => Self::Family(family),
            _ => Self::Exact(name),
        }
    }

    /// Whether a client's name is one of those.
    pub fn takes(self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(exact) => exact == name,
            Self::Family(family) => name.starts_with(family),
        }
    }
}

/// What a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Chat, completions and all else.
    Chat,
    /// Vectors of this many dimensions, where the file says so; all targets serve the same upstream model.
    Embedding {
        /// Length of a vector.
        dimensions: Option<u32>,
    },
}

/// How a target is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// In the order of definition.
    Priority,
    /// By weight and load.
    Weighted,
}

/// Whether a stream's head waits for its first decisive event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamMode {
    /// It waits, so that an error sent first can still fail over.
    Strict,
    /// It does not: the head decides.
    Passthrough,
}

/// What counts as the first token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FirstToken {
    /// The first event with data.
    Data,
    /// The first event with generated content.
    Content,
}

/// How an answer that a preset's fallback gave says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// A response header.
    Header,
    /// The header, and a comment in the stream.
    Comment,
    /// Not at all.
    None,
}

/// Bounds of the wait for a stream's first decisive event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    /// After the head, where no first-token deadline is armed.
    pub max_wait: Duration,
    /// Withheld bytes at most.
    pub max_bytes: usize,
    /// Whether events that only announce a response are waited past.
    pub past_preamble: bool,
    /// How long, counted from the first of them.
    pub preamble_wait: Duration,
}

/// How long to wait for a response head, as a model or preset says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// As the attempt's provider says.
    Provider,
    /// Without limit.
    Off,
    /// This long.
    After(Duration),
}

impl Read {
    /// The timeout of an attempt at a provider whose own is `provider`; `None` is no limit.
    pub fn at(self, provider: Option<Duration>) -> Option<Duration> {
        match self {
            Self::Provider => provider,
            Self::Off => None,
            Self::After(timeout) => Some(timeout),
        }
    }
}

/// Targets for requests with certain paths only.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPool {
    /// The `pool` label of its series.
    pub name: Name,
    /// Exact request paths. At least one.
    pub paths: Vec<String>,
    /// In priority order. At least one.
    pub targets: Vec<Target>,
}

/// A provider, and what it calls the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Index into [`super::Config::providers`].
    pub provider: usize,
    /// The model name that is sent; `None` sends the client's own.
    pub upstream_model: Option<String>,
    /// Its part of the traffic in a weighted pool; 0 drains it.
    pub weight: u32,
    /// A target that is off keeps its place and is never tried.
    pub enabled: bool,
}

/// What happens when a target fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Fallback {
    /// Whether another target is tried at all.
    pub enabled: bool,
    /// Targets tried for one request; `None` is all of them.
    pub max_attempts: Option<u32>,
    /// Response statuses that are answered by the next target.
    pub on_status: StatusSet,
    /// Also these, where the request is not exempt and another target is left.
    pub realtime_on_status: StatusSet,
    /// No first token by then: the next target. `None` is no deadline.
    pub first_token_timeout: Option<Duration>,
    /// What this model itself says about the deadline, zero for "none"; `None` where it inherits `failover`'s.
    /// A share is kept over a reload only while this stays the same.
    pub explicit_first_token_timeout: Option<Duration>,
    /// The share controller of the default pool; `None` where it is off or has nothing to steer by configuration.
    pub aimd: Option<aimd::Params>,
}
