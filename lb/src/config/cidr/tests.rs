use super::*;

fn holds(range: &str, address: &str) -> bool {
    let range: Cidr = range.parse().unwrap();
    range.contains(address.parse().unwrap())
}

#[test]
fn a_range_holds_the_addresses_that_share_its_prefix() {
    assert!(holds("10.0.0.0/8", "10.200.1.1"));
    assert!(!holds("10.0.0.0/8", "11.0.0.1"));
    assert!(holds("0.0.0.0/0", "192.0.2.1"));
    assert!(holds("192.0.2.7", "192.0.2.7"));
    assert!(!holds("192.0.2.7", "192.0.2.8"));
    assert!(holds("2001:db8::/32", "2001:db8:1::1"));
    assert!(holds("::/0", "2001:db8::1"));
    assert!(!holds("2001:db8::/32", "2001:db9::"));
}

#[test]
fn a_mapped_ipv4_address_counts_as_the_ipv4_address() {
    assert!(holds("10.0.0.0/8", "::ffff:10.1.2.3"));
    assert!(!holds("::/0", "::ffff:10.1.2.3"));
}

#[test]
fn anything_else_is_refused() {
    for bad in [
        "",
        "10.0.0.0/33",
        "10.0.0/8",
        "::1/129",
        "host/8",
        "10.0.0.0/",
        "10.0.0.0/-1",
    ] {
        assert_eq!(bad.parse::<Cidr>(), Err(NotACidr), "{bad}");
    }
}
