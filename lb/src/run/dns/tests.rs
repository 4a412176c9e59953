use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::{MOST, Names, Resolver, chosen, usable};
use crate::config::{self, Config};

fn config(providers: &str) -> Config {
    let text = format!(
        "version: 1\nlisteners: [{{ name: l, address: '127.0.0.1:0' }}]\nproviders:\n{providers}\nmodels:\n  chat: {{ \
         targets: [{{ provider: gpu }}] }}\n"
    );
    config::parse(&text, "test.yaml", &|_| None)
        .expect("a valid file")
        .config
}

const ONE: &str = "  gpu: { endpoints: [{ url: 'http://gpu.test:80' }], dns: { refresh_ms: 1000, failure_refresh_ms: 100 } }";

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, last], 80))
}

/// Names that all have the addresses of the moment, with these last digits; none is a failure.
#[derive(Default)]
struct Zone {
    addresses: Mutex<Vec<u8>>,
    asked: AtomicU32,
}

impl Zone {
    fn set(&self, last: &[u8]) {
        *self.addresses.lock().unwrap() = last.to_vec();
    }

    fn resolver(self: &Arc<Self>) -> Resolver {
        let zone = Arc::clone(self);
        Arc::new(move |_, _| {
            zone.asked.fetch_add(1, Ordering::Relaxed);
            let last = zone.addresses.lock().unwrap().clone();
            Box::pin(async move {
                if last.is_empty() {
                    return Err(io::Error::other("nobody knows"));
                }
                Ok(last.into_iter().map(address).collect())
            })
        })
    }
}

fn found(names: &Names, config: &Config) -> Vec<Option<SocketAddr>> {
    names.sites(config).into_iter().map(|site| site.address).collect()
}

// [NET-35]
#[tokio::test(start_paused = true)]
async fn a_name_is_looked_up_again_and_again_and_a_failure_keeps_the_last_good_set() {
    let (zone, changed) = (Arc::new(Zone::default()), Arc::new(Notify::new()));
    let (first, config) = (Names::new(zone.resolver(), Arc::clone(&changed)), config(ONE));
    let names = first.next(&config);
    names.prime().await;
    assert_eq!(found(&names, &config), [None]);
    zone.set(&[2, 1, 2]);
    names.keep(&Handle::current(), &first);
    changed.notified().await;
    assert_eq!(found(&names, &config), [Some(address(1)), Some(address(2))]);
    zone.set(&[]);
    let asked = zone.asked.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(
        zone.asked.load(Ordering::Relaxed) >= asked + 5,
        "sooner after a failure"
    );
    assert_eq!(found(&names, &config), [Some(address(1)), Some(address(2))]);
    zone.set(&[3]);
    changed.notified().await;
    assert_eq!(found(&names, &config), [Some(address(3))]);
    // Of the same set nobody is told.
    let told = tokio::time::timeout(Duration::from_secs(5), changed.notified()).await;
    assert!(told.is_err());
    drop(names);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let asked = zone.asked.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(zone.asked.load(Ordering::Relaxed), asked, "nobody holds the name");
}

// [NET-35]
#[tokio::test(start_paused = true)]
async fn a_reload_keeps_what_is_known_of_names_that_stay_and_looks_up_those_that_come() {
    let zone = Arc::new(Zone::default());
    zone.set(&[1]);
    let first = config(ONE);
    let names = Names::new(zone.resolver(), Arc::default()).next(&first);
    names.prime().await;
    zone.set(&[2]);
    let second = config(&format!(
        "{}\n  new: {{ endpoints: [{{ url: 'http://gpu.test:80' }}, {{ url: 'http://new.test:80' }}] }}",
        ONE.replace("refresh_ms: 1000", "refresh_ms: 2000")
    ));
    let next = names.next(&second);
    next.prime().await;
    let [one, two] = [1, 2].map(|last| Some(address(last)));
    assert_eq!(found(&next, &second), [one, one, two]);
    assert_eq!(zone.asked.load(Ordering::Relaxed), 2);
}

// [NET-36]
#[test]
fn behind_a_proxy_and_before_the_first_answer_a_name_is_one_endpoint() {
    let known = |_: &config::Provider, _: &str, _| vec![address(1), address(2)];
    let proxied = config(
        "  gpu: { endpoints: [{ url: 'https://gpu.test' }], connections: { proxy: 'http://proxy.test:3128' } }",
    );
    let sites = crate::upstream::sites(&proxied, known);
    assert_eq!(sites.len(), 1);
    assert_eq!((sites[0].address, sites[0].dialled.len()), (None, 2));
    let mixed = config(
        "  gpu: { endpoints: [{ url: 'http://10.0.0.9:80' }, { url: 'unix:/run/gpu.sock' }, { url: 'http://gpu.test:80' }] }",
    );
    let sites = crate::upstream::sites(&mixed, known);
    let seen: Vec<_> = sites.iter().map(|site| (site.endpoint, site.address)).collect();
    let literal = SocketAddr::from(([10, 0, 0, 9], 80));
    let [one, two] = [1, 2].map(|last| (2, Some(address(last))));
    assert_eq!(seen, [(0, Some(literal)), (1, None), one, two]);
    let unknown = crate::upstream::sites(&mixed, |_, _, _| Vec::new());
    assert_eq!(unknown.len(), 3);
    assert_eq!((unknown[2].address, unknown[2].dialled.len()), (None, 0));
}

// [NET-36]
#[test]
fn of_too_many_addresses_those_that_are_there_stay() {
    let all: Vec<SocketAddr> = (0..=255).map(address).collect();
    let before = &all[100..150];
    let next = chosen(before, all.iter().rev().copied().collect());
    assert_eq!(next.len(), MOST);
    assert!(before.iter().all(|address| next.contains(address)));
    assert!(next.is_sorted());
    assert_eq!(chosen(&next, all), next, "and nothing changes by the next answer");
}

// [NET-36]
#[test]
fn an_address_without_a_route_is_left_out_unless_there_is_no_other() {
    // Scoped to an interface that there is not.
    let nowhere: SocketAddr = "[fe80::1%4294967]:80".parse().unwrap();
    assert_eq!(usable(vec![nowhere, address(1)]), [address(1)]);
    assert_eq!(usable(vec![nowhere]), [nowhere]);
}
