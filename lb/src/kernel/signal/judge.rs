//! Remembers as much of the past as the judgement of the next sighting needs. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{Cause, Endpoint, Evidence, Loss, Params, Phase, Reaction, Remedy, Settings, Sighting, Verdict};
use crate::policy::time::Instant;

/// Losses at two providers this close together are our own link's.
const OWN_LINK: Duration = Duration::from_secs(1);

/// One repeat of an ejection is forgotten after each span of this length without another.
const FORGIVEN: Duration = Duration::from_secs(10);

/// Turns sightings into reactions.
#[derive(Debug)]
pub struct Judge {
    settings: Settings,
    endpoints: BTreeMap<u16, History>,
    losses: VecDeque<Lost>,
    own_link: Option<Instant>,
}

/// Of one endpoint.
#[derive(Debug, Default)]
struct History {
    resets: VecDeque<Instant>,
    /// End of the last ejection.
    until: Option<Instant>,
    /// Ejections that count for the length of the next.
    repeats: u32,
}

/// An endpoint that did not answer.
#[derive(Clone, Copy, Debug)]
struct Lost {
    at: Instant,
    provider: u32,
    slot: u16,
}

impl Judge {
    /// Nothing seen yet.
    pub fn new(params: &Params) -> Self {
        let settings = params.settings().clone();
        Self {
            settings,
            endpoints: BTreeMap::new(),
            losses: VecDeque::new(),
            own_link: None,
        }
    }

    /// Judges what was seen.
    ///
    /// `phase` is what the connection is doing or was doing when it ended a moment ago; `None` for one that nobody
    /// knows: a closed socket goes on retransmitting, and what it sees is not held against anyone, except a refusal or
    /// an ICMP error, which is about the endpoint whoever asked. `heard` is when the endpoint's last segment arrived.
    pub fn on_sighting(
        &mut self,
        sighting: &Sighting,
        phase: Option<Phase>,
        endpoint: Endpoint,
        heard: Instant,
    ) -> Reaction {
        let remedy = phase.and_then(|phase| self.remedy(sighting.evidence, phase));
        let verdict = match (sighting.evidence, phase) {
            (Evidence::Refused, _) => self.eject(sighting, endpoint, Cause::Refused),
            (Evidence::Unreachable, _) => self.eject(sighting, endpoint, Cause::Unreachable),
            (Evidence::Reset, Some(Phase::Idle) | None) | (Evidence::Finished, _) => Verdict::None,
            (Evidence::Reset, Some(_)) => self.reset(sighting, endpoint),
            (Evidence::Loss(loss), Some(_)) if self.counts(loss) && heard <= sighting.since => {
                self.lost(sighting, endpoint)
            }
            (Evidence::Loss(_), _) => Verdict::None,
        };
        Reaction { remedy, verdict }
    }

    /// Forgets an endpoint whose slot is given to another.
    pub fn forget(&mut self, slot: u16) {
        self.endpoints.remove(&slot);
        self.losses.retain(|lost| lost.slot != slot);
    }

    fn remedy(&self, evidence: Evidence, phase: Phase) -> Option<Remedy> {
        let suspect = |streaming| match phase {
            Phase::Idle => Remedy::Close,
            Phase::Connecting | Phase::Waiting => Remedy::FailOver,
            Phase::Streaming => streaming,
        };
        match evidence {
            Evidence::Refused | Evidence::Unreachable => Some(suspect(Remedy::End)),
            Evidence::Finished => (phase == Phase::Idle).then_some(Remedy::Close),
            Evidence::Loss(Loss::SynTimeout) => (phase == Phase::Connecting).then_some(Remedy::FailOver),
            Evidence::Loss(loss) if !self.counts(loss) => None,
            Evidence::Loss(Loss::Streak(n)) if n >= self.settings.streak_end => Some(suspect(Remedy::End)),
            Evidence::Loss(Loss::Silent(n)) if n >= self.settings.silent_end => Some(suspect(Remedy::End)),
            Evidence::Reset | Evidence::Loss(_) => Some(suspect(Remedy::Poison)),
        }
    }

    /// Whether it is enough to act upon; below that it is a number in the metrics.
    fn counts(&self, loss: Loss) -> bool {
        match loss {
            Loss::SynTimeout => true,
            Loss::Streak(n) => n >= self.settings.streak_failover,
            Loss::Silent(n) => n >= self.settings.silent_failover,
        }
    }

    fn reset(&mut self, sighting: &Sighting, endpoint: Endpoint) -> Verdict {
        let (count, window) = (self.settings.rst_count, self.settings.rst_window);
        let resets = &mut self.endpoints.entry(sighting.slot).or_default().resets;
        resets.push_back(sighting.at);
        resets.retain(|&reset| sighting.at.since(reset) <= window);
        if u32::try_from(resets.len()).is_ok_and(|resets| resets < count) {
            return Verdict::Failure;
        }
        resets.clear();
        self.eject(sighting, endpoint, Cause::Reset)
    }

    fn lost(&mut self, sighting: &Sighting, endpoint: Endpoint) -> Verdict {
        let now = sighting.at;
        self.losses.retain(|lost| now.since(lost.at) <= OWN_LINK);
        let elsewhere = self.losses.iter().any(|lost| lost.provider != endpoint.provider);
        self.losses.push_back(Lost {
            at: now,
            provider: endpoint.provider,
            slot: sighting.slot,
        });
        if elsewhere {
            self.own_link(now)
        } else {
            self.eject(sighting, endpoint, Cause::Loss)
        }
    }

    fn own_link(&mut self, now: Instant) -> Verdict {
        let first = self.own_link.is_none_or(|last| now.since(last) > OWN_LINK);
        self.own_link = Some(now);
        let mut withdraw = Vec::new();
        for lost in &self.losses {
            let Some(history) = self.endpoints.get_mut(&lost.slot) else {
                continue;
            };
            if history.until.is_some_and(|until| until > now) {
                history.until = Some(now);
                history.repeats = history.repeats.saturating_sub(1);
                withdraw.push(lost.slot);
            }
        }
        Verdict::OwnLink { withdraw, first }
    }

    /// Every connection to a dead endpoint reports it; the first ejects, the others say nothing new.
    fn eject(&mut self, sighting: &Sighting, endpoint: Endpoint, cause: Cause) -> Verdict {
        let now = sighting.at;
        let history = self.endpoints.entry(sighting.slot).or_default();
        if history.until.is_some_and(|until| until > now) {
            return Verdict::None;
        }
        let quiet = history.until.map_or(Duration::ZERO, |until| now.since(until));
        let forgiven = u32::try_from(quiet.as_secs() / FORGIVEN.as_secs()).unwrap_or(u32::MAX);
        let repeats = history.repeats.saturating_sub(forgiven);
        let doubled = 2_u32.checked_pow(repeats).map_or(Duration::MAX, |factor| {
            self.settings.ejection.saturating_mul(factor)
        });
        let span = doubled.min(endpoint.max_ejection);
        history.repeats = repeats.saturating_add(1);
        history.until = Some(now + span);
        Verdict::Eject { cause, span }
    }
}
