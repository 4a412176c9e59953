//! The kernel programs as they were built into this binary, and what makes them ready to attach.

#![expect(unsafe_code, reason = "map keys and values are declared to be plain data")]

use aya::maps::{Array, MapError};
use aya::programs::{CgroupSkb, SchedClassifier};
use aya::{Ebpf, EbpfLoader, Pod};
use lb_ebpf::flow::Flow;
use lb_ebpf::{Config, LAYOUT, Pending, Stats, Tuple};

use super::error::Missing;

/// The object, if there was one when this binary was built (`lb/build.rs`).
pub fn embedded() -> Option<&'static [u8]> {
    #[cfg(lb_ebpf_object)]
    {
        Some(aya::include_bytes_aligned!(env!("LB_EBPF_OBJECT")))
    }
    #[cfg(not(lb_ebpf_object))]
    {
        None
    }
}

/// A key or value of a map.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(super) struct Plain<T>(pub(super) T);

// SAFETY: these types are `repr(C)`, made of integers and without padding (asserted beside their definitions), and the
// wrapper adds nothing.
unsafe impl Pod for Plain<Config> {}
// SAFETY: as above.
unsafe impl Pod for Plain<Flow> {}
// SAFETY: as above.
unsafe impl Pod for Plain<Pending> {}
// SAFETY: as above.
unsafe impl Pod for Plain<Stats> {}
// SAFETY: as above.
unsafe impl Pod for Plain<Tuple> {}

/// The programs on interfaces, by direction.
pub(super) const TC: [&str; 2] = ["lb_tc_in", "lb_tc_out"];
/// The programs on the cgroup, by direction.
pub(super) const CGROUP: [&str; 2] = ["lb_cg_in", "lb_cg_out"];

/// Creates the maps, with room for `flows` connections, and sets the thresholds.
pub(super) fn load(object: &[u8], config: Config, flows: u32) -> Result<Ebpf, Missing> {
    let mut loader = EbpfLoader::new();
    loader.map_max_entries("FLOWS", flows);
    let mut loaded = loader
        .load(object)
        .map_err(|error| Missing::new("creating the maps", &error))?;
    let failed = |error: MapError| Missing::new("setting the thresholds", &error);
    let version = loaded.map("LAYOUT").ok_or(Missing::Layout)?;
    if Array::<_, u32>::try_from(version).map_err(failed)?.len() != LAYOUT {
        return Err(Missing::Layout);
    }
    let map = loaded.map_mut("CONFIG").ok_or(Missing::Layout)?;
    let mut map = Array::<_, Plain<Config>>::try_from(map).map_err(failed)?;
    map.set(0, Plain(config), 0).map_err(failed)?;
    Ok(loaded)
}

/// A program on interfaces, verified by the kernel.
pub(super) fn classifier<'a>(loaded: &'a mut Ebpf, name: &str) -> Result<&'a mut SchedClassifier, Missing> {
    let program: &mut SchedClassifier = loaded
        .program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or(Missing::Layout)?;
    if program.fd().is_err() {
        program
            .load()
            .map_err(|error| Missing::new(format!("loading {name}"), &error))?;
    }
    Ok(program)
}

/// A program on the cgroup, verified by the kernel.
pub(super) fn cgroup_skb<'a>(loaded: &'a mut Ebpf, name: &str) -> Result<&'a mut CgroupSkb, Missing> {
    let program: &mut CgroupSkb = loaded
        .program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or(Missing::Layout)?;
    if program.fd().is_err() {
        program
            .load()
            .map_err(|error| Missing::new(format!("loading {name}"), &error))?;
    }
    Ok(program)
}
