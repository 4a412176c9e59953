//! TLS towards clients: which certificate a name gets, and how files that change come into use.
//!
//! What was read is one `rustls` configuration behind one pointer: certificates, keys and client authorities change
//! together or not at all. A handshake takes the pointer once, so connections that are open keep what they began with.
//! Session tickets outlive a change of certificates, but not one of the client authorities: a ticket would vouch for
//! a client that the new ones do not know.

mod files;
mod names;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{ProducesTickets, WebPkiClientVerifier};
use tokio_rustls::TlsAcceptor;

use self::files::{Digest, Files};
use self::names::Certificates;
use crate::config;

/// A listener's certificates, as last read.
#[derive(Debug)]
pub struct Identity {
    tls: config::ListenerTls,
    http2: bool,
    provider: Arc<CryptoProvider>,
    current: ArcSwap<ServerConfig>,
    seen: Mutex<Seen>,
}

/// What the files held whose configuration is in use.
#[derive(Debug)]
struct Seen {
    all: Digest,
    authorities: Digest,
    tickets: Arc<dyn ProducesTickets>,
}

/// Why a listener's TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file cannot be read.
    #[error("{path}: {source}", path = .path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file does not hold what it should in PEM form.
    #[error("{path}: holds no {what}", path = .path.display())]
    Pem {
        /// Which one.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// Certificate and key do not belong together, or are of no kind that is known.
    #[error("{path}: {source}", path = .path.display())]
    Pair {
        /// The certificate's file.
        path: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// No client authority is usable.
    #[error("{path}: {reason}", path = .path.display())]
    Authorities {
        /// Their file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The library refuses the parameters.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

impl Identity {
    /// Reads what `tls` names. Offers HTTP/2 where `http2` says so.
    pub fn load(tls: &config::ListenerTls, http2: bool) -> Result<Self, IdentityError> {
        let files = Files::read(tls)?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let tickets = aws_lc_rs::Ticketer::new()?;
        let config = build(&provider, &files, http2, Arc::clone(&tickets))?;
        let seen = Seen {
            all: files.digest(),
            authorities: files.authorities_digest(),
            tickets,
        };
        Ok(Self {
            tls: tls.clone(),
            http2,
            provider,
            current: ArcSwap::from_pointee(config),
            seen: Mutex::new(seen),
        })
    }

    /// Whether it comes from these files and offers the same.
    pub fn is_of(&self, tls: &config::ListenerTls, http2: bool) -> bool {
        self.tls == *tls && self.http2 == http2
    }

    /// Reads the files again. Returns whether they have changed and are in use now; what cannot be used is an error
    /// each time, and leaves in use what was.
    pub fn refresh(&self) -> Result<bool, IdentityError> {
        let files = Files::read(&self.tls)?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let all = files.digest();
        if all == seen.all {
            return Ok(false);
        }
        let authorities = files.authorities_digest();
        let tickets = if authorities == seen.authorities {
            Arc::clone(&seen.tickets)
        } else {
            aws_lc_rs::Ticketer::new()?
        };
        let config = build(&self.provider, &files, self.http2, Arc::clone(&tickets))?;
        *seen = Seen {
            all,
            authorities,
            tickets,
        };
        self.current.store(Arc::new(config));
        Ok(true)
    }

    /// For one handshake.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current.load_full())
    }
}

fn build(
    provider: &Arc<CryptoProvider>,
    files: &Files,
    http2: bool,
    tickets: Arc<dyn ProducesTickets>,
) -> Result<ServerConfig, IdentityError> {
    let certificates = Certificates::new(files.certified(provider)?);
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(provider)).with_safe_default_protocol_versions()?;
    let builder = match files.authorities()? {
        None => builder.with_no_client_auth(),
        Some((path, roots)) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| IdentityError::Authorities {
                path,
                reason: error.to_string(),
            })?)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(certificates));
    config.ticketer = tickets;
    config.alpn_protocols = if http2 {
        vec![ALPN_H2.to_vec(), b"http/1.1".to_vec()]
    } else {
        vec![b"http/1.1".to_vec()]
    };
    Ok(config)
}

/// What a client and lb agree on where they speak HTTP/2.
pub(super) const ALPN_H2: &[u8] = b"h2";
