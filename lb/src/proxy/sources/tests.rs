use super::*;

fn sources(allowed: &[&str], limit: u32) -> Arc<Sources> {
    let allowed = allowed.iter().map(|range| range.parse().unwrap()).collect();
    Arc::new(Sources::new(allowed, NonZeroU32::new(limit)))
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

// [HTTP-27]
#[test]
fn an_address_has_as_many_connections_as_it_may_and_gets_them_back() {
    let sources = sources(&[], 2);
    let first = sources.admit(ip("192.0.2.1")).unwrap();
    let _second = sources.admit(ip("192.0.2.1")).unwrap();
    assert_eq!(sources.admit(ip("192.0.2.1")).unwrap_err(), TurnedAway::TooMany);
    let other = sources.admit(ip("192.0.2.2")).unwrap();
    drop(first);
    let _third = sources.admit(ip("192.0.2.1")).unwrap();
    drop(other);
    assert_eq!(
        sources.open.lock().unwrap().len(),
        1,
        "nothing is kept of who has gone"
    );
}

// [HTTP-27]
#[test]
fn addresses_of_one_ipv6_network_are_one_source() {
    let sources = sources(&[], 1);
    let _one = sources.admit(ip("2001:db8::1")).unwrap();
    assert_eq!(
        sources.admit(ip("2001:db8::ffff:1")).unwrap_err(),
        TurnedAway::TooMany
    );
    assert!(sources.admit(ip("2001:db8:0:1::1")).is_ok());
}

// [HTTP-28]
#[test]
fn only_who_is_on_the_list_may_connect() {
    let sources = sources(&["192.0.2.0/24", "2001:db8::/32"], 0);
    assert!(sources.admit(ip("192.0.2.9")).is_ok());
    assert!(sources.admit(ip("2001:db8::9")).is_ok());
    assert_eq!(sources.admit(ip("192.0.3.9")).unwrap_err(), TurnedAway::Forbidden);
}
