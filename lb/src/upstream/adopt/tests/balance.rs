//! Choices among the addresses of a name. [NET-36]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::{MODELS, Rig, build_at};
use crate::policy::balance::hash;
use crate::policy::draw::Draw;
use crate::policy::health::{Ejection, Verdict};
use crate::policy::outcome::Ended;
use crate::policy::select::Candidate;
use crate::upstream::balancer::{Balancer, By};
use crate::upstream::claim::Claim;
use crate::upstream::provider::{Tried, Wish};

/// A provider with a name and an address as such.
fn text(balance: &str) -> String {
    let providers = format!(
        "
providers:
  gpu: {{ endpoints: [{{ url: 'http://gpu.test:80' }}, {{ url: 'http://10.0.0.9:80' }}], {balance}, health: {{ consecutive_failures: 1 }} }}
  alt: {{ endpoints: [{{ url: 'http://127.0.0.1:3' }}] }}
  far: {{ endpoints: [{{ url: 'http://127.0.0.1:4' }}] }}
"
    );
    [&providers, MODELS].concat()
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 80))
}

impl Rig {
    /// The name has these addresses from now on.
    fn moved(&mut self, text: &str, last: &[u8]) {
        let addresses: Vec<_> = last.iter().map(|last| address(*last)).collect();
        let before = (self.now, Some(&self.table));
        self.table = build_at(&self.metrics, text, before, &addresses);
    }

    /// What a request with this key gets.
    fn claim(&self, point: u64) -> Claim {
        let wish = Wish {
            fail_open: false,
            tried: Tried::default(),
            entries: &[],
            point: Some(point),
        };
        let provider = &self.table.providers[0];
        provider
            .claim(self.now, None, wish, Draw::new(0.0))
            .expect("somebody is in")
    }

    /// Where it would go, with nothing in flight.
    fn meets(&self, point: u64) -> SocketAddr {
        self.claim(point).endpoint.address.expect("all have one")
    }

    /// How many of these requests each address gets.
    fn spread(&self, requests: u64) -> BTreeMap<SocketAddr, u32> {
        let mut counts = BTreeMap::new();
        for request in 0..requests {
            *counts
                .entry(self.meets(hash(&request.to_le_bytes())))
                .or_default() += 1;
        }
        counts
    }
}

fn each(last: &[u8], count: u32) -> BTreeMap<SocketAddr, u32> {
    last.iter().map(|last| (address(*last), count)).collect()
}

// [BALANCE-3] [NET-36]
#[test]
fn in_turn_every_address_of_a_name_gets_its_part_whichever_there_are() {
    let text = text("balance: round_robin");
    let mut rig = Rig::new(&text);
    rig.moved(&text, &[1, 2, 3]);
    assert_eq!(rig.spread(8), each(&[1, 2, 3, 9], 2));
    // The next two attempts meet the first two, and are the last that these get.
    for _ in 0..2 {
        rig.attempt(&Ended::Connect);
    }
    assert_eq!(rig.spread(8), each(&[3, 9], 4));
    rig.moved(&text, &[2, 3, 4, 5, 6]);
    assert_eq!(rig.spread(10), each(&[3, 4, 5, 6, 9], 2));
}

// [BALANCE-5] [BALANCE-6] [NET-36]
#[test]
fn by_a_key_every_address_of_a_name_has_keys_and_keeps_them_while_others_come_and_go() {
    let text = text("balance: hash");
    let mut rig = Rig::new(&text);
    rig.moved(&text, &[1, 2, 3]);
    let spread = rig.spread(4000);
    assert_eq!(spread.len(), 4);
    assert!(
        spread.values().all(|count| (850..1150).contains(count)),
        "{spread:?}"
    );
    // Six at a time of one key: nobody is turned away, and nobody has more than a quarter above a quarter of them.
    let held: Vec<Claim> = (0..6).map(|_| rig.claim(7)).collect();
    let most = rig.table.providers[0]
        .endpoints
        .iter()
        .map(|endpoint| endpoint.in_flight());
    assert_eq!(most.max(), Some(2));
    drop(held);
    let keys: Vec<u64> = (0..2000u32).map(|key| hash(&key.to_le_bytes())).collect();
    let before: Vec<_> = keys.iter().map(|key| rig.meets(*key)).collect();
    rig.moved(&text, &[2, 3]);
    let pairs = before.iter().zip(&keys);
    let moved = pairs.filter(|(before, key)| **before != address(1) && rig.meets(**key) != **before);
    let moved = moved.count();
    assert!(moved < 100, "{moved} of 1500 moved without need");
    rig.moved(&text, &[1, 2, 3]);
    assert!(keys.iter().map(|key| rig.meets(*key)).eq(before), "all are back");
    // Only one is in, whoever's key it is.
    for place in [0, 1, 3] {
        let endpoint = &rig.table.providers[0].endpoints[place];
        let permit = endpoint.acquire(rig.now).expect("it is in");
        let ejection = Ejection {
            jitter: Draw::new(0.0),
            allowed: true,
        };
        endpoint.report(
            rig.now,
            permit.expect("its health is on"),
            Verdict::Failure,
            ejection,
        );
    }
    assert_eq!(rig.spread(100), each(&[3], 100));
}

// [BALANCE-1]
#[test]
fn what_a_balancer_does_not_know_of_can_be_chosen_all_the_same() {
    let idle = Candidate {
        in_flight: 0,
        weight: 1,
    };
    let rig = Rig::new(&text("balance: hash"));
    let hashing = &rig.table.providers[0].config.balance;
    let by = By {
        now: rig.now,
        endpoints: &[],
        point: None,
        draw: Draw::new(0.0),
    };
    for balance in [hashing, &crate::config::Balance::RoundRobin] {
        let knows_none = Balancer::new(balance, &[]);
        assert_eq!(knows_none.choose([None, Some(idle)], by), Some(1));
        assert_eq!(knows_none.choose([None, None], by), None);
    }
}
