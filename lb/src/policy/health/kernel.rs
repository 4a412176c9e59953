//! What the kernel saw, and how an endpoint that went by it comes back.

use std::time::Duration;

use super::{Cause, Health, KernelCause, Out, Standing, State, Transition};
use crate::policy::time::Instant;

impl Health {
    /// Takes the endpoint out for `span`, on what the kernel saw; `allowed` is [`Ejection::allowed`](super::Ejection::allowed).
    ///
    /// The span is the evidence's own, so there is no jitter and no counting of repeats here. While such an ejection
    /// lasts, or a connection is waited for, nothing changes: that somebody still does not answer is no reason to look
    /// away for longer. An ejection for failures becomes one of this kind when it is seen that nobody is there at all: that
    /// explains the failures, and its end can be found out.
    #[must_use]
    pub fn eject(
        &mut self,
        now: Instant,
        cause: KernelCause,
        span: Duration,
        allowed: bool,
    ) -> Option<Transition> {
        let from = match self.standing(now) {
            // It is out already, so the bound on how many may be out does not keep it in.
            Standing::HalfOpen | Standing::Probing => State::HalfOpen,
            Standing::Healthy if allowed => State::Healthy,
            Standing::Ejected { .. } if cause != KernelCause::Reset && self.is_out_for_failures() => {
                State::Ejected
            }
            Standing::Healthy | Standing::Ejected { .. } | Standing::Unproven => return None,
        };
        let soon = now + span;
        let out = Out {
            until: if from == State::Ejected {
                self.until_at_most(soon)
            } else {
                soon
            },
            cause: Cause::Kernel(cause),
            unproven: true,
        };
        let transition = self.go_out(from, out);
        self.check_invariants();
        Some(transition)
    }

    fn until_at_most(&self, limit: Instant) -> Instant {
        self.out.map_or(limit, |out| out.until.min(limit))
    }

    fn is_out_for_failures(&self) -> bool {
        self.out.is_some_and(|out| !matches!(out.cause, Cause::Kernel(_)))
    }

    /// A connection was made after an ejection that the kernel caused: requests may try it.
    #[must_use]
    pub fn connected(&mut self, now: Instant) -> Option<Transition> {
        if self.standing(now) != Standing::Unproven {
            return None;
        }
        self.out.as_mut()?.unproven = false;
        Some(Transition {
            from: State::Ejected,
            to: State::HalfOpen,
            cause: None,
            until: None,
        })
    }

    /// Takes back an ejection for loss that turned out to be somebody else's; what was before it is not restored but for
    /// an ejection of another cause, which is left half-open.
    #[must_use]
    pub fn withdraw(&mut self, now: Instant) -> Option<Transition> {
        let lost = |out: &&mut Out| out.unproven && out.cause == Cause::Kernel(KernelCause::Loss);
        let out = self.out.as_mut().filter(lost)?;
        let to = if self.ejections == 0 {
            self.out = None;
            State::Healthy
        } else {
            out.until = out.until.min(now);
            out.unproven = false;
            State::HalfOpen
        };
        self.start_generation();
        self.check_invariants();
        Some(Transition {
            from: State::Ejected,
            to,
            cause: None,
            until: None,
        })
    }
}
