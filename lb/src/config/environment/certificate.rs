//! Whether a certificate and its key can be used, and for how long.

use std::{
    fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use rustls::{
    InconsistentKeys,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};

use super::Need;
use crate::config::diagnostic::Diagnostic;

/// Says what is wrong with this chain and its key. A file that cannot be read is said elsewhere.
pub(super) fn check(need: &Need, chain: &Path, key: &Path) -> Option<Diagnostic> {
    let (chain, key) = (fs::read(chain).ok()?, fs::read(key).ok()?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    pair(need, &chain, &key).or_else(|| validity(need, &chain, i64::try_from(now).ok()?))
}

fn certificates(chain: &[u8]) -> Vec<CertificateDer<'static>> {
    let certificates = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
    certificates.unwrap_or_default()
}

fn pair(need: &Need, chain: &[u8], key: &[u8]) -> Option<Diagnostic> {
    let problem = |what: &str, help: &'static str| {
        let message = format!("`{}` {what}", need.key);
        Some(Diagnostic::error("E406", need.span, message).help(help))
    };
    let certificates = certificates(chain);
    if certificates.is_empty() {
        return problem("holds no certificate", "name a file of certificates in PEM form");
    }
    let Ok(key) = PrivateKeyDer::from_pem_slice(key) else {
        return problem(
            "has a file beside it that holds no private key",
            "name a file with one key in PEM form, without a passphrase",
        );
    };
    match CertifiedKey::from_der(certificates, key, &aws_lc_rs::default_provider()) {
        Ok(_) => None,
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => problem(
            "and the key beside it do not belong together",
            "name the key that the certificate was made for; the server's own certificate comes first in its file",
        ),
        Err(_) => problem("or the key beside it cannot be used", "make them anew"),
    }
}

/// The first certificate of the chain that is out of its time, or soon will be.
fn validity(need: &Need, chain: &[u8], now: i64) -> Option<Diagnostic> {
    let times = certificates(chain).into_iter().filter_map(|certificate| {
        let (_, certificate) = x509_parser::parse_x509_certificate(&certificate).ok()?;
        let validity = certificate.validity();
        Some((validity.not_before.timestamp(), validity.not_after.timestamp()))
    });
    let (from, to) = times.reduce(|(from, to), (other, another)| (from.max(other), to.min(another)))?;
    if now > to {
        let message = format!(
            "the certificate in `{}` has expired, {} ago",
            need.key,
            days(now - to)
        );
        Some(Diagnostic::error("E407", need.span, message).help("renew it: clients refuse it"))
    } else if now < from {
        let message = format!(
            "the certificate in `{}` is not valid yet, but in {}",
            need.key,
            days(from - now)
        );
        Some(Diagnostic::error("E407", need.span, message).help("look at this machine's clock, or wait"))
    } else if to - now < SOON {
        let message = format!("the certificate in `{}` expires in {}", need.key, days(to - now));
        Some(Diagnostic::warning("W408", need.span, message).help("renew it in time"))
    } else {
        None
    }
}

fn days(seconds: i64) -> String {
    match seconds / DAY {
        0 => "less than a day".to_owned(),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

/// Seconds.
const DAY: i64 = 24 * 60 * 60;

/// What is left of a certificate's time when it is warned of. Seconds.
const SOON: i64 = 14 * DAY;

#[cfg(test)]
mod tests;
