//! Brings the programs to their hooks, as high on the ladder as this kernel and our privilege reach.
//!
//! ```text
//!   interface:  tcx ── EINVAL, EOPNOTSUPP: kernel before 6.6 ──▶ clsact ── fails ──▶ the cgroup
//!   cgroup:     its own ── not writable ──▶ missing
//! ```
//!
//! What the kernel answers decides, never its version: distributions carry features back. tcx and cgroup attachments
//! are links that vanish with the process, whatever ends it. A clsact filter stays behind after a kill, so a start
//! first removes filters of our name; the qdisc itself may be somebody else's and is left alone. [KERNEL-18]

use std::collections::BTreeMap;
use std::net::IpAddr;

use aya::Ebpf;
use aya::programs::tc::{self, NlOptions, TcAttachOptions};
use aya::programs::{CgroupAttachMode, CgroupSkbAttachType, LinkOrder, ProgramError, TcAttachType};

use super::cgroup::Cgroup;
use super::error::{Missing, errno};
use super::interfaces::{self, Interface};
use super::object::{self, CGROUP, TC};
use super::plan::{Attach, Plan, plan};

/// How much of the ladder is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rungs {
    /// Programs on interfaces.
    pub tc: bool,
    /// Programs on the cgroup.
    pub cgroup: bool,
}

impl Rungs {
    /// The rungs in one word, as the metric `lb_kernel_mode` shows them.
    pub fn name(self) -> &'static str {
        match (self.tc, self.cgroup) {
            (true, true) => "tc+cgroup",
            (true, false) => "tc",
            (false, true) => "cgroup",
            (false, false) => "off",
        }
    }
}

/// The programs on their hooks; dropping it takes them off.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) loaded: Ebpf,
    cgroup: Option<Cgroup>,
    /// By name, with the number that the interface had when it was attached to.
    interfaces: BTreeMap<String, u32>,
}

/// The hooks that an operator allows.
#[derive(Clone, Debug, Default)]
pub(super) struct Wish {
    pub(super) attach: Attach,
    pub(super) interfaces: Vec<String>,
}

const DIRECTIONS: [TcAttachType; 2] = [TcAttachType::Ingress, TcAttachType::Egress];
const CGROUP_DIRECTIONS: [CgroupSkbAttachType; 2] =
    [CgroupSkbAttachType::Ingress, CgroupSkbAttachType::Egress];

impl Attached {
    pub(super) fn new(loaded: Ebpf) -> Self {
        Self {
            loaded,
            cgroup: None,
            interfaces: BTreeMap::new(),
        }
    }

    pub(super) fn rungs(&self) -> Rungs {
        Rungs {
            tc: !self.interfaces.is_empty(),
            cgroup: self.cgroup.is_some(),
        }
    }

    /// Sees to it that what goes to `destinations` is seen, adding hooks where needed; what is there stays. Returns
    /// what could not be had.
    pub(super) fn cover(&mut self, wish: &Wish, destinations: &[IpAddr]) -> Vec<Missing> {
        let sources: Vec<_> = destinations.iter().map(|&to| interfaces::source(to)).collect();
        let present = interfaces::list().unwrap_or_default();
        let Plan {
            interfaces,
            mut cgroup,
        } = plan(wish.attach, &wish.interfaces, &present, &sources);
        let mut missing = Vec::new();
        for name in interfaces {
            if self.interfaces.contains_key(&name) {
                continue;
            }
            match self.interface(&name, &present) {
                Ok(index) => {
                    self.interfaces.insert(name, index);
                }
                Err(why) => {
                    missing.push(why);
                    cgroup |= wish.attach == Attach::Auto;
                }
            }
        }
        if cgroup && self.cgroup.is_none() {
            match self.own_cgroup() {
                Ok(own) => self.cgroup = Some(own),
                Err(why) => missing.push(why),
            }
        }
        missing
    }

    /// Puts the programs back on interfaces that went away and came again under their old name. What fails is tried
    /// again at the next call; without the programs the interface is unobserved, which is no verdict. [KERNEL-23]
    pub(super) fn follow(&mut self) {
        let present = interfaces::list().unwrap_or_default();
        let known: Vec<_> = self
            .interfaces
            .iter()
            .map(|(name, &index)| (name.clone(), index))
            .collect();
        for (name, index) in known {
            let now = present.iter().find(|interface| interface.name == name);
            if now.is_none_or(|interface| interface.index == index) {
                continue;
            }
            if let Ok(index) = self.interface(&name, &present) {
                self.interfaces.insert(name, index);
            }
        }
    }

    /// Attaches to one interface and returns its number.
    fn interface(&mut self, name: &str, present: &[Interface]) -> Result<u32, Missing> {
        let unfit = |why: &str| Missing::Kernel {
            what: format!("attaching to {name}"),
            why: why.to_owned(),
        };
        let interface = present
            .iter()
            .find(|interface| interface.name == name)
            .ok_or_else(|| unfit("no such interface"))?;
        if !interface.ethernet {
            return Err(unfit("not an Ethernet interface"));
        }
        for (program, direction) in TC.into_iter().zip(DIRECTIONS) {
            let classifier = object::classifier(&mut self.loaded, program)?;
            let link = TcAttachOptions::TcxOrder(LinkOrder::default());
            let Err(error) = classifier.attach_with_options(name, direction, link) else {
                continue;
            };
            let failed = |error: &ProgramError| Missing::new(format!("attaching {program} to {name}"), error);
            match errno(&error) {
                // This very program is there already, from a try that failed halfway.
                Some(libc::EEXIST) => continue,
                number if !means_no_tcx(number) => return Err(failed(&error)),
                _ => {}
            }
            // Both may fail without harm: there is usually nothing to remove, and often a clsact already.
            drop(tc::qdisc_detach_program(name, direction, program));
            drop(tc::qdisc_add_clsact(name));
            let filter = TcAttachOptions::Netlink(NlOptions::default());
            classifier
                .attach_with_options(name, direction, filter)
                .map_err(|error| failed(&error))?;
        }
        Ok(interface.index)
    }

    fn own_cgroup(&mut self) -> Result<Cgroup, Missing> {
        let cgroup = Cgroup::own().map_err(|error| Missing::of_cgroup("making a cgroup", &error))?;
        let directory = cgroup
            .open()
            .map_err(|error| Missing::of_cgroup("opening the cgroup", &error))?;
        for (program, direction) in CGROUP.into_iter().zip(CGROUP_DIRECTIONS) {
            // Links are always one among several, whatever the mode says; only this mode is accepted with them.
            object::cgroup_skb(&mut self.loaded, program)?
                .attach(&directory, direction, CgroupAttachMode::Single)
                .map_err(|error| Missing::new(format!("attaching {program} to the cgroup"), &error))?;
        }
        Ok(cgroup)
    }
}

/// Whether that is what a kernel without tcx answers to a tcx link.
fn means_no_tcx(errno: Option<i32>) -> bool {
    matches!(errno, Some(libc::EINVAL | libc::EOPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;

    // [KERNEL-18]
    #[test]
    fn the_kernels_answer_decides_whether_clsact_is_tried() {
        assert!(means_no_tcx(Some(libc::EINVAL)));
        assert!(means_no_tcx(Some(libc::EOPNOTSUPP)));
        for other in [libc::EPERM, libc::EBUSY, libc::EEXIST, libc::ENODEV] {
            assert!(!means_no_tcx(Some(other)));
        }
        assert!(!means_no_tcx(None));
    }

    #[test]
    fn the_rungs_have_one_name() {
        assert_eq!(
            Rungs {
                tc: true,
                cgroup: false
            }
            .name(),
            "tc"
        );
        assert_eq!(Rungs::default().name(), "off");
    }
}
