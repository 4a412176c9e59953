//! Named entry points with fallback chains.

use std::time::Duration;

use super::Read;
use crate::policy::outcome::StatusSet;

/// A chain of models behind one name.
///
/// Its cascade is its model's targets, then those of each fallback preset's model. Each target runs under the timers
/// of its own preset; the named preset's `on_status` governs all of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// As clients send it in `model`.
    pub name: String,
    /// Index into [`super::Config::models`].
    pub model: usize,
    /// Indices into [`super::Config::presets`], in order. Theirs are not followed.
    pub fallbacks: Vec<usize>,
    /// Response statuses that are answered by the next target.
    pub on_status: StatusSet,
    /// No first token by then: the next target. `None` is no deadline. The model's where the preset says nothing.
    pub first_token_timeout: Option<Duration>,
    /// Start of an attempt to its response head. The model's where the preset says nothing.
    pub read: Read,
    /// Silence after the first token; `None` is no limit.
    pub stream_idle_timeout: Option<Duration>,
    /// How long a model is left alone at an endpoint where it could not answer; `None` is not at all. `failover`'s
    /// where the preset says nothing.
    pub cooldown: Option<Duration>,
}

/// What holds for every cascade.
///
/// `failover`'s other members are defaults of models and presets, which carry the values that are in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failover {
    /// Start of the first attempt to the commit, whole cascade; `None` is no limit.
    pub total_deadline: Option<Duration>,
    /// Silence after the head where no model says how long; `None` is no limit.
    pub stream_idle_timeout: Option<Duration>,
}
