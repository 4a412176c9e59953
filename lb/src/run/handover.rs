//! How one lb speaks to the one that runs: to have it reload, or to take its sockets over.
//!
//! ```text
//!   new                                     running
//!    │ connect ── takeover ──────────────────▶ │  goes on serving
//!    │ ◀─── sockets of each listener ──────────│
//!    │  binds what is missing, starts          │
//!    │ ── ready ─────────────────────────────▶ │  accepts no more, drains, ends
//!    │ ◀── leaving ────────────────────────────│
//! ```
//!
//! Both have the same sockets in between, so no connection that the kernel has taken is ever without somebody to accept
//! it. A new one that fails just goes away, and nothing has happened.
//!
//! They meet at a socket file in the runtime directory, named after the configuration's file. Who may open that file may
//! do all this: its owner and root.

mod channel;
mod place;
mod visitor;

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use self::channel::{Channel, Door, MOST};
use self::place::Place;
use super::Source;
use super::inherited::Group;
use crate::admin::Reloaded;

pub use visitor::{Predecessor, request_reload, take_over};

/// What the first message of a conversation asks for.
const RELOAD: &str = "reload";
const TAKEOVER: &str = "takeover";
/// The new one serves.
const READY: &str = "ready";
/// The running one has stopped to accept.
const LEAVING: &str = "leaving";

/// A message with sockets in it.
#[derive(Debug, Deserialize, Serialize)]
enum Handed {
    /// The admin listener's.
    Admin,
    /// Nothing more comes.
    End,
    /// Of a listener; there may be more of them in the next message.
    Listener {
        /// Where the configuration has it.
        place: String,
        /// What the configuration calls it.
        name: String,
    },
}

/// What comes of a reload, as `lb reload` is told.
#[derive(Debug, Deserialize, Serialize)]
pub struct Told {
    /// What `lb reload` ends with.
    pub code: u8,
    /// In words.
    pub message: String,
}

/// What a visitor wants of the running lb.
#[derive(Debug)]
pub(super) enum Visit {
    Reload(oneshot::Sender<Reloaded>),
    /// Its sockets, to be sent back.
    Sockets(oneshot::Sender<io::Result<Sockets>>),
    /// The new one is ready; to be answered once nothing is accepted any more.
    Taken(oneshot::Sender<()>),
}

/// Everything that is handed over.
#[derive(Debug)]
pub(super) struct Sockets {
    pub(super) groups: Vec<Group>,
    pub(super) admin: TcpListener,
}

/// The socket file of this process, gone when dropped.
#[derive(Debug)]
pub(super) struct Desk {
    _place: Place,
    visits: mpsc::Receiver<Visit>,
    receiving: AbortHandle,
}

impl Desk {
    /// Opens it for visitors of the lb that runs from `source`.
    pub(super) fn open(source: &Source) -> io::Result<Self> {
        let (place, door) = Place::claim(source)?;
        let (sender, visits) = mpsc::channel(1);
        let receiving = tokio::spawn(receive(door, sender)).abort_handle();
        Ok(Self {
            _place: place,
            visits,
            receiving,
        })
    }

    /// The next visit.
    pub(super) async fn next(&mut self) -> Visit {
        match self.visits.recv().await {
            Some(visit) => visit,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.receiving.abort();
    }
}

async fn receive(door: Door, visits: mpsc::Sender<Visit>) {
    loop {
        match door.next().await {
            Ok(channel) => {
                let visits = visits.clone();
                tokio::spawn(async move {
                    if let Err(error) = attend(&channel, &visits).await {
                        tracing::warn!(%error, "a visitor left without taking over");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "no visitor can come in");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// How long visitors wait after one could not come in.
const PAUSE: Duration = Duration::from_secs(1);

/// One conversation, as the running lb.
async fn attend(channel: &Channel, visits: &mpsc::Sender<Visit>) -> io::Result<()> {
    // Whoever only looks whether somebody is here says nothing.
    let Ok((asked, _)) = channel.receive().await else {
        return Ok(());
    };
    match asked.as_str() {
        RELOAD => {
            let reloaded = ask(visits, Visit::Reload).await.unwrap_or(Reloaded::Unavailable);
            let told = serde_json::to_string(&told(&reloaded))?;
            channel.send(&told, &[]).await
        }
        TAKEOVER => {
            let sockets = ask(visits, Visit::Sockets)
                .await
                .ok_or(io::ErrorKind::BrokenPipe)??;
            hand_over(channel, sockets).await?;
            match channel.receive().await? {
                (said, _) if said == READY => {}
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
            ask(visits, Visit::Taken).await.ok_or(io::ErrorKind::BrokenPipe)?;
            channel.send(LEAVING, &[]).await
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

async fn ask<T>(visits: &mpsc::Sender<Visit>, visit: fn(oneshot::Sender<T>) -> Visit) -> Option<T> {
    let (answer, answered) = oneshot::channel();
    visits.send(visit(answer)).await.ok()?;
    answered.await.ok()
}

async fn hand_over(channel: &Channel, sockets: Sockets) -> io::Result<()> {
    for group in &sockets.groups {
        for part in group.sockets.chunks(MOST) {
            let listener = Handed::Listener {
                place: group.place.clone(),
                name: group.name.clone(),
            };
            channel.send(&serde_json::to_string(&listener)?, part).await?;
        }
    }
    let admin = serde_json::to_string(&Handed::Admin)?;
    channel.send(&admin, &[sockets.admin]).await?;
    channel.send(&serde_json::to_string(&Handed::End)?, &[]).await
}

fn told(reloaded: &Reloaded) -> Told {
    let (code, message) = match reloaded {
        Reloaded::Done { waiting } if waiting.is_empty() => (0, "reloaded".to_owned()),
        Reloaded::Done { waiting } => (
            0,
            format!("reloaded; these wait for a restart: {}", waiting.join(", ")),
        ),
        Reloaded::Refused { code, message, .. } => (*code, message.clone()),
        Reloaded::Unavailable => (69, "it is ending, or busy with other reloads".to_owned()),
    };
    Told { code, message }
}
