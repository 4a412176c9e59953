//! Which hooks see the endpoints. Pure.

use std::net::IpAddr;

use super::interfaces::Interface;

/// Which hooks may be used (`kernel.attach`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attach {
    /// Interfaces where packets begin with an Ethernet header, the cgroup for the rest.
    #[default]
    Auto,
    /// The cgroup for everything.
    Cgroup,
    /// Interfaces only.
    Tc,
}

/// What is to be attached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Names of interfaces.
    pub(super) interfaces: Vec<String>,
    pub(super) cgroup: bool,
}

/// Plans the hooks for endpoints that are reached from `sources`, one for each (`None`: no route now).
///
/// Loopback, tunnels and other devices without Ethernet are the cgroup's, and so is what has no route or an unknown
/// interface: there its programs see the traffic wherever it goes. So it is while no address is known at all. `named`
/// interfaces are taken as they are. [KERNEL-16]
pub(super) fn plan(
    attach: Attach,
    named: &[String],
    interfaces: &[Interface],
    sources: &[Option<IpAddr>],
) -> Plan {
    if attach == Attach::Cgroup {
        return Plan {
            interfaces: Vec::new(),
            cgroup: true,
        };
    }
    let mut plan = Plan {
        interfaces: named.to_vec(),
        cgroup: sources.is_empty() && named.is_empty(),
    };
    for source in sources {
        let leads =
            |interface: &&Interface| source.is_some_and(|source| interface.addresses.contains(&source));
        match interfaces.iter().find(leads) {
            Some(interface) if interface.ethernet => {
                if named.is_empty() && !plan.interfaces.contains(&interface.name) {
                    plan.interfaces.push(interface.name.clone());
                }
            }
            Some(_) | None => plan.cgroup = true,
        }
    }
    if attach == Attach::Tc {
        plan.cgroup = false;
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Vec<Interface> {
        let interface = |name: &str, ethernet, address: &str| Interface {
            name: name.to_owned(),
            index: 0,
            ethernet,
            addresses: vec![address.parse().expect("an address")],
        };
        vec![
            interface("lo", false, "127.0.0.1"),
            interface("eth0", true, "10.0.0.1"),
            interface("eth1", true, "fd00::1"),
            interface("wg0", false, "10.9.0.1"),
        ]
    }

    fn planned(attach: Attach, named: &[&str], sources: &[&str]) -> (Vec<String>, bool) {
        let named: Vec<String> = named.iter().map(|&name| name.to_owned()).collect();
        let sources: Vec<_> = sources.iter().map(|source| source.parse().ok()).collect();
        let plan = plan(attach, &named, &host(), &sources);
        (plan.interfaces, plan.cgroup)
    }

    // [KERNEL-16]
    #[test]
    fn ethernet_is_seen_at_the_interface_and_the_rest_at_the_cgroup() {
        let auto = |sources: &[&str]| planned(Attach::Auto, &[], sources);
        assert_eq!(
            auto(&["10.0.0.1", "10.0.0.1", "fd00::1"]),
            (vec!["eth0".into(), "eth1".into()], false)
        );
        assert_eq!(auto(&["127.0.0.1"]), (vec![], true));
        assert_eq!(auto(&["10.0.0.1", "10.9.0.1"]), (vec!["eth0".into()], true));
        assert_eq!(auto(&["no route"]), (vec![], true));
        assert_eq!(auto(&[]), (vec![], true));
        assert_eq!(auto(&["192.0.2.7"]), (vec![], true));
    }

    #[test]
    fn the_operators_word_is_final() {
        assert_eq!(planned(Attach::Cgroup, &[], &["10.0.0.1"]), (vec![], true));
        assert_eq!(
            planned(Attach::Tc, &[], &["10.0.0.1", "127.0.0.1"]),
            (vec!["eth0".into()], false)
        );
        assert_eq!(
            planned(Attach::Auto, &["eth1"], &["10.0.0.1"]),
            (vec!["eth1".into()], false)
        );
    }
}
