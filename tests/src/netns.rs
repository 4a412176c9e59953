//! Networks of their own, in which faults can be made: proxy ── router ── server, each in a namespace.
//!
//! ```text
//!   proxy  p0 10.1.1.1 ─── 10.1.1.254 rp  router  rs 10.2.2.254 ─── 10.2.2.2 s0  server
//!             fd01::1  ─── fd01::fe                  fd02::fe   ─── fd02::2
//! ```
//!
//! A fault is made at the router, so that neither end is told anything by its own stack. Needs root, `ip` and `nft`.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::process::{self, Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::PATIENCE;

/// Which addresses a test talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The server's address.
    pub fn server(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::new(10, 2, 2, 2).into(),
            Self::V6 => Ipv6Addr::new(0xfd02, 0, 0, 0, 0, 0, 0, 2).into(),
        }
    }

    /// What nft calls it.
    fn nft(self) -> &'static str {
        match self {
            Self::V4 => "ip",
            Self::V6 => "ip6",
        }
    }

    fn flag(self) -> &'static str {
        match self {
            Self::V4 => "-4",
            Self::V6 => "-6",
        }
    }
}

/// A cable between an end and the router.
struct Cable {
    device: &'static str,
    addresses: [&'static str; 2],
    router_device: &'static str,
    router_addresses: [&'static str; 2],
    /// The router's addresses without their prefixes.
    via: [&'static str; 2],
}

const PROXY: Cable = Cable {
    device: "p0",
    addresses: ["10.1.1.1/24", "fd01::1/64"],
    router_device: "rp",
    router_addresses: ["10.1.1.254/24", "fd01::fe/64"],
    via: ["10.1.1.254", "fd01::fe"],
};

const SERVER: Cable = Cable {
    device: "s0",
    addresses: ["10.2.2.2/24", "fd02::2/64"],
    router_device: "rs",
    router_addresses: ["10.2.2.254/24", "fd02::fe/64"],
    via: ["10.2.2.254", "fd02::fe"],
};

/// Three namespaces; dropping it removes them.
#[derive(Debug)]
pub struct Network {
    prefix: String,
}

static NETWORKS: AtomicU32 = AtomicU32::new(0);

impl Network {
    /// A new network without faults.
    pub fn new() -> io::Result<Self> {
        let number = NETWORKS.fetch_add(1, Ordering::Relaxed);
        let network = Self {
            prefix: format!("lb{}-{number}", process::id()),
        };
        let [proxy, router, server] = ["p", "r", "s"].map(|end| network.namespace(end));
        for name in [&proxy, &router, &server] {
            ip(&["netns", "add", name])?;
            // Duplicate address detection would make the first second of IPv6 a fault of its own; it is off where both
            // say so.
            let detection = ["ipv6/conf/all/accept_dad", "ipv6/conf/default/accept_dad"];
            within(name, || detection.into_iter().try_for_each(|key| tune(key, "0")))?;
            ip_within(name, &["link", "set", "lo", "up"])?;
        }
        plug(&proxy, &router, &PROXY)?;
        plug(&server, &router, &SERVER)?;
        within(&router, || {
            tune("ipv4/ip_forward", "1")?;
            tune("ipv6/conf/all/forwarding", "1")?;
            // A router answers a peer with about one error a second, the faults here come faster.
            tune("ipv4/icmp_ratelimit", "0")?;
            tune("ipv6/icmp/ratelimit", "0")
        })?;
        network.at_proxy(|| [Family::V4, Family::V6].into_iter().try_for_each(settle))?;
        Ok(network)
    }

    /// Runs `body` on a thread of its own at the proxy's end and returns its result.
    ///
    /// # Panics
    /// If `body` does, or if the namespace cannot be entered.
    pub fn at_proxy<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        self.at("p", body)
    }

    /// As [`Network::at_proxy`], at the server's end: processes that `body` starts are there as well.
    pub fn at_server<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        self.at("s", body)
    }

    fn at<T: Send>(&self, end: &str, body: impl FnOnce() -> T + Send) -> T {
        let name = self.namespace(end);
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter(&name).expect("the namespaces were made by `new`");
                body()
            });
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `body` on a detached thread at the server's end.
    pub fn spawn_at_server(&self, body: impl FnOnce() + Send + 'static) {
        let name = self.namespace("s");
        thread::spawn(move || {
            enter(&name).expect("the namespace of the server was made by `new`");
            body();
        });
    }

    /// Takes the proxy's interface away and makes it anew.
    pub fn replug(&self) -> io::Result<()> {
        let [proxy, router] = ["p", "r"].map(|end| self.namespace(end));
        ip_within(&proxy, &["link", "del", PROXY.device])?;
        plug(&proxy, &router, &PROXY)
    }

    /// Packets through the router vanish.
    pub fn blackhole(&self) -> io::Result<()> {
        self.drop_packets("drop")
    }

    /// Packets of one connection vanish, named by its port at the proxy's end.
    pub fn blackhole_port(&self, port: u16) -> io::Result<()> {
        self.drop_packets(&format!("tcp sport {port} drop; tcp dport {port} drop"))
    }

    /// Packets to and from one server vanish, named by where it listens at the server's end.
    pub fn blackhole_server(&self, server: SocketAddr) -> io::Result<()> {
        let family = if server.is_ipv4() { Family::V4 } else { Family::V6 };
        let (protocol, address, port) = (family.nft(), server.ip(), server.port());
        self.drop_packets(&format!(
            "{protocol} daddr {address} tcp dport {port} drop; {protocol} saddr {address} tcp sport {port} drop"
        ))
    }

    /// That many percent of the packets vanish, in each direction, at random.
    pub fn lose(&self, percent: u32) -> io::Result<()> {
        self.drop_packets(&format!("numgen random mod 100 < {percent} drop"))
    }

    /// The router answers packets to the server with an ICMP error. Not by a route: of what a route answers there is a
    /// limit, which a namespace cannot lift.
    pub fn unreachable(&self, family: Family) -> io::Result<()> {
        let (protocol, server) = (family.nft(), family.server());
        self.drop_packets(&format!(
            "{protocol} daddr {server} reject with icmpx type host-unreachable"
        ))
    }

    /// Ends all faults.
    pub fn heal(&self) {
        // There is nothing to flush where no fault was made.
        drop(self.at_router(&["nft", "flush ruleset"]));
    }

    fn drop_packets(&self, rule: &str) -> io::Result<()> {
        let rules = format!(
            "table inet fault {{ chain forward {{ type filter hook forward priority 0; {rule}; }}; }}"
        );
        self.at_router(&["nft", &rules])
    }

    fn at_router(&self, command: &[&str]) -> io::Result<()> {
        within(&self.namespace("r"), || run(command))
    }

    fn namespace(&self, end: &str) -> String {
        format!("{}{end}", self.prefix)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for end in ["p", "r", "s"] {
            drop(ip(&["netns", "del", &self.namespace(end)]));
        }
    }
}

/// Lays a cable and sends all that is not local through it.
fn plug(end: &str, router: &str, cable: &Cable) -> io::Result<()> {
    let Cable {
        device,
        router_device,
        ..
    } = cable;
    let peer = ["type", "veth", "peer", "name", router_device, "netns", router];
    ip(&[&["link", "add", device, "netns", end], &peer[..]].concat())?;
    for (name, device, addresses) in [
        (end, device, cable.addresses),
        (router, router_device, cable.router_addresses),
    ] {
        for address in addresses {
            ip_within(name, &["addr", "add", address, "dev", device])?;
        }
        ip_within(name, &["link", "set", device, "up"])?;
    }
    for (family, via) in [Family::V4, Family::V6].into_iter().zip(cable.via) {
        ip_within(end, &[family.flag(), "route", "add", "default", "via", via])?;
    }
    Ok(())
}

/// Waits until a packet and its answer have found their way: a new link comes up, and neighbours find each other, in
/// their own time, which must not be taken for a fault.
fn settle(family: Family) -> io::Result<()> {
    let nobody = SocketAddr::new(family.server(), 1);
    let patience = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect_timeout(&nobody, Duration::from_millis(100)) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
            Err(error) if Instant::now() > patience => return Err(error),
            _ => {}
        }
    }
}

/// What `body` gives on a thread inside of a namespace, whose children are there as well.
fn within(name: &str, body: impl FnOnce() -> io::Result<()> + Send) -> io::Result<()> {
    thread::scope(|scope| {
        let inside = scope.spawn(|| enter(name).and_then(|()| body()));
        inside
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Moves this thread into a namespace. Not `ip netns exec`, which mounts another `/sys` and so hides the cgroups, and
/// which cannot mount at all where the root is no mount point, as in a chroot.
fn enter(name: &str) -> io::Result<()> {
    let namespace = File::open(format!("/run/netns/{name}"))?;
    Ok(move_into_link_name_space(
        namespace.as_fd(),
        Some(LinkNameSpaceType::Network),
    )?)
}

/// Sets a setting of the namespace that this thread is in.
fn tune(key: &str, value: &str) -> io::Result<()> {
    std::fs::write(format!("/proc/sys/net/{key}"), value)
}

fn ip(arguments: &[&str]) -> io::Result<()> {
    run(&[&["ip"], arguments].concat())
}

/// Not by `ip -n`, for the reason given at [`enter`].
fn ip_within(name: &str, arguments: &[&str]) -> io::Result<()> {
    within(name, || ip(arguments))
}

fn run(command: &[&str]) -> io::Result<()> {
    let Output { status, stderr, .. } = Command::new(command[0]).args(&command[1..]).output()?;
    if status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&stderr);
    Err(io::Error::other(format!(
        "{}: {}",
        command.join(" "),
        stderr.trim()
    )))
}
