//! What a listener's TLS is read from.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use sha2::{Digest as _, Sha256};

use super::IdentityError;
use crate::config::ListenerTls;

/// Tells whether files have changed, without keeping what they hold.
pub(super) type Digest = [u8; 32];

/// The files' bytes, all read before anything is made of them.
pub(super) struct Files {
    /// Chain and key of each certificate.
    pairs: Vec<[File; 2]>,
    authorities: Option<File>,
}

struct File {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Files {
    pub(super) fn read(tls: &ListenerTls) -> Result<Self, IdentityError> {
        let pairs = tls.certificates.iter().map(|pair| {
            let chain = File::read(&pair.cert_file)?;
            Ok([chain, File::read(&pair.key_file)?])
        });
        Ok(Self {
            pairs: pairs.collect::<Result<_, IdentityError>>()?,
            authorities: tls.client_ca_file.as_deref().map(File::read).transpose()?,
        })
    }

    /// Of everything.
    pub(super) fn digest(&self) -> Digest {
        digest(self.pairs.iter().flatten().chain(&self.authorities))
    }

    /// Of what decides which clients are let in.
    pub(super) fn authorities_digest(&self) -> Digest {
        digest(&self.authorities)
    }

    /// Every certificate with its key, each shown to belong to the other.
    pub(super) fn certified(
        &self,
        provider: &CryptoProvider,
    ) -> Result<Vec<Arc<CertifiedKey>>, IdentityError> {
        let one = |[chain, key]: &[File; 2]| {
            let certified = CertifiedKey::from_der(chain.certificates()?, key.key()?, provider);
            certified.map(Arc::new).map_err(|source| IdentityError::Pair {
                path: chain.path.clone(),
                source,
            })
        };
        self.pairs.iter().map(one).collect()
    }

    /// Those whose signature a client's certificate needs.
    pub(super) fn authorities(&self) -> Result<Option<(PathBuf, RootCertStore)>, IdentityError> {
        let Some(file) = &self.authorities else {
            return Ok(None);
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(file.certificates()?);
        Ok(Some((file.path.clone(), roots)))
    }
}

impl File {
    fn read(path: &Path) -> Result<Self, IdentityError> {
        let path = path.to_owned();
        match fs::read(&path) {
            Ok(bytes) => Ok(Self { path, bytes }),
            Err(source) => Err(IdentityError::File { path, source }),
        }
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
        let certificates = CertificateDer::pem_slice_iter(&self.bytes).collect::<Result<Vec<_>, _>>();
        match certificates {
            Ok(certificates) if !certificates.is_empty() => Ok(certificates),
            _ => Err(self.holds_no("certificate")),
        }
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, IdentityError> {
        PrivateKeyDer::from_pem_slice(&self.bytes).map_err(|_invalid| self.holds_no("private key"))
    }

    fn holds_no(&self, what: &'static str) -> IdentityError {
        IdentityError::Pem {
            path: self.path.clone(),
            what,
        }
    }
}

fn digest<'a>(files: impl IntoIterator<Item = &'a File>) -> Digest {
    let mut hasher = Sha256::new();
    for file in files {
        hasher.update(file.bytes.len().to_le_bytes());
        hasher.update(&file.bytes);
    }
    hasher.finalize().into()
}
