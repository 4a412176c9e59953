use proptest::prelude::*;

use super::*;

const US: [u8; 4] = [10, 0, 0, 1];
const THEM: [u8; 4] = [10, 0, 0, 2];

/// `tags` VLAN tags, then an IPv4 segment of ours with `payload` bytes.
fn ipv4_segment(tags: usize, options: usize, payload: usize) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    for _ in 0..tags {
        bytes.extend([0x81, 0, 0, 5]);
    }
    bytes.extend([
        8,
        0,
        0x45 + u8::try_from(options / 4).expect("a header's length"),
        0,
    ]);
    bytes.extend(
        u16::try_from(40 + options + payload)
            .expect("short")
            .to_be_bytes(),
    );
    bytes.extend([0, 0, 0x40, 0, 64, TCP, 0, 0]);
    bytes.extend(US);
    bytes.extend(THEM);
    bytes.resize(bytes.len() + options, 1);
    bytes.extend(tcp_header());
    bytes.resize(bytes.len() + payload, b'x');
    bytes
}

fn tcp_header() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(40_000_u16.to_be_bytes());
    bytes.extend(8_000_u16.to_be_bytes());
    bytes.extend(1_000_u32.to_be_bytes());
    bytes.extend(5_000_u32.to_be_bytes());
    bytes.extend([0x50, flags::ACK, 0x01, 0xf4, 0, 0, 0, 0]);
    bytes
}

fn ipv6_header(next: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend(u16::try_from(length).expect("short").to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend([0xfd; 16]);
    bytes.extend([0xfe; 16]);
    bytes
}

fn frame(ether_type: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    bytes.extend(ether_type.to_be_bytes());
    bytes.extend(rest);
    bytes
}

fn parse(bytes: &[u8]) -> Parsed {
    ethernet(&Packet::new(bytes))
}

fn segment(bytes: &[u8]) -> Segment {
    match parse(bytes) {
        Parsed::Tcp(segment) => segment,
        other => panic!("no segment: {other:?}"),
    }
}

#[test]
fn a_segment_is_found_behind_vlan_tags_and_options() {
    let plain = segment(&ipv4_segment(0, 0, 7));
    assert_eq!(plain.source, mapped(u32::from_ne_bytes(US)));
    assert_eq!(plain.destination, mapped(u32::from_ne_bytes(THEM)));
    assert_eq!((plain.source_port, plain.destination_port), (40_000, 8_000));
    assert_eq!(
        (plain.seq, plain.ack, plain.payload, plain.window),
        (1_000, 5_000, 7, 500)
    );
    for (tags, options) in [(1, 0), (2, 0), (0, 4), (1, 40), (2, 40)] {
        assert_eq!(
            segment(&ipv4_segment(tags, options, 7)),
            plain,
            "{tags} tags, {options} bytes of options"
        );
    }
    assert_eq!(parse(&ipv4_segment(3, 0, 7)), Parsed::Other);
}

#[test]
fn a_segment_is_found_behind_three_ipv6_extensions_and_no_more() {
    for count in 0..5 {
        let mut bytes = ipv6_header(if count == 0 { TCP } else { HOP_BY_HOP }, 8 * count + 20 + 3);
        for n in 1..=count {
            bytes.extend([
                if n == count { TCP } else { DESTINATION_OPTIONS },
                0,
                0,
                0,
                0,
                0,
                0,
                0,
            ]);
        }
        bytes.extend(tcp_header());
        bytes.extend(b"abc");
        let parsed = parse(&frame(IPV6, &bytes));
        match parsed {
            Parsed::Tcp(segment) if count <= 3 => assert_eq!(segment.payload, 3),
            Parsed::Other if count > 3 => {}
            other => panic!("{count} extensions: {other:?}"),
        }
    }
}

#[test]
fn a_packet_longer_than_its_length_field_can_say_takes_the_hooks_length() {
    let mut bytes = ipv4_segment(0, 0, 100);
    bytes[16..18].fill(0);
    assert_eq!(segment(&bytes).payload, 100);
}

#[test]
fn a_length_field_that_ends_inside_a_header_makes_no_payload() {
    let mut bytes = ipv4_segment(0, 40, 7);
    bytes[16..18].copy_from_slice(&[0, 50]);
    assert_eq!(parse(&bytes), Parsed::Other);
    let mut bytes = ipv6_header(HOP_BY_HOP, 7);
    bytes.extend([TCP, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(tcp_header());
    assert_eq!(parse(&frame(IPV6, &bytes)), Parsed::Other);
}

#[test]
fn later_fragments_are_not_taken_for_segments() {
    let mut bytes = ipv4_segment(0, 0, 7);
    bytes[21] = 1;
    assert_eq!(parse(&bytes), Parsed::Other);
    let mut bytes = ipv6_header(FRAGMENT, 28);
    bytes.extend([TCP, 0, 0, 8, 0, 0, 0, 0]);
    bytes.extend(tcp_header());
    assert_eq!(parse(&frame(IPV6, &bytes)), Parsed::Other);
}

/// An ICMP error about our segment with sequence number 1,000.
fn unreachable_v4(code: u8) -> Vec<u8> {
    let mut bytes = ipv4_segment(0, 0, 0)[14..].to_vec();
    bytes.truncate(28);
    let mut packet = vec![0x45, 0, 0, 56, 0, 0, 0, 0, 64, ICMP, 0, 0, 10, 0, 0, 9];
    packet.extend(US);
    packet.extend([ICMP_UNREACHABLE, code, 0, 0, 0, 0, 0, 0]);
    packet.extend(bytes);
    frame(IPV4, &packet)
}

#[test]
fn an_unreachable_names_the_connection_of_the_segment_that_it_quotes() {
    let Parsed::Unreachable(quoted) = parse(&unreachable_v4(1)) else {
        panic!("not an unreachable")
    };
    assert_eq!(quoted.tuple, segment(&ipv4_segment(0, 0, 0)).sent());
    assert_eq!((quoted.seq, quoted.code), (1_000, 1));

    let mut packet = ipv6_header(ICMPV6, 56);
    packet.extend([ICMPV6_UNREACHABLE, 3, 0, 0, 0, 0, 0, 0]);
    packet.extend(ipv6_header(TCP, 20));
    packet.extend(&tcp_header()[..8]);
    let Parsed::Unreachable(quoted) = parse(&frame(IPV6, &packet)) else {
        panic!("not an unreachable")
    };
    assert_eq!(
        (quoted.tuple.local_port, quoted.tuple.remote_port),
        (40_000, 8_000)
    );
    assert_eq!(
        (quoted.tuple.local, quoted.tuple.remote),
        ([0xfdfd_fdfd; 4], [0xfefe_fefe; 4])
    );
    assert_eq!((quoted.seq, quoted.code), (1_000, 3));
}

// [KERNEL-5]
#[test]
fn path_mtu_discovery_is_no_failure() {
    assert_eq!(parse(&unreachable_v4(FRAGMENTATION_NEEDED)), Parsed::Other);
}

proptest! {
    // An access beyond a head does not compile, and a head beyond the packet is what this looks for: a wrong bound
    // reads past the allocation or makes the program fail in the verifier.
    #[test]
    fn no_packet_is_read_beyond_its_end(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..160),
        shape in 0..7,
        cut in 0_usize..160,
    ) {
        let template = match shape {
            0 => ipv4_segment(0, 0, 20),
            1 => ipv4_segment(1, 8, 20),
            2 => unreachable_v4(1),
            3 => frame(IPV6, &[ipv6_header(HOP_BY_HOP, 40), vec![TCP, 0, 0, 0, 0, 0, 0, 0], tcp_header()].concat()),
            4 => frame(IPV6, &[ipv6_header(ICMPV6, 56), vec![1, 0, 0, 0, 0, 0, 0, 0], ipv6_header(TCP, 20)].concat()),
            _ => Vec::new(),
        };
        // Every fourth byte or so is random, the rest steers deep into the parser.
        for (at, byte) in template.into_iter().enumerate() {
            if at < bytes.len() && !bytes[at].is_multiple_of(16) {
                bytes[at] = byte;
            }
        }
        bytes.truncate(cut);
        let exact = bytes.into_boxed_slice();
        if let Parsed::Tcp(segment) = parse(&exact) {
            prop_assert!(exact.len() >= 54);
            prop_assert!(segment.payload <= 65_535);
        }
    }

    #[test]
    fn what_was_written_is_what_is_parsed(tags in 0_usize..3, words in 0_usize..11, payload in 0_usize..1400) {
        let segment = segment(&ipv4_segment(tags, words * 4, payload));
        prop_assert_eq!(segment.payload as usize, payload);
        prop_assert_eq!(segment.sent().local, segment.received().remote);
    }
}
