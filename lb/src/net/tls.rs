//! TLS towards an upstream: whom to trust, what name to ask for, and who we are.
//!
//! The provider is named (`aws-lc-rs`) and not the process's default, so that a second one among the dependencies
//! cannot make this panic. Trust is the system's store or one file; a store is loaded once and shared by all who
//! use it.

mod unverified;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Protocol;

/// Whose certificates an upstream may show.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Anybody's: neither the chain nor the name is looked at. Whoever sets this up says so in the log.
    Anyone,
    /// Those that lead to one of these and carry the name.
    Roots(Arc<RootCertStore>),
}

/// What we show of ourselves where an upstream asks for it.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// How to speak TLS to one upstream. Sessions are resumed among all connections that share it.
#[derive(Debug)]
pub struct Tls {
    config: Arc<ClientConfig>,
    /// Offers nothing but HTTP/1.1, for the requests that need it.
    http1: Arc<ClientConfig>,
    name: ServerName<'static>,
    required: Option<&'static [u8]>,
}

/// Why TLS cannot be set up. All of it is known when the configuration is read.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file holds no certificate in PEM form, or cannot be read.
    #[error("{path}: {source}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// The file has no certificate in it.
    #[error("no certificate in {0}")]
    NoCertificate(String),
    /// Neither a DNS name nor an address.
    #[error("`{0}` is no name that a certificate can carry")]
    Name(String),
    /// There is no root to trust: the system has no store where one is looked for, or none of its certificates is any.
    #[error("no trusted root certificate in {0}")]
    NoRoots(String),
    /// The library refuses the parameters.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

impl Tls {
    /// Asks for `name` (a DNS name, or an address with or without brackets) by TLS 1.2 or 1.3, and offers `protocol` by
    /// ALPN. An upstream that takes none of it speaks HTTP/1.1, unless it has to be HTTP/2.
    pub fn new(
        name: &str,
        trust: Trust,
        identity: Option<Identity>,
        protocol: Protocol,
    ) -> Result<Self, SetupError> {
        let bare = name
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(name);
        let name =
            ServerName::try_from(bare.to_owned()).map_err(|_invalid| SetupError::Name(name.to_owned()))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match trust {
            Trust::Anyone => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(unverified::Unverified(provider))),
            Trust::Roots(roots) => builder.with_root_certificates(roots),
        };
        let mut http1 = match identity {
            Some(Identity { chain, key }) => builder.with_client_auth_cert(chain, key)?,
            None => builder.with_no_client_auth(),
        };
        http1.alpn_protocols = vec![HTTP1.to_vec()];
        let mut config = http1.clone();
        config.alpn_protocols = match protocol {
            Protocol::Auto => vec![H2.to_vec(), HTTP1.to_vec()],
            Protocol::Http1 => vec![HTTP1.to_vec()],
            Protocol::Http2 => vec![H2.to_vec()],
        };
        Ok(Self {
            config: Arc::new(config),
            http1: Arc::new(http1),
            name,
            required: (protocol == Protocol::Http2).then_some(H2),
        })
    }

    pub(super) async fn handshake(
        &self,
        stream: TcpStream,
        http1_only: bool,
    ) -> io::Result<TlsStream<TcpStream>> {
        let (config, required) = if http1_only {
            (&self.http1, None)
        } else {
            (&self.config, self.required)
        };
        let stream = TlsConnector::from(Arc::clone(config))
            .connect(self.name.clone(), stream)
            .await?;
        if required.is_some() && stream.get_ref().1.alpn_protocol() != required {
            return Err(io::Error::other("the upstream does not agree on HTTP/2"));
        }
        Ok(stream)
    }
}

/// The names of the protocols in ALPN.
pub(super) const H2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

impl Identity {
    /// A chain and its key from PEM files. Whether they belong together is found out by [`Tls::new`].
    pub fn from_files(chain: &Path, key: &Path) -> Result<Self, SetupError> {
        let failed = |path: &Path, source| SetupError::File {
            path: path.to_owned(),
            source,
        };
        let certificates = CertificateDer::pem_file_iter(chain)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|source| failed(chain, source))?;
        if certificates.is_empty() {
            return Err(SetupError::NoCertificate(chain.display().to_string()));
        }
        Ok(Self {
            chain: certificates,
            key: PrivateKeyDer::from_pem_file(key).map_err(|source| failed(key, source))?,
        })
    }
}

/// The system's certificates, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR` where these are set.
///
/// A store always has a few that rustls does not take; only a store with none that it takes is an error.
pub fn system_roots() -> Result<Arc<RootCertStore>, SetupError> {
    let loaded = rustls_native_certs::load_native_certs();
    for error in &loaded.errors {
        tracing::debug!(%error, "system certificate store");
    }
    roots(loaded.certs, || "the system's certificate store".to_owned())
}

/// The certificates of a PEM file.
pub fn roots_from_file(path: &Path) -> Result<Arc<RootCertStore>, SetupError> {
    let failed = |source| SetupError::File {
        path: path.to_owned(),
        source,
    };
    let certificates = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    roots(certificates, || path.display().to_string())
}

fn roots(
    certificates: Vec<CertificateDer<'static>>,
    place: impl FnOnce() -> String,
) -> Result<Arc<RootCertStore>, SetupError> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(certificates);
    if store.is_empty() {
        Err(SetupError::NoRoots(place()))
    } else {
        Ok(Arc::new(store))
    }
}
