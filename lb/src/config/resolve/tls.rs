//! The certificates of listeners.

use std::path::PathBuf;

use super::{
    context::Context,
    found::{need, need_file},
};
use crate::config::{
    Certificate, ListenerTls,
    diagnostic::Diagnostic,
    environment::What,
    path::Path,
    raw::{self, Maybe},
    span::Spanned,
};

/// What a listener shows of itself; `None` is plain HTTP.
pub(super) fn listener(
    cx: &mut Context<'_>,
    at: &Path,
    raw: Option<&raw::ListenerTls>,
) -> Option<ListenerTls> {
    let raw = raw?;
    let first = pair(cx, at, &raw.cert_file, &raw.key_file);
    let further = raw.certificates.as_ref().map_or(&[][..], |pairs| &pairs.value);
    if further.is_empty() {
        cx.setting(at, "certificates", &raw.certificates, Some("[]".to_owned()));
    }
    let further = further.iter().enumerate().map(|(index, raw)| {
        let at = at.key("certificates").item(index);
        pair(cx, &at, &raw.cert_file, &raw.key_file)
    });
    let certificates = [first].into_iter().chain(further).flatten().collect();
    Some(ListenerTls {
        certificates,
        client_ca_file: file(cx, at, "client_ca_file", &raw.client_ca_file),
    })
}

/// A certificate with its key; `None` where the key is missing, which has been reported then.
fn pair(
    cx: &mut Context<'_>,
    at: &Path,
    cert_file: &Spanned<String>,
    key_file: &Maybe<String>,
) -> Option<Certificate> {
    cx.written(at, "cert_file", cert_file.span, None);
    need(cx, cert_file, What::File(PathBuf::from(&cert_file.value)));
    let key = file(cx, at, "key_file", key_file);
    if key.is_none() {
        cx.report(
            Diagnostic::error("E304", cert_file.span, "a certificate needs its key")
                .label("this certificate has no key_file beside it")
                .help("add `key_file: …`"),
        );
    }
    let certificate = Certificate {
        cert_file: PathBuf::from(&cert_file.value),
        key_file: key?,
    };
    need(cx, cert_file, together(&certificate));
    Some(certificate)
}

/// That a certificate and its key belong together.
pub(super) fn together(certificate: &Certificate) -> What {
    What::Pair(certificate.cert_file.clone(), certificate.key_file.clone())
}

fn file(cx: &mut Context<'_>, at: &Path, key: &str, written: &Maybe<String>) -> Option<PathBuf> {
    need_file(cx, written, What::File);
    cx.text(at, key, written).map(PathBuf::from)
}
