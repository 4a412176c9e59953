use std::time::Duration;

use super::*;

fn config(text: &str) -> Config {
    let text = format!("version: 1\nlisteners: [{{ name: public, address: \"[::1]:0\" }}]\n{text}");
    match parse(&text, "lb.yaml", &|_| None) {
        Ok(checked) => checked.config,
        Err(Failure::Invalid(report)) => panic!("{}", report.render(false)),
        Err(failure @ Failure::Unreadable { .. }) => panic!("{failure}"),
    }
}

const PROVIDERS: &str = "providers:\n  gpu:\n    endpoints: [{ url: http://gpu:8000/v1 }, { url: http://gpu:8001 }]\n  \
                         hosted:\n    endpoints: [{ name: one, url: https://api.example/v1, weight: 3 }]\n    timeouts: { \
                         read_ms: 0 }\n";

fn with_providers(text: &str) -> Config {
    config(&format!("{PROVIDERS}{text}"))
}

// [CFG-4]
#[test]
fn what_is_left_out_is_at_its_documented_default() {
    let config = with_providers("models:\n  m: { targets: [{ provider: gpu }, { provider: hosted }] }\n");
    let [gpu, hosted] = &config.providers[..] else {
        panic!("two providers")
    };
    assert_eq!(gpu.endpoints[1].name.as_str(), "gpu-1");
    assert_eq!(
        (hosted.endpoints[0].name.as_str(), hosted.endpoints[0].weight),
        ("one", 3)
    );
    assert_eq!(gpu.timeouts.read, Some(Duration::from_mins(5)));
    assert_eq!(hosted.timeouts.read, None);
    assert_eq!(gpu.connections.idle_timeout(Scheme::Http), Duration::from_secs(4));
    assert_eq!(
        gpu.connections.idle_timeout(Scheme::Https),
        Duration::from_mins(1)
    );
    assert_eq!(gpu.health, Some(crate::policy::health::Params::default()));
    let model = &config.models[0];
    assert_eq!((model.read, model.targets[1].provider), (Read::Provider, 1));
    assert_eq!(model.fallback.first_token_timeout, Some(Duration::from_secs(20)));
    assert_eq!(model.fallback.explicit_first_token_timeout, None);
    assert_eq!(model.fallback.aimd, Some(crate::policy::aimd::Params::default()));
    assert_eq!(
        model.fallback.on_status.iter().collect::<Vec<_>>(),
        [429, 499, 500, 502, 503, 504]
    );
    assert_eq!(
        model.fallback.realtime_on_status.iter().collect::<Vec<_>>(),
        [529]
    );
    assert_eq!((config.auth.required, config.server.workers), (false, None));
}

// [CFG-4]
#[test]
fn a_preset_goes_before_its_model_and_a_model_before_failover() {
    let config = with_providers(
        "failover: { first_token_timeout_ms: 15000, stream_idle_timeout_ms: 0, total_deadline_ms: 90000 }\nmodels:\n  a: { \
         read_ms: 0, targets: [{ provider: gpu }] }\n  b:\n    targets: [{ provider: gpu }]\n    fallback: { \
         first_token_timeout_ms: 0 }\npresets:\n  p: { model: a, fallbacks: [q] }\n  q: { model: b, read_ms: 7, \
         stream_idle_timeout_ms: 9 }\n  r: { model: b, first_token_timeout_ms: 30000 }\n",
    );
    let [first, second] = &config.models[..] else {
        panic!("two models")
    };
    let [plain, own, late] = &config.presets[..] else {
        panic!("three presets")
    };
    let seconds = |s| Some(Duration::from_secs(s));
    assert_eq!(first.fallback.first_token_timeout, seconds(15));
    assert_eq!(second.fallback.first_token_timeout, None);
    assert_eq!(second.fallback.explicit_first_token_timeout, Some(Duration::ZERO));
    let deadlines = [plain, own, late].map(|preset| preset.first_token_timeout);
    assert_eq!(deadlines, [seconds(15), None, seconds(30)]);
    let reads = [plain, own, late].map(|preset| preset.read);
    assert_eq!(
        reads,
        [Read::Off, Read::After(Duration::from_millis(7)), Read::Provider]
    );
    assert_eq!(plain.stream_idle_timeout, None);
    assert_eq!(own.stream_idle_timeout, Some(Duration::from_millis(9)));
    assert_eq!((&plain.fallbacks[..], plain.model, own.model), (&[1][..], 0, 1));
    assert!(plain.on_status.contains(400) && !plain.on_status.contains(405));
    assert_eq!(config.failover.total_deadline, seconds(90));
}

#[test]
fn a_controller_runs_only_where_a_share_can_be_controlled() {
    let aimd = |model: &str| {
        let targets = "targets: [{ provider: gpu }, { provider: hosted }]";
        let config = with_providers(&format!("models:\n  m:\n    {targets}\n{model}"));
        config.models[0].fallback.aimd.clone()
    };
    assert!(aimd("").is_some());
    assert_eq!(aimd("    strategy: weighted\n"), None);
    assert_eq!(aimd("    stream_mode: passthrough\n"), None);
    assert_eq!(aimd("    fallback: { enabled: false }\n"), None);
    assert_eq!(aimd("    fallback: { aimd: { enabled: false } }\n"), None);
    let wide = "    stream_mode: passthrough\n    fallback: { first_token_timeout_ms: 0, aimd: { scope: streaming, \
                latency_budget_ms: 500, idle_recovery_ms: 0 } }\n";
    let settings = aimd(wide).unwrap().settings().clone();
    assert_eq!(
        (settings.latency_budget, settings.idle_recovery),
        (Duration::from_millis(500), None)
    );
}

// [CFG-12]
#[test]
fn every_budget_and_deadline_is_an_edge_of_the_histogram() {
    let config = with_providers(
        "metrics: { first_token_buckets: [1, 100] }\nmodels:\n  m:\n    targets: [{ provider: gpu }, { provider: hosted \
         }]\n    fallback: { first_token_timeout_ms: 8000, aimd: { latency_budget_ms: 7500 } }\npresets:\n  p: { model: m, \
         first_token_timeout_ms: 12500 }\n",
    );
    assert_eq!(
        config.metrics.first_token_buckets,
        [1.0, 7.5, 8.0, 10.0, 12.5, 100.0]
    );
}

#[test]
fn patterns_and_pools_are_kept_as_written() {
    let config = with_providers(
        "models:\n  \"*\": { targets: [{ provider: gpu }] }\n  meta/*: { targets: [{ provider: gpu }] }\n  gpt*:\n    \
         targets: [{ provider: gpu, enabled: false }, { provider: hosted }]\n    pools:\n      long: { paths: \
         [/v1/completions], targets: [{ provider: hosted, upstream_model: x }] }\n",
    );
    let patterns: Vec<_> = config.models.iter().map(Model::pattern).collect();
    assert_eq!(
        patterns,
        [Pattern::Any, Pattern::Family("meta/"), Pattern::Exact("gpt*")]
    );
    let pool = &config.models[2].pools[0];
    assert_eq!(
        (pool.name.as_str(), &pool.paths[..]),
        ("long", &["/v1/completions".to_owned()][..])
    );
    assert_eq!(pool.targets[0].upstream_model.as_deref(), Some("x"));
    assert!(!config.models[2].targets[0].enabled);
}

#[test]
fn only_the_variables_that_the_text_names_are_asked_for() {
    let asked = std::cell::RefCell::new(Vec::new());
    let environment = |name: &str| {
        asked.borrow_mut().push(name.to_owned());
        None
    };
    let text = "version: 1\nlog:\n  level: ${LEVEL:-info}\n";
    assert!(parse(text, "lb.yaml", &environment).is_err());
    assert_eq!(asked.into_inner(), ["LEVEL"]);
}

#[test]
fn a_file_that_is_not_text_is_refused_at_the_place() {
    let path = std::env::temp_dir().join(format!("lb-config-{}", std::process::id()));
    fs::write(&path, b"version: 1\n# \xff\n").unwrap();
    let failure = load(&path, &|_| None).unwrap_err();
    fs::remove_file(&path).unwrap();
    let Failure::Invalid(report) = failure else {
        panic!("{failure}")
    };
    assert!(report.render(false).contains(":2:3"), "{}", report.render(false));
}
