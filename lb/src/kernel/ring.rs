//! The events of the programs, as they come.

#![expect(
    unsafe_code,
    reason = "polling a descriptor asks for a promise about who closes it"
)]

use std::io;

use aya::maps::{Map, MapData, RingBuf};
use lb_ebpf::Event;
use tokio::io::unix::AsyncFd;

use super::error::Missing;

/// The reader's end of the map `EVENTS`.
pub(super) struct Ring(AsyncFd<RingBuf<MapData>>);

impl Ring {
    /// Must be called within a runtime with I/O enabled.
    pub(super) fn new(map: Map) -> Result<Self, Missing> {
        let ring = RingBuf::try_from(map).map_err(|error| Missing::new("opening the ring", &error))?;
        // SAFETY: the ring owns its descriptor, gives out the same one at every call and closes it when it is dropped,
        // which is after `AsyncFd` has taken it out of the poll.
        let polled = unsafe { AsyncFd::register(ring) };
        Ok(Self(
            polled.map_err(|error| Missing::new("polling the ring", &error))?,
        ))
    }

    /// Waits until there is something and hands over all that is there. Cancel safe: nothing is taken before the wait
    /// is over.
    pub(super) async fn drain(&mut self, mut on: impl FnMut(Event)) -> io::Result<()> {
        let mut ready = self.0.readable_mut().await?;
        // Readiness is told once per arrival, so the ring must be empty before it is cleared.
        while let Some(record) = ready.get_inner_mut().next() {
            // A record of another length cannot be ours: the layout was checked at load.
            if let Some(event) = Event::read(&record) {
                on(event);
            }
        }
        ready.clear_ready();
        Ok(())
    }
}
