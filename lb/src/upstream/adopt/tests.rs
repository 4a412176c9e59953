//! Each row of the table of what is kept, from one configuration to the next.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::config;
use crate::metrics::Metrics;
use crate::policy::draw::Draw;
use crate::policy::outcome::Ended;
use crate::policy::time::Instant;
use crate::upstream::{Attempt, Context, PoolState, Run, Sent, Settled, Step, Table, sites};

/// A daemon's table over several configurations, with attempts that are under way.
struct Rig {
    metrics: Metrics,
    table: Table,
    now: Instant,
}

mod addresses;
mod balance;

const HEAD: &str = "version: 1\nlisteners: [{ name: l, address: '127.0.0.1:0' }]\n";

const PROVIDERS: &str = "
providers:
  gpu: { endpoints: [{ url: 'http://127.0.0.1:1' }, { url: 'http://127.0.0.1:2' }], health: { consecutive_failures: 2 } }
  alt: { endpoints: [{ url: 'http://127.0.0.1:3' }] }
  far: { endpoints: [{ url: 'http://127.0.0.1:4' }] }
";

const MODELS: &str = "
models:
  chat:
    targets: [{ provider: gpu }, { provider: alt }, { provider: far }]
    fallback: { first_token_timeout_ms: 0, aimd: { latency_budget_ms: 100, min_samples: 2 } }
    pools: { tail: { paths: [/v1/completions], targets: [{ provider: alt }, { provider: far }] } }
";

fn build(metrics: &Metrics, text: &str, now: Instant, before: Option<&Table>) -> Table {
    build_at(metrics, text, (now, before), &[])
}

/// As [`build`], where every name has these addresses.
fn build_at(
    metrics: &Metrics,
    text: &str,
    (now, before): (Instant, Option<&Table>),
    addresses: &[SocketAddr],
) -> Table {
    let config = config::parse(&format!("{HEAD}{text}"), "test.yaml", &|_| None);
    let config = config.expect("a valid file").config;
    let keys = vec![None; config.providers.len()];
    let mut context = Context {
        metrics,
        keys: &keys,
        sites: &sites(&config, |_, _, _| addresses.to_vec()),
        now,
        before,
        draw: &mut || Draw::new(0.0),
    };
    Table::build(&config, &mut context)
}

impl Rig {
    fn new(text: &str) -> Self {
        let metrics = Metrics::new(&[Duration::from_secs(10)]);
        let now = Instant::from_nanos(1_000_000_000);
        let table = build(&metrics, text, now, None);
        Self { metrics, table, now }
    }

    fn usual() -> Self {
        Self::new(&[PROVIDERS, MODELS].concat())
    }

    /// Puts another configuration into force.
    fn reload(&mut self, text: &str) {
        self.pass(1);
        self.table = build(&self.metrics, text, self.now, Some(&self.table));
    }

    /// The usual configuration with these changes.
    fn change(&mut self, changes: &[(&str, &str)]) {
        let mut text = [PROVIDERS, MODELS].concat();
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
        }
        self.reload(&text);
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
    }

    fn begin(&self) -> (Run, Attempt) {
        let sent = Sent {
            streaming: true,
            exempt: false,
            replayable: true,
            repeatable: true,
            idempotent: false,
        };
        let chain = Arc::clone(self.table.find("chat").expect("configured"));
        let mut run = Run::begin(chain, sent, self.now);
        match run.next(self.now, &mut || Draw::new(0.0)) {
            Step::Try(attempt) => (run, attempt),
            step => panic!("nothing to try: {step:?}"),
        }
    }

    fn end(&self, (mut run, attempt): (Run, Attempt), ended: &Ended) {
        match attempt.settle(&mut run, self.now, ended, Draw::new(0.0)) {
            Settled::Committed(tail) | Settled::PassOn(tail) => tail.clean_end(),
            Settled::Again(_) | Settled::Fail | Settled::Onward | Settled::Yielded => {}
        }
    }

    /// One attempt that ends so.
    fn attempt(&self, ended: &Ended) {
        self.end(self.begin(), ended);
    }

    /// Lowers the share of `chat` by one step.
    fn lower(&mut self) {
        for _ in 0..2 {
            self.attempt(&Ended::Status { code: 503 });
        }
        assert_eq!(self.pool().share, Some(0.8));
    }

    fn pool(&self) -> PoolState {
        self.table.state(self.now).models[0].pools[0].clone()
    }

    /// Whether the controller is in use, and its share and generation.
    fn share(&self) -> (bool, Option<f64>, Option<u64>) {
        let pool = self.pool();
        (pool.active, pool.share, pool.generation)
    }

    fn load(&self, target: usize) -> u32 {
        use std::sync::atomic::Ordering;
        self.table.find("chat").expect("configured").links[target]
            .in_flight
            .load(Ordering::Relaxed)
    }

    fn series(&self, line: &str) -> bool {
        self.metrics.exposition().lines().any(|known| known == line)
    }
}

const KEPT: (bool, Option<f64>, Option<u64>) = (true, Some(0.8), Some(1));
const FRESH: (bool, Option<f64>, Option<u64>) = (true, Some(1.0), Some(0));
const PARKED: (bool, Option<f64>, Option<u64>) = (false, Some(0.8), Some(1));
const RESUMED: (bool, Option<f64>, Option<u64>) = (true, Some(0.8), Some(2));
const NONE: (bool, Option<f64>, Option<u64>) = (false, None, None);

// [RELOAD-10]
#[test]
fn a_share_is_kept_while_its_preferred_target_and_its_rules_stay_what_they_are() {
    let kept: [&[(&str, &str)]; 8] = [
        &[],
        &[(
            "provider: alt }, { provider: far",
            "provider: far }, { provider: alt",
        )],
        &[("{ provider: alt }, ", "")],
        &[("{ provider: far }]", "{ provider: far, weight: 3 }]")],
        &[("aimd: {", "on_status: [500], aimd: { dwell_ms: 30000, ")],
        // One of two endpoints stays.
        &[("{ url: 'http://127.0.0.1:2' }", "{ url: 'http://127.0.0.1:9' }")],
        &[(
            "{ url: 'http://127.0.0.1:2' }",
            "{ url: 'http://127.0.0.1:2', weight: 0 }",
        )],
        &[("http://127.0.0.1:3", "http://127.0.0.1:9")],
    ];
    for changes in kept {
        let mut rig = Rig::usual();
        rig.lower();
        rig.change(changes);
        assert_eq!(rig.share(), KEPT, "{changes:?}");
    }
}

// [RELOAD-10]
#[test]
fn endpoints_may_be_replaced_one_by_one() {
    let mut rig = Rig::usual();
    rig.lower();
    rig.change(&[("127.0.0.1:1'", "127.0.0.1:8'")]);
    rig.change(&[("127.0.0.1:1'", "127.0.0.1:8'"), ("127.0.0.1:2'", "127.0.0.1:9'")]);
    assert_eq!(rig.share(), KEPT);
    rig.change(&[]);
    assert_eq!(rig.share(), FRESH);
}

// [RELOAD-10]
#[test]
fn a_key_may_be_rotated_in_its_file_and_not_be_exchanged() {
    let with = |key: &str| [&PROVIDERS.replace("gpu: {", &format!("gpu: {{ {key},")), MODELS].concat();
    let mut rig = Rig::new(&with("api_key_file: /key"));
    rig.lower();
    rig.reload(&with("api_key_file: /key"));
    assert_eq!(rig.share(), KEPT);
    rig.reload(&with("api_key_file: /other"));
    assert_eq!(rig.share(), FRESH);
}

// [RELOAD-11]
#[test]
fn a_successor_starts_at_one_where_the_target_or_its_rules_are_others() {
    let fresh: [&[(&str, &str)]; 6] = [
        &[(
            "provider: gpu }, { provider: alt",
            "provider: alt }, { provider: gpu",
        )],
        &[("{ provider: gpu }", "{ provider: gpu, upstream_model: other }")],
        &[("latency_budget_ms: 100", "latency_budget_ms: 101")],
        &[("first_token_timeout_ms: 0", "first_token_timeout_ms: 500")],
        &[("127.0.0.1:1'", "127.0.0.1:8'"), ("127.0.0.1:2'", "127.0.0.1:9'")],
        &[("{ provider: gpu }, ", "")],
    ];
    for changes in fresh {
        let mut rig = Rig::usual();
        rig.lower();
        rig.change(changes);
        assert_eq!(rig.share(), FRESH, "{changes:?}");
    }
}

// [RELOAD-11]
#[test]
fn a_pool_that_opts_out_has_no_share_and_its_series_say_so() {
    for change in [
        ("aimd: {", "aimd: { enabled: false, "),
        ("    targets: [", "    strategy: weighted\n    targets: ["),
        ("  chat:", "  other:"),
    ] {
        let mut rig = Rig::usual();
        rig.lower();
        assert!(rig.series("lb_aimd_active{model=\"chat\",pool=\"default\"} 1"));
        let changes = [change, ("aimd: {", "aimd: { enabled: false, ")];
        rig.change(if change.1.contains("weighted") {
            &changes
        } else {
            &changes[..1]
        });
        assert!(
            rig.series("lb_aimd_active{model=\"chat\",pool=\"default\"} 0"),
            "{change:?}"
        );
        if change.0 != "  chat:" {
            assert_eq!(rig.share(), NONE, "{change:?}");
        }
        rig.change(&[]);
        assert_eq!(rig.share(), FRESH, "{change:?}");
    }
}

const OFF: [(&str, &str); 4] = [
    ("{ provider: gpu }", "{ provider: gpu, enabled: false }"),
    ("gpu: {", "gpu: { enabled: false, "),
    (
        "[{ url: 'http://127.0.0.1:1' }, { url: 'http://127.0.0.1:2' }]",
        "[{ url: 'http://127.0.0.1:1', weight: 0 }, { url: 'http://127.0.0.1:2', weight: 0 }]",
    ),
    // Nobody is left to share with.
    (
        "{ provider: alt }, { provider: far }]\n    fallback",
        "{ provider: alt, enabled: false }]\n    fallback",
    ),
];

// [RELOAD-12]
#[test]
fn a_share_without_its_target_or_without_an_alternate_is_parked_and_comes_back() {
    for off in OFF {
        let mut rig = Rig::usual();
        rig.lower();
        let alone = (
            "{ provider: alt }, { provider: far }]\n    fallback",
            "{ provider: alt }]\n    fallback",
        );
        let changes = [off, alone];
        let changes = if off.1.contains("alt") {
            &changes[..1]
        } else {
            &changes
        };
        rig.change(changes);
        assert_eq!(rig.share(), PARKED, "{off:?}");
        assert!(rig.series("lb_aimd_active{model=\"chat\",pool=\"default\"} 0"));
        // Through reloads that change nothing of it, or something else.
        rig.change(changes);
        rig.change(&[changes, &[("http://127.0.0.1:4", "http://127.0.0.1:9")]].concat());
        assert_eq!(rig.share(), PARKED, "{off:?}");
        rig.change(&[]);
        assert_eq!(rig.share(), RESUMED, "{off:?}");
        assert!(rig.series("lb_aimd_active{model=\"chat\",pool=\"default\"} 1"));
    }
}

// [RELOAD-12]
#[test]
fn with_nothing_to_try_at_all_it_is_parked_too() {
    let mut rig = Rig::usual();
    rig.lower();
    rig.change(&[(
        "{ provider: gpu }, { provider: alt }, { provider: far }]\n    fallback",
        "{ provider: gpu, enabled: false }]\n    fallback",
    )]);
    assert_eq!(rig.share(), PARKED);
}

// [RELOAD-12]
#[test]
fn with_two_targets_left_a_successor_steers_until_the_preferred_target_is_back() {
    let mut rig = Rig::usual();
    rig.lower();
    rig.change(&[OFF[0]]);
    assert_eq!(rig.share(), FRESH);
    rig.lower();
    // The successor is one like any other: kept, and parked behind the first.
    rig.change(&[OFF[0]]);
    assert_eq!(rig.share(), KEPT);
    rig.change(&[OFF[0], ("alt: {", "alt: { enabled: false, ")]);
    assert_eq!(rig.pool().parked, Some(true));
    rig.change(&[OFF[0]]);
    assert_eq!(rig.share(), RESUMED);
    rig.change(&[]);
    assert_eq!(rig.share(), RESUMED);
    rig.change(&[OFF[0]]);
    assert_eq!(
        rig.share(),
        FRESH,
        "the successor was retired when the first came back"
    );
}

// [RELOAD-12]
#[test]
fn a_parked_share_is_given_up_once_its_rules_or_its_place_change() {
    for change in [
        ("latency_budget_ms: 100", "latency_budget_ms: 101"),
        (
            "provider: gpu }, { provider: alt",
            "provider: alt }, { provider: gpu",
        ),
    ] {
        let mut rig = Rig::usual();
        rig.lower();
        rig.change(&[("gpu: {", "gpu: { enabled: false, ")]);
        rig.change(&[("gpu: {", "gpu: { enabled: false, "), change]);
        rig.change(&[]);
        assert_eq!(rig.share(), FRESH, "{change:?}");
    }
}

// [RELOAD-13]
#[test]
fn what_began_under_an_adopted_share_counts_and_what_began_under_a_retired_one_does_not() {
    let mut rig = Rig::usual();
    let early: Vec<_> = (0..2).map(|_| rig.begin()).collect();
    rig.change(&[("{ provider: far }]", "{ provider: far, weight: 3 }]")]);
    for attempt in early {
        rig.end(attempt, &Ended::Status { code: 503 });
    }
    assert_eq!(rig.share(), KEPT, "adopted: the two breaches count");
    let late: Vec<_> = (0..4).map(|_| rig.begin()).collect();
    rig.change(&[("latency_budget_ms: 100", "latency_budget_ms: 101")]);
    for attempt in late {
        rig.end(attempt, &Ended::Status { code: 503 });
    }
    assert_eq!(rig.share(), FRESH);
    assert_eq!(rig.pool().window_samples, Some(0));
    assert!(rig.series("lb_aimd_share_ratio{model=\"chat\",pool=\"default\"} 1"));
    assert!(rig.series("lb_aimd_in_flight{model=\"chat\",pool=\"default\"} 0"));
}

// [RELOAD-13]
#[test]
fn a_request_that_still_has_a_retired_share_moves_nothing() {
    let mut rig = Rig::usual();
    rig.lower();
    let chain = Arc::clone(rig.table.find("chat").expect("configured"));
    rig.change(&[("latency_budget_ms: 100", "latency_budget_ms: 101")]);
    rig.pass(3_600_000);
    let sent = Sent {
        streaming: true,
        exempt: false,
        replayable: true,
        repeatable: true,
        idempotent: false,
    };
    // An hour is time for twelve idle steps.
    drop(Run::begin(chain, sent, rig.now));
    assert!(rig.series("lb_aimd_adjustments_total{direction=\"idle\",model=\"chat\",pool=\"default\"} 0"));
}

// [RELOAD-14]
#[test]
fn health_follows_the_address_and_new_settings_apply_to_what_was_learned() {
    let mut rig = Rig::usual();
    let state = |rig: &Rig, n: usize| rig.table.state(rig.now).providers[0].endpoints[n].state;
    for _ in 0..4 {
        rig.attempt(&Ended::Connect);
    }
    assert_eq!((state(&rig, 0), state(&rig, 1)), ("ejected", "ejected"));
    // By the address and not by the place or the name.
    rig.change(&[(
        "127.0.0.1:1' }, { url: 'http://127.0.0.1:2'",
        "127.0.0.1:7' }, { name: x, url: 'http://127.0.0.1:1'",
    )]);
    assert_eq!((state(&rig, 0), state(&rig, 1)), ("healthy", "ejected"));
    assert!(rig.series("lb_endpoint_state{endpoint=\"gpu-1\",provider=\"gpu\",state=\"ejected\"} 0"));
    rig.table.publish(rig.now);
    assert!(rig.series("lb_endpoint_state{endpoint=\"gpu-0\",provider=\"gpu\",state=\"healthy\"} 1"));
    // A provider of another name is another one.
    rig.change(&[("  gpu:", "  new:"), ("provider: gpu", "provider: new")]);
    assert_eq!(state(&rig, 1), "healthy");
    // Four failures are behind it when the limit falls to two: the next one is too many.
    rig.change(&[("consecutive_failures: 2", "consecutive_failures: 9")]);
    for _ in 0..4 {
        rig.attempt(&Ended::Connect);
    }
    assert_eq!((state(&rig, 0), state(&rig, 1)), ("healthy", "healthy"));
    rig.change(&[]);
    rig.attempt(&Ended::Connect);
    assert_eq!((state(&rig, 0), state(&rig, 1)), ("ejected", "healthy"));
}

// [RELOAD-16]
#[test]
fn a_cooldown_follows_the_model_at_its_endpoint() {
    let cooled = ("models:\n  chat:\n", "models:\n  chat:\n    cooldown_ms: 5000\n");
    let cooling = |rig: &Rig| -> Vec<(String, String, Option<u64>)> {
        let all = rig.table.state(rig.now).cooldowns;
        all.into_iter()
            .map(|it| (it.provider, it.endpoint, it.for_ms))
            .collect()
    };
    let mut rig = Rig::usual();
    rig.change(&[cooled]);
    rig.attempt(&Ended::Connect);
    assert_eq!(cooling(&rig), [("gpu".into(), "gpu-0".into(), Some(5000))]);
    // A shorter time is for what cools from now on.
    rig.change(&[("models:\n  chat:\n", "models:\n  chat:\n    cooldown_ms: 10\n")]);
    assert_eq!(cooling(&rig), [("gpu".into(), "gpu-0".into(), Some(4999))]);
    // Another model at the same endpoint, and the same model at another.
    rig.change(&[
        cooled,
        ("provider: gpu }", "provider: gpu, upstream_model: other }"),
    ]);
    assert_eq!(cooling(&rig), []);
    rig.change(&[cooled]);
    rig.attempt(&Ended::Connect);
    rig.change(&[cooled, ("127.0.0.1:1'", "127.0.0.1:8'")]);
    assert_eq!(cooling(&rig), []);
}

// [RELOAD-14]
#[test]
fn a_late_result_judges_the_endpoint_it_was_about_and_no_other() {
    let mut rig = Rig::usual();
    let early: Vec<_> = (0..4).map(|_| rig.begin()).collect();
    rig.change(&[("127.0.0.1:2'", "127.0.0.1:9'")]);
    for attempt in early {
        rig.end(attempt, &Ended::Connect);
    }
    let state = rig.table.state(rig.now);
    let states: Vec<_> = state.providers[0]
        .endpoints
        .iter()
        .map(|endpoint| endpoint.state)
        .collect();
    assert_eq!(states, ["ejected", "healthy"]);
}

// [RELOAD-14]
#[test]
fn health_that_is_switched_off_forgets() {
    let mut rig = Rig::usual();
    let held = rig.begin();
    rig.attempt(&Ended::Connect);
    rig.change(&[(
        "health: { consecutive_failures: 2 }",
        "health: { enabled: false }",
    )]);
    rig.change(&[]);
    rig.end(held, &Ended::Connect);
    rig.attempt(&Ended::Connect);
    let state = rig.table.state(rig.now);
    assert_eq!(state.providers[0].endpoints[0].state, "healthy");
}

// [RELOAD-15]
#[test]
fn what_is_in_flight_is_counted_once_whichever_table_it_began_under() {
    let mut rig = Rig::usual();
    let held = rig.begin();
    let counts = |rig: &Rig| {
        let provider = &rig.table.state(rig.now).providers[0];
        let endpoints: u32 = provider.endpoints.iter().map(|endpoint| endpoint.in_flight).sum();
        (provider.in_flight, endpoints, rig.load(0))
    };
    rig.change(&[]);
    assert_eq!(counts(&rig), (1, 1, 1));
    // Out of the chain and back.
    rig.change(&[("{ provider: gpu }", "{ provider: gpu, enabled: false }")]);
    assert_eq!(rig.load(0), 0, "another target is the first now");
    rig.change(&[]);
    assert_eq!(counts(&rig), (1, 1, 1));
    drop(held);
    assert_eq!(counts(&rig), (0, 0, 0));
    assert!(rig.series("lb_endpoint_in_flight{endpoint=\"gpu-0\",provider=\"gpu\"} 0"));
}

// [RELOAD-15]
#[test]
fn a_changed_limit_counts_what_is_held_already() {
    let mut rig = Rig::usual();
    let _held = [rig.begin(), rig.begin()];
    rig.change(&[("gpu: {", "gpu: { concurrency: 2, ")]);
    assert_eq!(&*rig.begin().1.claim().provider().name, "alt");
    rig.change(&[("gpu: {", "gpu: { concurrency: 3, ")]);
    assert_eq!(&*rig.begin().1.claim().provider().name, "gpu");
}
