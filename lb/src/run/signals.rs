//! What signals do.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Daemon;

/// Serves until TERM, INT or QUIT, then drains; a second one ends the drain at once.
///
/// HUP, USR1 and USR2 kill a process that does not handle them, and operators send them by habit: they are taken and
/// logged.
pub async fn until_drained(daemon: Daemon) -> io::Result<()> {
    let mut ending = Ending::new()?;
    let habits = tokio::spawn(habits(
        signal(SignalKind::hangup())?,
        signal(SignalKind::user_defined1())?,
        signal(SignalKind::user_defined2())?,
    ));
    let name = ending.next().await;
    tracing::info!(signal = name, "draining");
    tokio::select! {
        biased;
        name = ending.next() => tracing::warn!(signal = name, "second signal: ending at once"),
        () = daemon.drain() => {}
    }
    habits.abort();
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

async fn habits(mut hup: Signal, mut usr1: Signal, mut usr2: Signal) {
    loop {
        tokio::select! {
            _ = hup.recv() => tracing::warn!("HUP: a changed configuration needs a restart in this version"),
            _ = usr1.recv() => tracing::info!("USR1: logs go to stderr, there is no file to reopen"),
            _ = usr2.recv() => tracing::info!("USR2 is not used"),
        }
    }
}
