//! The side of the one that comes: it asks for a reload, or takes over.

use std::io;
use std::time::Duration;

use super::channel::Channel;
use super::{Handed, READY, RELOAD, TAKEOVER, Told, place};
use crate::run::inherited::{Group, Inherited};
use crate::run::{Source, StartError, service_manager};

/// Has the lb that runs from `source` reload. `Err` says why nobody could be asked.
pub fn request_reload(source: &Source) -> Result<Told, String> {
    converse(async {
        let channel = Channel::connect(&place::path(source)?)?;
        channel.send(RELOAD, &[]).await?;
        let (told, _) = channel.receive().await?;
        Ok(serde_json::from_str(&told)?)
    })
    .map_err(|error| unreachable(source, &error))
}

/// The lb that is being taken over from: it serves until it is told that we do.
#[derive(Debug)]
pub struct Predecessor {
    channel: Channel,
}

/// Takes the sockets of the lb that runs from `source`. To be called within a runtime.
pub async fn take_over(source: &Source, inherited: &mut Inherited) -> Result<Predecessor, StartError> {
    let taken = tokio::time::timeout(PATIENCE, take(source, inherited)).await;
    let taken = taken.unwrap_or_else(|_late| Err(io::ErrorKind::TimedOut.into()));
    taken.map_err(|error| StartError::Unreachable(unreachable(source, &error)))
}

/// How long the other one may take for a step.
const PATIENCE: Duration = Duration::from_secs(10);

async fn take(source: &Source, inherited: &mut Inherited) -> io::Result<Predecessor> {
    let channel = Channel::connect(&place::path(source)?)?;
    channel.send(TAKEOVER, &[]).await?;
    let (mut groups, mut admin): (Vec<Group>, _) = (Vec::new(), None);
    loop {
        let (text, sockets) = channel.receive().await?;
        match serde_json::from_str(&text)? {
            Handed::Admin => admin = sockets.into_iter().next(),
            Handed::End => break,
            Handed::Listener { place, name } => {
                let known = groups
                    .iter_mut()
                    .find(|group| group.place == place && group.name == name);
                match known {
                    Some(group) => group.sockets.extend(sockets),
                    None => groups.push(Group { place, name, sockets }),
                }
            }
        }
    }
    inherited.take_over(groups, admin);
    Ok(Predecessor { channel })
}

impl Predecessor {
    /// Tells it that we serve, and waits until it accepts nothing any more.
    pub async fn leave(self) {
        service_manager::main_process();
        let told = async {
            self.channel.send(READY, &[]).await?;
            self.channel.receive().await
        };
        match tokio::time::timeout(PATIENCE, told).await {
            Ok(Ok(_)) => tracing::info!("taken over: the process before drains"),
            // With nothing to wait for it may be gone before its word is on its way.
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                tracing::info!("taken over: the process before has ended");
            }
            Ok(Err(error)) => tracing::warn!(%error, "the process before did not say that it leaves"),
            Err(_late) => tracing::warn!("the process before does not say that it leaves"),
        }
    }
}

fn unreachable(source: &Source, error: &io::Error) -> String {
    let path = source.path().display();
    format!("no lb that runs from {path} can be reached ({error})")
}

fn converse<T>(conversation: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let late = |_late| io::Error::from(io::ErrorKind::TimedOut);
        tokio::time::timeout(PATIENCE * 3, conversation)
            .await
            .map_err(late)?
    })
}
