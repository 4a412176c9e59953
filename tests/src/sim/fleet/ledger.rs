//! The fleet's own books: what is open, what was paid, who probes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lb::policy::time::Instant;
use lb::upstream::{Chain, Sent, Table};

use super::flight::{Held, Phase};
use super::probes::Probes;
use super::story::Story;

/// The books of one run.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    checked: bool,
    pub(super) begun: u64,
    pub(super) ended: u64,
    /// Attempts that have not come to their decisive event.
    pub(super) undecided: u64,
    pub(super) agains: u64,
    open: Vec<Held>,
    /// How often each endpoint has come to be.
    births: BTreeMap<(Box<str>, u16), u32>,
    pub(super) endpoint_probes: BTreeMap<u16, Probes>,
    pub(super) breaker_probes: BTreeMap<Box<str>, Probes>,
    pub(super) accounts: BTreeMap<Box<str>, Account>,
    charges: u64,
}

/// What a provider's retry budget was used for.
#[derive(Debug, Default)]
pub(super) struct Account {
    requests: Vec<Instant>,
    /// Each with its number, so that it can be taken back.
    retries: Vec<(u64, Instant)>,
}

impl Ledger {
    pub(super) fn new(story: &Story, table: &Table) -> Self {
        let mut ledger = Self {
            checked: story.checked,
            ..Self::default()
        };
        for provider in table.providers() {
            for endpoint in &provider.endpoints {
                ledger
                    .births
                    .insert((provider.name.clone(), endpoint.url.port()), 0);
            }
        }
        ledger
    }

    /// Endpoints that were not there a moment ago begin anew.
    pub(super) fn reloaded(&mut self, before: &Table, after: &Table) {
        let ports = |table: &Table| {
            let endpoints = |provider: &Arc<lb::upstream::Provider>| {
                let port =
                    |endpoint: &Arc<lb::upstream::Endpoint>| (provider.name.clone(), endpoint.url.port());
                provider.endpoints.iter().map(port).collect::<Vec<_>>()
            };
            table.providers().iter().flat_map(endpoints).collect::<Vec<_>>()
        };
        let known = ports(before);
        for key in ports(after) {
            if !known.contains(&key) {
                self.endpoint_probes.remove(&key.1);
                *self.births.entry(key).or_default() += 1;
            }
        }
    }

    /// An attempt is begun.
    pub(super) fn take(&mut self, provider: &str, port: u16) -> Held {
        let birth = self
            .births
            .get(&(provider.into(), port))
            .copied()
            .unwrap_or_default();
        let held = Held {
            provider: provider.into(),
            port,
            birth,
            number: self.begun,
        };
        self.begun += 1;
        self.undecided += 1;
        self.open.push(held.clone());
        held
    }

    /// The number that the next attempt will have.
    pub(super) const fn next_number(&self) -> u64 {
        self.begun
    }

    /// An attempt has come to its decisive event.
    pub(super) fn decided(&mut self, held: &Held) {
        self.undecided -= 1;
        let probes = self
            .endpoint_probes
            .values_mut()
            .chain(self.breaker_probes.values_mut());
        for probes in probes {
            probes.end(held.number);
        }
    }

    /// An attempt is over, and was decided if it was committed before.
    pub(super) fn close(&mut self, held: &Held) {
        self.ended += 1;
        self.open.retain(|other| other != held);
    }

    /// An attempt has ended without a response.
    pub(super) fn give_back(&mut self, held: &Held) {
        self.decided(held);
        self.close(held);
    }

    /// A client has left.
    pub(super) fn dropped(&mut self, phase: &Phase) {
        match phase {
            Phase::Trying(all) => all.iter().for_each(|trying| self.give_back(&trying.held)),
            Phase::Answering(answering) => self.close(&answering.held),
            Phase::New | Phase::Queued(_) | Phase::Pausing => {}
        }
    }

    /// Attempts that the server at `port` is busy with.
    pub(super) fn in_flight(&self, port: u16) -> u32 {
        self.count(|held| held.port == port)
    }

    /// Attempts open at `provider`.
    pub(super) fn open_at(&self, provider: &str) -> u32 {
        self.count(|held| *held.provider == *provider)
    }

    /// Attempts open at an endpoint since it has come to be.
    pub(super) fn open_at_endpoint(&self, provider: &str, port: u16) -> u32 {
        let birth = self
            .births
            .get(&(provider.into(), port))
            .copied()
            .unwrap_or_default();
        self.count(|held| *held.provider == *provider && held.port == port && held.birth == birth)
    }

    fn count(&self, is: impl Fn(&Held) -> bool) -> u32 {
        u32::try_from(self.open.iter().filter(|held| is(held)).count()).unwrap_or(u32::MAX)
    }

    /// Whether a request of `chain` takes part in its pool's share; only looked at where steps are checked.
    pub(super) fn is_steered(&self, table: &Table, chain: &Arc<Chain>, sent: Sent, now: Instant) -> bool {
        let Some(first) = chain.links.first().filter(|_| self.checked) else {
            return false;
        };
        let state = table.state(now);
        let models = state
            .models
            .iter()
            .filter(|model| *model.name == *first.pool.model);
        let mut pools = models.flat_map(|model| &model.pools);
        let active = pools.any(|pool| *pool.name == *first.pool.name && pool.active);
        active && sent.streaming && !sent.exempt && first.model.is_strict()
    }

    /// An original request is sent to `provider`.
    pub(super) fn original(&mut self, provider: &str, now: Instant) {
        self.accounts
            .entry(provider.into())
            .or_default()
            .requests
            .push(now);
    }

    /// A retry of `provider` is paid for; the number is to be kept until it is made.
    pub(super) fn charge(&mut self, provider: &str, now: Instant) -> u64 {
        self.charges += 1;
        let account = self.accounts.entry(provider.into()).or_default();
        account.retries.push((self.charges, now));
        self.charges
    }

    /// It is not made after all.
    pub(super) fn refund(&mut self, charge: u64) {
        for account in self.accounts.values_mut() {
            account.retries.retain(|(number, _)| *number != charge);
        }
    }
}

impl Account {
    /// Requests and retries in the span before `now`.
    pub(super) fn within(&self, now: Instant, span: Duration) -> (u32, u32) {
        let count = |times: &mut dyn Iterator<Item = Instant>| {
            u32::try_from(times.filter(|at| now.since(*at) < span).count()).unwrap_or(u32::MAX)
        };
        let requests = count(&mut self.requests.iter().copied());
        (requests, count(&mut self.retries.iter().map(|(_, at)| *at)))
    }
}
