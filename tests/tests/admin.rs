//! The admin listener: what probes, scrapers and operators read.

#![cfg(test)]

use lb_tests::client::{ask, get};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

async fn start() -> (Provider, Provider, Lb) {
    let preferred = Provider::start(Script::streamed(&["a"])).await;
    let alternate = Provider::start(Script::streamed(&["b"])).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    (preferred, alternate, lb)
}

// [ADMIN-1]
#[tokio::test]
async fn the_status_of_a_probe_is_its_answer() {
    let (_preferred, _alternate, lb) = start().await;
    for path in ["/livez", "/readyz", "/healthz"] {
        assert_eq!(ask(lb.admin(), get(path)).await.status(), 200, "{path}");
    }
    let verbose = ask(lb.admin(), get("/readyz?verbose")).await.text();
    assert!(verbose.lines().count() >= 2, "{verbose}");
    assert!(
        verbose
            .lines()
            .any(|line| line.starts_with("[+]") && line.ends_with(" ok")),
        "{verbose}"
    );
    assert_eq!(ask(lb.admin(), get("/nothing")).await.status(), 404);
}

// [ADMIN-2]
#[tokio::test]
async fn readiness_does_not_depend_on_the_providers() {
    let (mut preferred, mut alternate, lb) = start().await;
    preferred.kill().await;
    alternate.kill().await;
    for _ in 0..6 {
        assert_eq!(lb.chat(true).await.status(), 502);
    }
    assert_eq!(ask(lb.admin(), get("/readyz")).await.status(), 200);
}

// [ADMIN-3]
#[tokio::test]
async fn every_series_of_the_controller_is_exposed_and_counts() {
    let (preferred, _alternate, lb) = start().await;
    preferred.next(Script::error(429));
    for _ in 0..3 {
        assert_eq!(lb.chat(true).await.status(), 200);
    }
    lb.idle().await;
    let answer = ask(lb.admin(), get("/metrics")).await;
    let kind = answer.head.header("content-type").unwrap_or_default();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let page = answer.text();
    let pool = "model=\"chat\",pool=\"default\"";
    for line in [
        format!("lb_first_token_seconds_count{{{pool},role=\"preferred\"}} 2"),
        format!("lb_first_token_seconds_count{{{pool},role=\"alternate\"}} 1"),
        format!("lb_first_token_seconds_bucket{{{pool},role=\"preferred\",le=\"10\"}} 2"),
        format!("lb_first_token_timeouts_total{{{pool},role=\"preferred\"}} 0"),
        format!("lb_aimd_share_ratio{{{pool}}} 1"),
        format!("lb_aimd_active{{{pool}}} 1"),
        format!("lb_aimd_window_samples{{{pool}}} 3"),
        format!("lb_aimd_window_breach_ratio{{{pool}}} 0.3333333333333333"),
        format!("lb_aimd_in_flight{{{pool}}} 0"),
        format!("lb_aimd_adjustments_total{{direction=\"down\",{pool}}} 0"),
        format!("lb_aimd_adjustments_total{{direction=\"up\",{pool}}} 0"),
        format!("lb_aimd_adjustments_total{{direction=\"idle\",{pool}}} 0"),
        format!("lb_aimd_samples_total{{{pool},outcome=\"healthy\"}} 2"),
        format!("lb_aimd_samples_total{{{pool},outcome=\"breach\"}} 1"),
        format!("lb_aimd_samples_total{{{pool},outcome=\"unknown\"}} 0"),
        format!("lb_aimd_samples_total{{{pool},outcome=\"stale\"}} 0"),
        format!("lb_aimd_overload_breaches_total{{{pool},status=\"429\"}} 1"),
        format!("lb_aimd_draws_total{{{pool},start=\"preferred\"}} 3"),
        format!("lb_aimd_draws_total{{{pool},start=\"alternate\"}} 0"),
        "lb_endpoint_in_flight{endpoint=\"gpu-0\",provider=\"gpu\"} 0".to_owned(),
    ] {
        assert!(has(&page, &line), "no {line}\n{page}");
    }
}

// [ADMIN-3]
#[tokio::test]
async fn every_family_has_its_help_and_its_type_and_names_no_address() {
    let (preferred, _alternate, lb) = start().await;
    lb.chat(true).await;
    let page = ask(lb.admin(), get("/metrics")).await.text();
    let families = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| line.split(' ').next());
    for family in families.flatten() {
        assert!(page.contains(&format!("# HELP {family} ")), "{family}");
        assert!(
            family.starts_with("lb_") || family.starts_with("process_"),
            "{family}"
        );
    }
    assert!(
        !page.contains(&preferred.address().to_string()),
        "labels come from names only"
    );
}

// [ADMIN-4]
#[tokio::test]
async fn the_state_names_models_pools_providers_and_endpoints() {
    let (_preferred, _alternate, lb) = start().await;
    lb.chat(true).await;
    lb.idle().await;
    let pool = lb.pool().await;
    assert_eq!(
        (&pool["share"], &pool["window_samples"], &pool["active"]),
        (&1.0.into(), &1.into(), &true.into())
    );
    for provider in ["gpu", "alt"] {
        let endpoint = lb.endpoint(provider, 0).await;
        assert_eq!(
            (&endpoint["state"], &endpoint["in_flight"]),
            (&"healthy".into(), &0.into())
        );
        assert_eq!(endpoint["name"], format!("{provider}-0"));
    }
}

// [ADMIN-4]
#[tokio::test]
async fn the_state_is_read_only() {
    let (_preferred, _alternate, lb) = start().await;
    let post = "POST /api/v1/state HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(ask(lb.admin(), post).await.status(), 405);
}

// [ADMIN-5]
#[tokio::test]
async fn a_request_under_way_is_seen_under_way() {
    let (preferred, _alternate, lb) = start().await;
    preferred.next(Script::stream().token("a").stall());
    let mut exchange = lb.begin().await;
    exchange.head().await;
    exchange.until("\"a\"").await;
    assert_eq!(lb.endpoint("gpu", 0).await["in_flight"], 1);
    assert_eq!(lb.sum("lb_inflight_requests", &["model=\"chat\""]).await, 1);
    assert_eq!(lb.sum("lb_endpoint_in_flight", &["endpoint=\"gpu-0\""]).await, 1);
    drop(exchange);
    lb.idle().await;
}

/// Whether a page has this line, its labels in any order.
fn has(page: &str, line: &str) -> bool {
    let (labels, value) = line.rsplit_once("} ").expect("a series");
    let (name, labels) = labels.split_once('{').expect("labels");
    page.lines().any(|found| {
        let Some((of, end)) = found.rsplit_once("} ") else {
            return false;
        };
        let Some((own, of)) = of.split_once('{') else {
            return false;
        };
        let sorted = |labels: &str| {
            let mut labels: Vec<_> = labels.split(',').map(str::to_owned).collect();
            labels.sort_unstable();
            labels
        };
        own == name && end == value && sorted(of) == sorted(labels)
    })
}
