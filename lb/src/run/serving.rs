//! What the main thread does while lb serves: it reloads whenever somebody wants that, and leaves to a successor.

use std::io;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::handover::{Desk, Sockets, Visit};
use super::inherited::Group;
use super::signals::Habits;
use super::source::Seen;
use super::{Daemon, Source, service_manager};
use crate::admin::Reloaded;
use crate::config::Failure;

/// What goes on while nothing ends.
pub(super) struct Serving<'a> {
    habits: Habits,
    source: &'a Source,
    /// What the files held when they were last read.
    seen: Seen,
    desk: Option<Desk>,
}

impl<'a> Serving<'a> {
    pub(super) fn new(habits: Habits, desk: Option<Desk>, source: &'a Source, daemon: &Daemon) -> Self {
        Self {
            habits,
            seen: source.look(&daemon.config()),
            desk,
            source,
        }
    }

    /// Reloads whenever somebody wants it; returns when a successor serves.
    pub(super) async fn until_taken(&mut self, daemon: &mut Daemon) -> oneshot::Sender<()> {
        loop {
            let watched = daemon.config().server.watch;
            let changed = async {
                if watched {
                    self.seen.changed().await;
                } else {
                    std::future::pending::<()>().await;
                }
            };
            let visit = async {
                match &mut self.desk {
                    Some(desk) => desk.next().await,
                    None => std::future::pending().await,
                }
            };
            let asked = tokio::select! {
                biased;
                () = self.habits.hup() => None,
                Some(asked) = daemon.requests.recv() => Some(asked),
                visit = visit => match visit {
                    Visit::Reload(asked) => Some(asked),
                    Visit::Sockets(asked) => {
                        // Whoever asked may have gone.
                        drop(asked.send(daemon.sockets()));
                        continue;
                    }
                    Visit::Taken(left) => return left,
                },
                () = daemon.renamed.notified() => {
                    daemon.readdress();
                    continue;
                }
                () = changed => None,
            };
            let reloaded = self.reload(daemon).await;
            if let Some(asked) = asked {
                drop(asked.send(reloaded));
            }
        }
    }

    /// Reads the file and puts it into force, or says why not and goes on with what there is.
    async fn reload(&mut self, daemon: &Daemon) -> Reloaded {
        service_manager::reloading();
        let config = daemon.config();
        self.seen = self.source.look(&config);
        let reloaded = match self.source.load() {
            Ok(checked) => {
                if checked.warnings.warnings() > 0 {
                    tracing::warn!("{}", checked.warnings.render(false));
                }
                match daemon.reload(&checked.config).await {
                    Ok(waiting) => Reloaded::Done { waiting },
                    Err(error) => Reloaded::Refused {
                        code: error.exit_code(),
                        message: error.to_string(),
                        report: None,
                    },
                }
            }
            Err(failure) => refused(&failure),
        };
        // The files are those of the configuration that is in force by now.
        if let Reloaded::Done { .. } = &reloaded {
            self.seen.follow(self.source, &daemon.config());
        }
        told(daemon, &reloaded);
        service_manager::ready();
        reloaded
    }
}

fn refused(failure: &Failure) -> Reloaded {
    let message = match failure {
        Failure::Invalid(report) => format!("{failure}\n{}", report.render(false)),
        Failure::Unreadable { .. } => failure.to_string(),
    };
    Reloaded::Refused {
        code: failure.exit_code(),
        message,
        report: match failure {
            Failure::Invalid(report) => serde_json::from_str(&report.to_json()).ok(),
            Failure::Unreadable { .. } => None,
        },
    }
}

fn told(daemon: &Daemon, reloaded: &Reloaded) {
    let metrics = &daemon.shared.metrics;
    match reloaded {
        Reloaded::Done { waiting } => {
            metrics.reloaded(true);
            tracing::info!("reloaded");
            if !waiting.is_empty() {
                tracing::warn!(changed = waiting.join(", "), "changes that wait for a restart");
            }
        }
        Reloaded::Refused { message, .. } => {
            metrics.reloaded(false);
            tracing::error!("not reloaded, what was in force stays: {message}");
        }
        Reloaded::Unavailable => {}
    }
}

impl Daemon {
    /// Everything that a successor takes over.
    fn sockets(&self) -> io::Result<Sockets> {
        let group = |bound: &Arc<crate::proxy::Bound>| {
            Ok(Group {
                place: bound.place.to_string(),
                name: bound.name().to_string(),
                sockets: bound.sockets()?,
            })
        };
        Ok(Sockets {
            groups: self
                .listeners
                .live()
                .iter()
                .map(group)
                .collect::<io::Result<_>>()?,
            admin: self.control.socket()?,
        })
    }

    /// Accepts nothing any more, lets the successor know, and waits for what is open.
    pub(super) async fn yield_to(&self, left: oneshot::Sender<()>) {
        let limit = self.config().server.drain_timeout;
        self.control.leave();
        self.advance(crate::proxy::Drain::Closing);
        if left.send(()).is_err() {
            tracing::warn!("the successor did not wait to hear it");
        }
        self.finish(limit).await;
    }
}
