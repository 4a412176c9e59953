//! Numbers for endpoints, small enough to index a map of the kernel.

use std::collections::VecDeque;

use lb_ebpf::SLOTS;

use super::signal::Endpoint;

/// Which slot belongs to which endpoint.
///
/// Connections of an endpoint that was removed live on for a while and carry its slot. So a slot is used again as late
/// as possible: first all that never had an endpoint, then the one that lost it longest ago. [KERNEL-14]
#[derive(Debug, Default)]
pub(super) struct Slots {
    taken: Vec<Option<Endpoint>>,
    free: VecDeque<u16>,
}

/// A slot that was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) slot: u16,
    /// Whether another endpoint had it before, whose traces must go.
    pub(super) used: bool,
}

impl Slots {
    /// A slot for `endpoint`; `None` if all are taken.
    pub(super) fn claim(&mut self, endpoint: Endpoint) -> Option<Claim> {
        if self.taken.len() < SLOTS as usize {
            let slot = u16::try_from(self.taken.len()).ok()?;
            self.taken.push(Some(endpoint));
            return Some(Claim { slot, used: false });
        }
        let slot = self.free.pop_front()?;
        self.taken[usize::from(slot)] = Some(endpoint);
        Some(Claim { slot, used: true })
    }

    /// What is known of the endpoint that has `slot` is this from now on.
    pub(super) fn update(&mut self, slot: u16, endpoint: Endpoint) {
        if let Some(known) = self.taken.get_mut(usize::from(slot)).and_then(Option::as_mut) {
            *known = endpoint;
        }
    }

    /// Gives a slot back.
    pub(super) fn release(&mut self, slot: u16) {
        if self
            .taken
            .get_mut(usize::from(slot))
            .and_then(Option::take)
            .is_some()
        {
            self.free.push_back(slot);
        }
    }

    /// The endpoint that has `slot`.
    pub(super) fn get(&self, slot: u16) -> Option<Endpoint> {
        self.taken.get(usize::from(slot)).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn endpoint(provider: u32) -> Endpoint {
        Endpoint {
            provider,
            max_ejection: Duration::from_secs(1),
        }
    }

    // [KERNEL-14]
    #[test]
    fn a_slot_is_used_again_as_late_as_possible() {
        let mut slots = Slots::default();
        for n in 0..SLOTS {
            let claim = slots.claim(endpoint(n)).expect("there are that many");
            assert_eq!((u32::from(claim.slot), claim.used), (n, false));
            if n == 0 {
                slots.release(0);
            }
        }
        slots.release(5);
        assert_eq!(slots.claim(endpoint(9)), Some(Claim { slot: 0, used: true }));
        assert_eq!(slots.claim(endpoint(9)), Some(Claim { slot: 5, used: true }));
        assert_eq!(slots.claim(endpoint(9)), None);
    }

    #[test]
    fn what_is_known_of_an_endpoint_changes_and_nobody_gets_a_slot_by_that() {
        let mut slots = Slots::default();
        slots.claim(endpoint(1));
        slots.update(0, endpoint(2));
        slots.update(1, endpoint(3));
        assert_eq!((slots.get(0), slots.get(1)), (Some(endpoint(2)), None));
        slots.release(0);
        slots.update(0, endpoint(4));
        assert_eq!(slots.get(0), None);
    }

    #[test]
    fn a_slot_released_twice_is_free_once() {
        let mut slots = Slots::default();
        slots.claim(endpoint(1));
        slots.release(0);
        slots.release(0);
        assert_eq!(slots.get(0), None);
        assert_eq!(slots.free.len(), 1);
    }
}
