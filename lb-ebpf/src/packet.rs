//! Finds the TCP segment, or the quoted one of an ICMP unreachable, in a packet.
//!
//! Follows up to two VLAN tags, IPv4 options and three IPv6 extension headers; everything else is [`Parsed::Other`].
//! Fragments after the first carry no TCP header and are `Other` as well. A packet that ends early is `Other`: what
//! cannot be read is not counted, never guessed.

#![expect(
    clippy::cast_possible_truncation,
    reason = "offsets in headers are below 10,000, and a program has no use for the branch of a checked conversion"
)]

use crate::Tuple;
use crate::view::{Head, Packet};

/// `EtherType` of IPv4.
pub const IPV4: u16 = 0x0800;
/// `EtherType` of IPv6.
pub const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const ICMPV6: u8 = 58;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;
/// Extension headers followed: the verifier needs a bound, and honest traffic has at most two.
const EXTENSIONS: u32 = 3;

/// Bits of [`Segment::flags`].
pub mod flags {
    /// No more data from the sender.
    pub const FIN: u8 = 1;
    /// Opens a connection.
    pub const SYN: u8 = 2;
    /// Aborts a connection.
    pub const RST: u8 = 4;
    /// The acknowledgement number is meant.
    pub const ACK: u8 = 16;
}

/// What a packet holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A TCP segment.
    Tcp(Segment),
    /// An ICMP or `ICMPv6` destination unreachable about a TCP segment.
    Unreachable(Quoted),
    /// Nothing of interest, or cut short.
    Other,
}

/// A TCP segment's header fields and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sender's address, as in [`Tuple`].
    pub source: [u32; 4],
    /// Receiver's address.
    pub destination: [u32; 4],
    /// Sender's port.
    pub source_port: u16,
    /// Receiver's port.
    pub destination_port: u16,
    /// Sequence number of the first payload byte (or of the SYN).
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Payload bytes, counted from the IP header's length, not from what is in reach.
    pub payload: u32,
    /// Window, not scaled.
    pub window: u16,
    /// Bits of [`flags`].
    pub flags: u8,
}

impl Segment {
    /// The connection, for a segment that we send.
    #[inline(always)]
    pub const fn sent(&self) -> Tuple {
        Tuple {
            local: self.source,
            remote: self.destination,
            local_port: self.source_port,
            remote_port: self.destination_port,
        }
    }

    /// The connection, for a segment that we receive.
    #[inline(always)]
    pub const fn received(&self) -> Tuple {
        Tuple {
            local: self.destination,
            remote: self.source,
            local_port: self.destination_port,
            remote_port: self.source_port,
        }
    }
}

/// The segment of ours that an ICMP error quotes: its first eight bytes are all that every router sends back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// The connection of the quoted segment.
    pub tuple: Tuple,
    /// Its sequence number.
    pub seq: u32,
    /// Code of the error; the type is the family's "destination unreachable".
    pub code: u8,
}

/// IPv4's "fragmentation needed": a step of path MTU discovery, not a failure.
const FRAGMENTATION_NEEDED: u8 = 4;
const ICMP_UNREACHABLE: u8 = 3;
const ICMPV6_UNREACHABLE: u8 = 1;

/// The v4-mapped form of an IPv4 address in network order.
#[inline(always)]
pub const fn mapped(address: u32) -> [u32; 4] {
    [0, 0, u32::from_ne_bytes([0, 0, 0xff, 0xff]), address]
}

/// Parses from the Ethernet header on. Tags that the hardware took off are not in the packet.
#[inline(always)]
pub fn ethernet(packet: &Packet<'_>) -> Parsed {
    let Some(head) = packet.head::<14>(0) else {
        return Parsed::Other;
    };
    let outer = head.short::<12>();
    if outer != VLAN && outer != SERVICE_VLAN {
        return network(packet, outer, 14);
    }
    let Some(head) = packet.head::<18>(0) else {
        return Parsed::Other;
    };
    let inner = head.short::<16>();
    if inner != VLAN && inner != SERVICE_VLAN {
        return network(packet, inner, 18);
    }
    let Some(head) = packet.head::<22>(0) else {
        return Parsed::Other;
    };
    network(packet, head.short::<20>(), 22)
}

/// What an IP header says about the header that follows it.
#[derive(Clone, Copy)]
struct Upper {
    source: [u32; 4],
    destination: [u32; 4],
    protocol: u8,
    /// Where it begins.
    at: usize,
    /// Its length and that of what it carries.
    length: u32,
}

/// Parses from the IP header on, which starts at offset `at`; `protocol` is its `EtherType`.
#[inline(always)]
pub fn network(packet: &Packet<'_>, protocol: u16, at: usize) -> Parsed {
    // Both families meet here, before the next header's bounds are checked: a check in each branch is merged by the
    // compiler in a way that the verifier cannot follow.
    let upper = match protocol {
        IPV4 => ipv4(packet, at),
        IPV6 => ipv6(packet, at),
        _ => None,
    };
    let Some(upper) = upper else { return Parsed::Other };
    match (protocol, upper.protocol) {
        (_, TCP) => tcp(packet, &upper),
        (IPV4, ICMP) => icmp(packet, upper.at),
        (IPV6, ICMPV6) => icmpv6(packet, upper.at),
        _ => Parsed::Other,
    }
}

#[inline(always)]
fn ipv4(packet: &Packet<'_>, at: usize) -> Option<Upper> {
    let head = packet.head::<20>(at)?;
    let length = usize::from(head.byte::<0>() & 0xf) << 2;
    let offset = head.short::<6>() & 0x1fff;
    if head.byte::<0>() >> 4 != 4 || length < 20 || offset != 0 {
        return None;
    }
    let mut total = u32::from(head.short::<2>());
    if total == 0 {
        // Longer than the field can say (BIG TCP): the hook knows.
        total = packet.len().checked_sub(at as u32)?;
    }
    Some(Upper {
        source: mapped(head.word::<12>()),
        destination: mapped(head.word::<16>()),
        protocol: head.byte::<9>(),
        at: at + length,
        length: total.checked_sub(length as u32)?,
    })
}

#[inline(always)]
fn ipv6(packet: &Packet<'_>, at: usize) -> Option<Upper> {
    let head = packet.head::<40>(at)?;
    if head.byte::<0>() >> 4 != 6 {
        return None;
    }
    let mut rest = u32::from(head.short::<4>());
    if rest == 0 {
        rest = packet.len().checked_sub(at as u32 + 40)?;
    }
    let mut next = head.byte::<6>();
    let mut at = at + 40;
    let mut followed = 0;
    while followed < EXTENSIONS && next != TCP && next != ICMPV6 {
        followed += 1;
        let extension = packet.head::<8>(at)?;
        let length = match next {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => (usize::from(extension.byte::<1>()) + 1) << 3,
            // Only the first fragment, at offset zero, has the transport header.
            FRAGMENT if extension.short::<2>() & 0xfff8 == 0 => 8,
            _ => return None,
        };
        next = extension.byte::<0>();
        at += length;
        rest = rest.checked_sub(length as u32)?;
    }
    let (source, destination) = (head.address::<8>(), head.address::<24>());
    Some(Upper {
        source,
        destination,
        protocol: next,
        at,
        length: rest,
    })
}

#[inline(always)]
fn tcp(packet: &Packet<'_>, upper: &Upper) -> Parsed {
    let Some(head) = packet.head::<20>(upper.at) else {
        return Parsed::Other;
    };
    let header = u32::from(head.byte::<12>() >> 4) << 2;
    if header < 20 || header > upper.length {
        return Parsed::Other;
    }
    Parsed::Tcp(Segment {
        source: upper.source,
        destination: upper.destination,
        source_port: head.short::<0>(),
        destination_port: head.short::<2>(),
        seq: head.long::<4>(),
        ack: head.long::<8>(),
        payload: upper.length - header,
        window: head.short::<14>(),
        flags: head.byte::<13>(),
    })
}

/// Eight bytes of ICMP, the quoted IPv4 header without options, and the eight bytes of TCP that RFC 792 promises.
#[inline(always)]
fn icmp(packet: &Packet<'_>, at: usize) -> Parsed {
    let Some(head) = packet.head::<36>(at) else {
        return Parsed::Other;
    };
    let code = head.byte::<1>();
    let quotes_tcp = head.byte::<8>() == 0x45 && head.byte::<17>() == TCP;
    if head.byte::<0>() != ICMP_UNREACHABLE || code == FRAGMENTATION_NEEDED || !quotes_tcp {
        return Parsed::Other;
    }
    quoted::<36, 28, 30, 32>(head, mapped(head.word::<20>()), mapped(head.word::<24>()), code)
}

/// Eight bytes of `ICMPv6`, the quoted IPv6 header without extensions, and eight bytes of TCP.
#[inline(always)]
fn icmpv6(packet: &Packet<'_>, at: usize) -> Parsed {
    let Some(head) = packet.head::<56>(at) else {
        return Parsed::Other;
    };
    let quotes_tcp = head.byte::<8>() >> 4 == 6 && head.byte::<14>() == TCP;
    if head.byte::<0>() != ICMPV6_UNREACHABLE || !quotes_tcp {
        return Parsed::Other;
    }
    quoted::<56, 48, 50, 52>(head, head.address::<16>(), head.address::<32>(), head.byte::<1>())
}

#[inline(always)]
fn quoted<const N: usize, const LOCAL: usize, const REMOTE: usize, const SEQ: usize>(
    head: Head<'_, N>,
    local: [u32; 4],
    remote: [u32; 4],
    code: u8,
) -> Parsed {
    let tuple = Tuple {
        local,
        remote,
        local_port: head.short::<LOCAL>(),
        remote_port: head.short::<REMOTE>(),
    };
    Parsed::Unreachable(Quoted {
        tuple,
        seq: head.long::<SEQ>(),
        code,
    })
}

#[cfg(test)]
mod tests;
