//! The network interfaces of this host, and which of them lead to the endpoints.

#![expect(unsafe_code, reason = "getifaddrs hands out a linked list of raw pointers")]

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::ptr;

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    /// The kernel's number for it; another one if an interface of that name went and came again.
    pub(super) index: u32,
    /// Whether its packets begin with an Ethernet header, which the programs on interfaces expect.
    pub(super) ethernet: bool,
    pub(super) addresses: Vec<IpAddr>,
}

/// All interfaces with their addresses.
pub(super) fn list() -> io::Result<Vec<Interface>> {
    let mut head = ptr::null_mut();
    // SAFETY: `head` is a place for one pointer.
    if unsafe { libc::getifaddrs(&raw mut head) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut interfaces = Vec::new();
    let mut next = head.cast_const();
    // SAFETY: `next` is null or an entry of the list, which lives until `freeifaddrs` below.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: the name of an entry is a string that lives as long as the entry.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        let (Ok(name), false) = (name.to_str(), entry.ifa_addr.is_null()) else {
            continue;
        };
        let interface = named(&mut interfaces, name);
        // SAFETY: an address that is not null is as long as its family says.
        match unsafe { read(entry.ifa_addr) } {
            Some(Address::Ip(address)) => interface.addresses.push(address),
            Some(Address::Link { index, ethernet }) => {
                (interface.index, interface.ethernet) = (index, ethernet);
            }
            None => {}
        }
    }
    // SAFETY: `head` came from `getifaddrs` and nothing of it is used any more.
    unsafe { libc::freeifaddrs(head) };
    Ok(interfaces)
}

fn named<'a>(interfaces: &'a mut Vec<Interface>, name: &str) -> &'a mut Interface {
    let at = interfaces
        .iter()
        .position(|interface| interface.name == name)
        .unwrap_or_else(|| {
            interfaces.push(Interface {
                name: name.to_owned(),
                ..Interface::default()
            });
            interfaces.len() - 1
        });
    &mut interfaces[at]
}

enum Address {
    Ip(IpAddr),
    Link { index: u32, ethernet: bool },
}

/// # Safety
/// `address` points to a socket address that is as long as its family says.
unsafe fn read(address: *const libc::sockaddr) -> Option<Address> {
    // SAFETY: every socket address begins with its family; the others are read only for the family that has them, and
    // unaligned because the list promises no alignment.
    unsafe {
        match i32::from((&raw const (*address).sa_family).read_unaligned()) {
            libc::AF_INET => {
                let address = address
                    .cast::<libc::sockaddr_in>()
                    .read_unaligned()
                    .sin_addr
                    .s_addr;
                Some(Address::Ip(Ipv4Addr::from(u32::from_be(address)).into()))
            }
            libc::AF_INET6 => {
                let address = address
                    .cast::<libc::sockaddr_in6>()
                    .read_unaligned()
                    .sin6_addr
                    .s6_addr;
                Some(Address::Ip(Ipv6Addr::from(address).into()))
            }
            libc::AF_PACKET => {
                let link = address.cast::<libc::sockaddr_ll>().read_unaligned();
                let index = u32::try_from(link.sll_ifindex).unwrap_or_default();
                Some(Address::Link {
                    index,
                    ethernet: link.sll_hatype == libc::ARPHRD_ETHER,
                })
            }
            _ => None,
        }
    }
}

/// Our address on the way to `destination`; `None` if there is no way. Connecting a datagram socket asks the routing
/// table and sends nothing.
pub(super) fn source(destination: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match destination {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Any port but 0 will do.
    socket.connect((destination, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_listed_and_leads_to_itself() {
        let interfaces = list().expect("every host has interfaces");
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let loopback = interfaces
            .iter()
            .find(|interface| interface.addresses.contains(&here));
        assert!(loopback.is_some_and(|interface| !interface.ethernet));
        assert_eq!(source(here), Some(here));
    }
}
