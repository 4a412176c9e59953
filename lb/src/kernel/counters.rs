//! What the programs have counted, added up over the CPUs.

use std::io;

use aya::maps::{MapData, PerCpuArray, PerCpuValues};
use aya::util::nr_cpus;
use lb_ebpf::Stats;

use super::object::Plain;

/// A reader of the map `STATS`.
pub struct Counters(PerCpuArray<MapData, Plain<Stats>>);

impl Counters {
    pub(super) fn new(map: PerCpuArray<MapData, Plain<Stats>>) -> Self {
        Self(map)
    }

    /// What stands at `slot` now; a few microseconds.
    pub fn read(&self, slot: u16) -> io::Result<Stats> {
        let cpus = self.0.get(&u32::from(slot), 0).map_err(io::Error::other)?;
        let mut sum = Stats::ZERO;
        for Plain(stats) in cpus.iter() {
            sum.merge(stats);
        }
        Ok(sum)
    }

    /// Starts `slot` from nothing.
    pub(super) fn clear(&mut self, slot: u16) -> io::Result<()> {
        let cpus = nr_cpus().map_err(|(_, error)| error)?;
        let zero = PerCpuValues::try_from(vec![Plain(Stats::ZERO); cpus])?;
        self.0.set(u32::from(slot), zero, 0).map_err(io::Error::other)
    }
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Counters")
    }
}
