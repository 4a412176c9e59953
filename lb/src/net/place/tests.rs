use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

use super::{Addresses, SHUNNED};

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 80))
}

fn line(addresses: &mut Addresses, now: Instant) -> Vec<u8> {
    let last = |address: SocketAddr| match address {
        SocketAddr::V4(address) => address.ip().octets()[3],
        SocketAddr::V6(_) => unreachable!("all are IPv4"),
    };
    addresses.line(now).into_iter().map(last).collect()
}

// [NET-19]
#[test]
fn every_address_is_the_first_in_its_turn() {
    let mut addresses = Addresses::new(&[1, 2, 3].map(address));
    let now = Instant::now();
    assert_eq!(line(&mut addresses, now), [1, 2, 3]);
    assert_eq!(line(&mut addresses, now), [2, 3, 1]);
    assert_eq!(line(&mut addresses, now), [3, 1, 2]);
    assert_eq!(line(&mut addresses, now), [1, 2, 3]);
    assert_eq!(line(&mut Addresses::new(&[]), now), [0_u8; 0]);
}

// [NET-19] [NET-35]
#[test]
fn an_address_that_failed_comes_last_for_a_while_and_through_changes_of_the_others() {
    let mut addresses = Addresses::new(&[1, 2].map(address));
    let now = Instant::now();
    addresses.tried(address(1), false, now);
    assert_eq!(line(&mut addresses, now), [2, 1]);
    assert!(addresses.replace(&[1, 2, 3].map(address)));
    assert_eq!(
        line(&mut addresses, now).last(),
        Some(&1),
        "it stayed, and so does what is known of it"
    );
    assert!(!addresses.replace(&[2, 3].map(address)));
    assert!(addresses.replace(&[1, 2, 3].map(address)));
    let lines: Vec<u8> = (0..3).map(|_| line(&mut addresses, now)[0]).collect();
    assert!(lines.contains(&1), "it went and came back as another: {lines:?}");
    addresses.tried(address(1), false, now);
    let later = now + SHUNNED - Duration::from_millis(1);
    assert!((0..3).all(|_| line(&mut addresses, later)[2] == 1));
    let firsts: Vec<u8> = (0..3).map(|_| line(&mut addresses, now + SHUNNED)[0]).collect();
    assert!(firsts.contains(&1), "{firsts:?}");
    addresses.tried(address(2), false, now);
    addresses.tried(address(2), true, now);
    let firsts: Vec<u8> = (0..3).map(|_| line(&mut addresses, now)[0]).collect();
    assert!(firsts.contains(&2), "a connection clears it: {firsts:?}");
}
