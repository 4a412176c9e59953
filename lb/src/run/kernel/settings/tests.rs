use std::time::Duration;

use super::*;
use crate::config::Config;

fn config(kernel: &str) -> Config {
    let text = format!(
        "version: 1\nlisteners: [{{ name: a, address: \"127.0.0.1:0\" }}]\nproviders:\n  gpu: {{ endpoints: [{{ url: \
         http://10.1.2.3:8000 }}, {{ url: http://gpu.example }}] }}\nmodels:\n  m: {{ targets: [{{ provider: gpu }}] }}\n\
         kernel: {kernel}\n"
    );
    let checked = config::parse(&text, "lb.yaml", &|_| None);
    checked.expect("a valid configuration").config
}

fn settings_of(kernel: &str) -> Settings {
    settings(&config(kernel).kernel)
}

// [CFG-13]
#[test]
fn what_is_left_out_is_the_planes_own_default() {
    let (ours, theirs) = (settings_of("{}"), Settings::default());
    assert_eq!(ours.signals, theirs.signals);
    assert_eq!((ours.mode, ours.attach), (theirs.mode, theirs.attach));
    assert_eq!(
        (ours.max_flows, ours.interfaces),
        (theirs.max_flows, theirs.interfaces)
    );
}

// [CFG-13]
#[test]
fn every_setting_that_the_configuration_takes_is_one_that_the_plane_takes() {
    let least = settings_of(
        "{ mode: required, attach: cgroup, interfaces: [eth0], max_flows: 1024, signals: { syn_timeout_ms: 1, streak: { \
         failover: 1, end_stream: 1 }, silent: { failover: 1, end_stream: 1 }, rst: { count: 1, window_ms: 1 }, \
         ejection_ms: 1 } }",
    );
    assert_eq!(
        (least.mode, least.attach),
        (Mode::Required, kernel::Attach::Cgroup)
    );
    assert_eq!(
        (least.max_flows, least.interfaces),
        (1024, vec!["eth0".to_owned()])
    );
    assert_eq!(least.signals.settings().ejection, Duration::from_millis(1));
    let most = settings_of(
        "{ mode: off, attach: tc, max_flows: 16777216, signals: { syn_timeout_ms: 3600000, streak: { failover: 1000, \
         end_stream: 1000 }, silent: { failover: 1000, end_stream: 1000 }, rst: { count: 1000000, window_ms: 3600000 }, \
         ejection_ms: 3600000 } }",
    );
    assert_eq!((most.mode, most.attach), (Mode::Off, kernel::Attach::Tc));
    assert_eq!(most.signals.settings().rst_count, 1_000_000);
}
