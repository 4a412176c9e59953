//! The entry points: from a hook's context to a parsed packet. Nothing is ever dropped or changed.

use aya_ebpf::bindings::TC_ACT_UNSPEC;
use aya_ebpf::macros::{cgroup_skb, classifier};
use aya_ebpf::programs::{SkBuffContext, TcContext};
use lb_ebpf::Hook;
use lb_ebpf::packet::{self, Parsed};
use lb_ebpf::view::Packet;

use crate::observe::{self, Sight};

/// For tcx "next program", for clsact "as if this filter were not there": programs of others run as before.
const NEXT: i32 = TC_ACT_UNSPEC;
/// For a cgroup program, 1 lets the packet through.
const PASS: i32 = 1;

#[classifier]
pub(crate) fn lb_tc_in(context: TcContext) -> i32 {
    let sight = Sight {
        skb: context.skb.skb,
        hook: Hook::Tc,
    };
    match frame(&context) {
        Parsed::Tcp(segment) => observe::received(&sight, &segment),
        Parsed::Unreachable(quoted) => observe::unreachable(&sight, &quoted),
        Parsed::Other => {}
    }
    NEXT
}

#[classifier]
pub(crate) fn lb_tc_out(context: TcContext) -> i32 {
    if let Parsed::Tcp(segment) = frame(&context) {
        observe::sent(
            &Sight {
                skb: context.skb.skb,
                hook: Hook::Tc,
            },
            &segment,
        );
    }
    NEXT
}

#[cgroup_skb(ingress)]
pub(crate) fn lb_cg_in(context: SkBuffContext) -> i32 {
    // An ICMP error has no socket, so this hook never sees one.
    if let Parsed::Tcp(segment) = datagram(&context) {
        observe::received(
            &Sight {
                skb: context.skb.skb,
                hook: Hook::Cgroup,
            },
            &segment,
        );
    }
    PASS
}

#[cgroup_skb(egress)]
pub(crate) fn lb_cg_out(context: SkBuffContext) -> i32 {
    if let Parsed::Tcp(segment) = datagram(&context) {
        observe::sent(
            &Sight {
                skb: context.skb.skb,
                hook: Hook::Cgroup,
            },
            &segment,
        );
    }
    PASS
}

/// On an interface, packets begin with their Ethernet header.
#[inline(always)]
fn frame(context: &TcContext) -> Parsed {
    let (start, end) = (context.data() as *const u8, context.data_end() as *const u8);
    // SAFETY: the kernel keeps the packet where it says for as long as the program runs.
    packet::ethernet(&unsafe { Packet::from_pointers(start, end, context.len()) })
}

/// At a cgroup, packets begin with their IP header.
#[inline(always)]
fn datagram(context: &SkBuffContext) -> Parsed {
    let skb = context.skb.skb;
    // SAFETY: the kernel hands the program a valid context.
    let (start, end, len, protocol) = unsafe {
        (
            (*skb).data as usize,
            (*skb).data_end as usize,
            (*skb).len,
            (*skb).protocol,
        )
    };
    // SAFETY: the kernel keeps the packet where it says for as long as the program runs.
    let packet = unsafe { Packet::from_pointers(start as *const u8, end as *const u8, len) };
    packet::network(&packet, u16::from_be(protocol as u16), 0)
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Never reached: the verifier would refuse the loop. The linker wants a handler all the same.
    loop {}
}

/// Some helpers are for programs under a licence compatible with the GPL.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
