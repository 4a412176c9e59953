use std::net::SocketAddr;

use super::{MODELS, Rig, build_at};
use crate::policy::outcome::Ended;

const NAMED: &str = "
providers:
  gpu: { endpoints: [{ url: 'http://gpu.test:80' }], health: { consecutive_failures: 2 } }
  alt: { endpoints: [{ url: 'http://127.0.0.1:3' }] }
  far: { endpoints: [{ url: 'http://127.0.0.1:4' }] }
";

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 80))
}

impl Rig {
    /// The name has these addresses from now on.
    fn resolve(&mut self, last: &[u8]) {
        let addresses: Vec<_> = last.iter().map(|last| address(*last)).collect();
        let before = (self.now, Some(&self.table));
        self.table = build_at(&self.metrics, &[NAMED, MODELS].concat(), before, &addresses);
    }

    /// The address, state and load of each endpoint of the first provider.
    fn endpoints(&self) -> Vec<(Option<String>, &'static str, u32)> {
        let provider = self.table.state(self.now).providers.swap_remove(0);
        let endpoints = provider.endpoints.into_iter();
        endpoints
            .map(|endpoint| (endpoint.address, endpoint.state, endpoint.in_flight))
            .collect()
    }
}

fn at(last: u8, state: &'static str, in_flight: u32) -> (Option<String>, &'static str, u32) {
    (Some(address(last).to_string()), state, in_flight)
}

// [RELOAD-17] [NET-36]
#[test]
fn every_address_of_a_name_is_an_endpoint_whose_state_stays_while_the_address_does() {
    let mut rig = Rig::new(&[NAMED, MODELS].concat());
    assert_eq!(rig.endpoints(), [(None, "healthy", 0)]);
    rig.resolve(&[1, 2]);
    // The first of each pair goes to the first of two equals, the second to the other.
    let (one, two) = (rig.begin(), rig.begin());
    assert_eq!(rig.endpoints(), [at(1, "healthy", 1), at(2, "healthy", 1)]);
    drop(two);
    for _ in 0..2 {
        rig.attempt(&Ended::Connect);
    }
    assert_eq!(rig.endpoints(), [at(1, "healthy", 1), at(2, "ejected", 0)]);
    rig.table.publish(rig.now);
    for (state, count) in [("healthy", 1), ("ejected", 1), ("half_open", 0)] {
        let series = format!("endpoint=\"gpu-0\",provider=\"gpu\",state=\"{state}\"}} {count}");
        assert!(rig.series(&format!("lb_endpoint_state{{{series}")), "{series}");
    }
    // One goes, one stays, one comes.
    rig.resolve(&[2, 3]);
    assert_eq!(rig.endpoints(), [at(2, "ejected", 0), at(3, "healthy", 0)]);
    // What began at the one that went judges nobody else.
    rig.end(one, &Ended::Connect);
    rig.resolve(&[1, 2, 3]);
    assert_eq!(
        rig.endpoints(),
        [at(1, "healthy", 0), at(2, "ejected", 0), at(3, "healthy", 0)]
    );
    // It went and came back as another.
    rig.resolve(&[3]);
    rig.resolve(&[2, 3]);
    assert_eq!(rig.endpoints(), [at(2, "healthy", 0), at(3, "healthy", 0)]);
    assert!(rig.series("lb_endpoint_in_flight{endpoint=\"gpu-0\",provider=\"gpu\"} 0"));
}

// [RELOAD-16] [COOL-5]
#[test]
fn a_model_cools_at_each_address_by_itself_and_their_series_counts_them() {
    let series = |count: u32| {
        format!("lb_cooldown_active{{endpoint=\"gpu-0\",model=\"chat\",provider=\"gpu\"}} {count}")
    };
    let cooling = MODELS.replace("  chat:\n", "  chat:\n    cooldown_ms: 60000\n");
    let text = [NAMED, &cooling].concat();
    let mut rig = Rig::new(&text);
    let resolve = |rig: &mut Rig, last: [u8; 2]| {
        let before = (rig.now, Some(&rig.table));
        rig.table = build_at(&rig.metrics, &text, before, &last.map(address));
        rig.table.publish(rig.now);
        rig.table.state(rig.now).cooldowns
    };
    resolve(&mut rig, [1, 2]);
    rig.attempt(&Ended::Connect);
    let cooling = resolve(&mut rig, [1, 2]);
    assert_eq!(cooling.len(), 1);
    assert_eq!(cooling[0].address, Some(address(1).to_string()));
    assert!(rig.series(&series(1)));
    rig.attempt(&Ended::Connect);
    assert_eq!(resolve(&mut rig, [1, 2]).len(), 2);
    assert!(rig.series(&series(2)));
    let cooling = resolve(&mut rig, [2, 3]);
    assert_eq!(cooling.len(), 1, "one went with its address");
    assert_eq!(cooling[0].address, Some(address(2).to_string()));
    assert!(rig.series(&series(1)));
}
