//! What signals do, and how a daemon comes to its end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::handover::Desk;
use super::serving::Serving;
use super::{Daemon, Source, service_manager};

/// Serves until TERM, INT or QUIT, then drains; a second one ends the drain at once. Reloads from `source` whenever that
/// is asked for, and leaves to a successor.
pub async fn until_drained(mut daemon: Daemon, source: &Source) -> io::Result<()> {
    let mut ending = Ending::new()?;
    let desk = Desk::open(source);
    if let Err(error) = &desk {
        tracing::warn!(%error, "no successor can take over, and `lb reload` does not reach this process");
    }
    let mut serving = Serving::new(Habits::new()?, desk.ok(), source, &daemon);
    service_manager::ready();
    let successor = tokio::select! {
        biased;
        name = ending.next() => {
            tracing::info!(signal = name, "draining");
            None
        }
        successor = serving.until_taken(&mut daemon) => Some(successor),
    };
    daemon.requests.close();
    // From here on nobody who comes is heard; a successor finds the place free.
    drop(serving);
    let draining = async {
        match successor {
            None => daemon.drain().await,
            Some(left) => {
                tracing::info!("taken over: draining");
                daemon.yield_to(left).await;
            }
        }
    };
    tokio::select! {
        biased;
        name = ending.next() => tracing::warn!(signal = name, "second signal: ending at once"),
        () = draining => {}
        () = daemon.follow_names() => {}
    }
    daemon.stop();
    tracing::info!("stopped");
    Ok(())
}

/// The signals that end the process.
struct Ending {
    int: Signal,
    quit: Signal,
    term: Signal,
}

impl Ending {
    fn new() -> io::Result<Self> {
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            term: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.int.recv() => "INT",
            _ = self.quit.recv() => "QUIT",
            _ = self.term.recv() => "TERM",
        }
    }
}

/// The signals that kill a process that does not handle them, and that operators send by habit.
pub(super) struct Habits {
    hup: Signal,
    usr1: Signal,
    usr2: Signal,
    said: bool,
}

impl Habits {
    fn new() -> io::Result<Self> {
        Ok(Self {
            hup: signal(SignalKind::hangup())?,
            usr1: signal(SignalKind::user_defined1())?,
            usr2: signal(SignalKind::user_defined2())?,
            said: false,
        })
    }

    /// Waits for a HUP, and takes the others meanwhile.
    pub(super) async fn hup(&mut self) {
        loop {
            tokio::select! {
                _ = self.hup.recv() => return,
                _ = self.usr1.recv() => tracing::info!("USR1: logs go to stderr, there is no file to reopen"),
                _ = self.usr2.recv() => {
                    if !std::mem::replace(&mut self.said, true) {
                        tracing::info!("USR2 is not used; a new process takes over by `lb run --takeover`");
                    }
                }
            }
        }
    }
}
