use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::config;
use crate::metrics::Metrics;
use crate::policy::time::Instant;
use crate::run::current::{Current, live};
use crate::run::dns::{self, Names};
use crate::run::keys::Secrets;
use crate::upstream::sites;

const TEXT: &str = "
version: 1
listeners: [{ name: l, address: '127.0.0.1:0' }]
providers:
  gpu: { endpoints: [{ url: 'https://127.0.0.1:1/v1' }, { url: 'https://127.0.0.1:2/v1' }], tls: { ca_file: CA } }
  alt: { endpoints: [{ url: 'http://127.0.0.1:1/v1' }] }
models:
  chat: { targets: [{ provider: gpu }, { provider: alt }] }
";

fn config(text: &str, ca: &std::path::Path) -> Config {
    let text = text.replace("CA", &ca.display().to_string());
    config::parse(&text, "test.yaml", &|_| None)
        .expect("a valid file")
        .config
}

fn in_force(config: &Config, ways: &[Route]) -> Live {
    let metrics = Metrics::new(&[Duration::from_secs(10)]);
    let names = Names::new(dns::system(), Arc::default());
    let current = Current {
        config: config.clone(),
        secrets: Secrets::read(config).expect("no files"),
        ways: ways.to_vec(),
        sites: names.sites(config),
        names,
    };
    live(
        &current,
        current.routes(None),
        (&metrics, None, Instant::default()),
    )
}

fn authority(name: &str) -> PathBuf {
    let made = rcgen::generate_simple_self_signed(["lb.test".to_owned()]).unwrap();
    let path = std::env::temp_dir().join(format!("lb-routes-{name}-{}", std::process::id()));
    std::fs::write(&path, made.cert.pem()).unwrap();
    path
}

// [RELOAD-30]
#[test]
fn an_endpoint_that_is_reached_as_before_keeps_its_destination() {
    let ca = authority("ca");
    let first = config(TEXT, &ca);
    let first_ways = ways(&first, 1, None).expect("a certificate");
    let before = in_force(&first, &first_ways);
    before.routes[0].destination.follow_as(7);
    let kept = |from: &str, to: &str| -> Vec<bool> {
        assert!(TEXT.contains(from), "{from}");
        let config = config(&TEXT.replace(from, to), &ca);
        let ways = ways(&config, 1, Some((&first, &first_ways))).expect("a certificate");
        let routes = to_sites(
            &config,
            &ways,
            &sites(&config, |_, _, _| Vec::new()),
            Some(&before),
        );
        let is_old = |route: &Route| {
            let mut old = before.routes.iter();
            old.any(|old| Arc::ptr_eq(&old.destination, &route.destination))
        };
        assert_eq!(
            routes[0].destination.slot(),
            (!to.contains(":9")).then_some(7),
            "{to}"
        );
        routes.iter().map(is_old).collect()
    };
    assert_eq!(kept("version", "version"), [true; 3]);
    assert_eq!(kept("  chat: {", "  chat: { strategy: weighted,"), [true; 3]);
    assert_eq!(
        kept("  gpu: {", "  gpu: { concurrency: 3, passthrough_auth: true,"),
        [true; 3]
    );
    assert_eq!(
        kept("127.0.0.1:1/v1' }, {", "127.0.0.1:9/v1' }, {"),
        [false, true, true]
    );
    assert_eq!(
        kept("ca_file: CA", "ca_file: CA, server_name: other"),
        [false, false, true]
    );
    assert_eq!(
        kept("  gpu: {", "  gpu: { connections: { max_idle_per_endpoint: 3 },"),
        [false, false, true]
    );
    std::fs::rename(authority("other"), &ca).unwrap();
    assert_eq!(kept("version", "version"), [false, false, true]);
    std::fs::remove_file(&ca).unwrap();
    assert!(ways(&first, 1, Some((&first, &first_ways))).is_err());
}
