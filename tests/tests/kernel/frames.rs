//! Frames near what would come next on a connection: only those reach the corners of the flow machine.

use fastrand::Rng;
use lb_ebpf::Tuple;
use lb_ebpf::flow::Flow;
use lb_ebpf::packet::{flags, mapped};

/// A connection between two addresses that do not exist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) v6: bool,
    pub(crate) port: u16,
}

const SERVICE: u16 = 8000;

impl Pair {
    fn addresses(self) -> [Vec<u8>; 2] {
        if self.v6 {
            [vec![0xfd; 16], vec![0xfe; 16]]
        } else {
            [vec![10, 0, 0, 1], vec![10, 0, 0, 2]]
        }
    }

    pub(crate) fn tuple(self) -> Tuple {
        let words = |address: &[u8]| {
            let mut words = address
                .chunks_exact(4)
                .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
            match words.len() {
                1 => mapped(words.next().expect("one word")),
                _ => [(); 4].map(|()| words.next().expect("four words")),
            }
        };
        let [us, them] = self.addresses();
        Tuple {
            local: words(&us),
            remote: words(&them),
            local_port: self.port,
            remote_port: SERVICE,
        }
    }

    /// An Ethernet frame with `carried` in an IP packet of `protocol` from `source` to `destination`.
    fn packet(self, tag: bool, protocol: u8, [source, destination]: [&[u8]; 2], carried: &[u8]) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        if tag {
            bytes.extend([0x81, 0, 0, 5]);
        }
        bytes.extend(if self.v6 { [0x86, 0xdd] } else { [8, 0] });
        bytes.extend(self.header(protocol, [source, destination], carried.len()));
        bytes.extend(carried);
        bytes
    }

    fn header(self, protocol: u8, [source, destination]: [&[u8]; 2], length: usize) -> Vec<u8> {
        let length = |more: usize| {
            u16::try_from(length + more)
                .expect("a short packet")
                .to_be_bytes()
        };
        let start = if self.v6 {
            [&[0x60, 0, 0, 0], &length(0)[..], &[protocol, 64]].concat()
        } else {
            [&[0x45, 0], &length(20)[..], &[0, 0, 0x40, 0, 64, protocol, 0, 0]].concat()
        };
        [&start, source, destination].concat()
    }

    /// A segment, or now and then an ICMP error about one, sometimes damaged.
    pub(crate) fn frame(self, random: &mut Rng, flow: &Flow, out: bool) -> Vec<u8> {
        let [us, them] = self.addresses();
        let tag = random.u8(..4) == 0;
        let mut bytes = if !out && random.u8(..12) == 0 {
            self.packet(
                tag,
                if self.v6 { 58 } else { 1 },
                [&them, &us],
                &self.unreachable(random, flow),
            )
        } else {
            let ends: [&[u8]; 2] = if out { [&us, &them] } else { [&them, &us] };
            self.packet(tag, 6, ends, &self.segment(random, flow, out))
        };
        if random.u8(..20) == 0 {
            let at = random.usize(..bytes.len());
            bytes[at] ^= 1 << random.u8(..8);
        }
        if random.u8(..40) == 0 {
            bytes.truncate(random.usize(14..bytes.len()));
        }
        bytes
    }

    fn segment(self, random: &mut Rng, flow: &Flow, out: bool) -> Vec<u8> {
        use flags::{ACK, FIN, RST, SYN};
        let kinds = [SYN, ACK, ACK, ACK, ACK, ACK | FIN, RST, RST | ACK, SYN | ACK, ACK];
        let kind = kinds[random.usize(..kinds.len())];
        let (sent, heard) = (&flow.sent, &flow.heard);
        let (near, far) = if out {
            (sent.max, heard.max)
        } else {
            (heard.max, sent.max)
        };
        let seq = match random.u8(..12) {
            0 | 1 if kind & SYN != 0 && out => sent.isn,
            2 | 3 => near.wrapping_sub(1),
            4 => near.wrapping_sub(300),
            _ => near.wrapping_add(random.u32(..6)).wrapping_sub(3),
        };
        let ack = match random.u8(..3) {
            0 => sent.isn.wrapping_add(1),
            _ => far.wrapping_sub(random.u32(..3)),
        };
        let (source, destination) = if out {
            (self.port, SERVICE)
        } else {
            (SERVICE, self.port)
        };
        let window: u16 = if random.u8(..10) == 0 { 0 } else { 500 };
        let mut bytes = Vec::new();
        bytes.extend(source.to_be_bytes());
        bytes.extend(destination.to_be_bytes());
        bytes.extend(seq.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        bytes.extend([0x50, kind]);
        bytes.extend(window.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.resize(20 + [0, 0, 0, 1, 100, 300][random.usize(..6)], b'x');
        bytes
    }

    fn unreachable(self, random: &mut Rng, flow: &Flow) -> Vec<u8> {
        let [us, them] = self.addresses();
        let code = random.u8(..6);
        let seq = flow.heard.acked.wrapping_add(random.u32(..8)).wrapping_sub(4);
        let mut bytes = vec![if self.v6 { 1 } else { 3 }, code, 0, 0, 0, 0, 0, 0];
        bytes.extend(self.header(6, [&us, &them], 20));
        bytes.extend(self.port.to_be_bytes());
        bytes.extend(SERVICE.to_be_bytes());
        bytes.extend(seq.to_be_bytes());
        bytes
    }
}
