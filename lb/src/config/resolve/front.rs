//! What clients and operators meet: listeners, the admin listener, client keys.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use super::context::{Context, DAY_MS, NULL, Whole};
use crate::config::{
    Admin, Auth, ClientKey, Listener,
    diagnostic::Diagnostic,
    environment::{Need, What},
    later,
    path::Path,
    raw::{self, Maybe},
    span::Spanned,
};

pub(super) fn listeners(cx: &mut Context<'_>, file: &raw::File) -> Vec<Listener> {
    let at = Path::top("listeners");
    let Some(written) = &file.listeners else {
        let root = cx.document.root.span;
        cx.report(
            Diagnostic::error("E100", root, "there is no listener")
                .at("listeners")
                .help("add `listeners: [{ name: public, address: \"127.0.0.1:8080\" }]`"),
        );
        return Vec::new();
    };
    if written.value.is_empty() {
        cx.report(Diagnostic::error("E100", written.span, "there is no listener").at("listeners"));
    }
    let items = written.value.iter().enumerate();
    let listeners: Vec<_> = items
        .map(|(index, item)| listener(cx, &at.item(index), &item.value))
        .collect();
    duplicates(
        cx,
        "listener name",
        written
            .value
            .iter()
            .map(|item| (&item.value.name, item.value.name.value.clone())),
    );
    let address = |(item, listener): (&Spanned<raw::Listener>, &Listener)| {
        (listener.address.port() != 0).then(|| item.value.address.clone())
    };
    let addresses: Vec<_> = written.value.iter().zip(&listeners).filter_map(address).collect();
    duplicates(
        cx,
        "address",
        addresses.iter().map(|address| (address, address.value.clone())),
    );
    listeners
}

fn listener(cx: &mut Context<'_>, at: &Path, raw: &raw::Listener) -> Listener {
    cx.written(at, "name", raw.name.span, None);
    cx.written(at, "address", raw.address.span, None);
    if let Some(tls) = &raw.tls {
        listener_tls(cx, tls);
    }
    if raw.address.value.starts_with("fd:") {
        later::refuse(cx, raw.address.span, "taking a socket from systemd");
    }
    cx.bounds(&raw.max_connections_per_source, "E256", 0..=u64::from(u32::MAX));
    for source in raw.allow_sources.iter().flat_map(|sources| &sources.value) {
        super::process::cidr(cx, source);
    }
    Listener {
        name: cx.name(&raw.name),
        address: address(cx, &raw.address),
        max_connections: cx.count(
            at,
            "max_connections",
            &raw.max_connections,
            Whole::new(20_000, 1..=u64::from(u32::MAX)),
        ),
        header_timeout: cx.time(
            at,
            "header_timeout_ms",
            &raw.header_timeout_ms,
            Whole::new(10_000, 1..=DAY_MS),
        ),
        idle_timeout: cx.time(
            at,
            "idle_timeout_ms",
            &raw.idle_timeout_ms,
            Whole::new(120_000, 1..=DAY_MS),
        ),
        first_byte_timeout: cx.time(
            at,
            "first_byte_timeout_ms",
            &raw.first_byte_timeout_ms,
            Whole::new(10_000, 1..=DAY_MS),
        ),
        write_timeout: cx.time(
            at,
            "write_timeout_ms",
            &raw.write_timeout_ms,
            Whole::new(60_000, 1..=DAY_MS),
        ),
        max_body_bytes: cx.whole(
            at,
            "max_body_bytes",
            &raw.max_body_bytes,
            Whole::new(64 << 20, 1..=1 << 40),
        ),
    }
}

fn listener_tls(cx: &mut Context<'_>, tls: &raw::ListenerTls) {
    if tls.key_file.is_none() {
        cx.report(
            Diagnostic::error("E304", tls.cert_file.span, "a certificate needs its key")
                .label("this certificate has no key_file beside it")
                .help("add `key_file: …`"),
        );
    }
    let files = [
        Some(&tls.cert_file),
        tls.key_file.as_ref(),
        tls.client_ca_file.as_ref(),
    ];
    for file in files.into_iter().flatten() {
        need(cx, file, What::File(PathBuf::from(&file.value)));
    }
}

/// An address, or a stand-in for what is none.
fn address(cx: &mut Context<'_>, written: &Spanned<String>) -> SocketAddr {
    let stand_in = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    match written.value.parse() {
        Ok(address) => {
            need(cx, written, What::Address(address));
            address
        }
        Err(_) if written.value.starts_with("fd:") => stand_in,
        Err(_) => {
            let message = format!("{} is not an address with a port", cx.shown(written.span));
            let help = "write it as 0.0.0.0:8443 or \"[::]:8443\"; a name is not looked up here";
            cx.report(Diagnostic::error("E111", written.span, message).help(help));
            stand_in
        }
    }
}

pub(super) fn admin(cx: &mut Context<'_>, raw: Option<&raw::Admin>, listeners: &[Listener]) -> Admin {
    let at = Path::top("admin");
    let nothing = raw::Admin::default();
    let raw = raw.unwrap_or(&nothing);
    cx.setting(&at, "address", &raw.address, Some(DEFAULT_ADMIN.to_string()));
    let token_file = cx.text(&at, "token_file", &raw.token_file).map(PathBuf::from);
    if let (Some(file), Some(path)) = (&raw.token_file, &token_file) {
        need(cx, file, What::Secret(path.clone()));
    }
    let address = raw
        .address
        .as_ref()
        .map_or(DEFAULT_ADMIN, |written| address(cx, written));
    if let Some(written) = &raw.address {
        if !address.ip().is_loopback() && token_file.is_none() {
            cx.report(
                Diagnostic::error(
                    "E302",
                    written.span,
                    "the admin listener can be reached from other machines without a token",
                )
                .help("add `token_file`, or listen on 127.0.0.1 or [::1]"),
            );
        }
        if address.port() != 0 && listeners.iter().any(|listener| listener.address == address) {
            cx.report(
                Diagnostic::error(
                    "E106",
                    written.span,
                    "a listener for clients already has this address",
                )
                .help("give the admin listener a port of its own"),
            );
        }
    }
    Admin { address, token_file }
}

pub(super) fn auth(cx: &mut Context<'_>, raw: Option<&raw::Auth>, listeners: &[Listener]) -> Auth {
    let at = Path::top("auth");
    let nothing = raw::Auth::default();
    let raw = raw.unwrap_or(&nothing);
    let off_loopback = listeners
        .iter()
        .any(|listener| !listener.address.ip().is_loopback());
    cx.setting(&at, "required", &raw.required, Some(NULL.to_owned()));
    let written = raw.keys.as_ref().map_or(&[][..], |keys| &keys.value);
    if written.is_empty() {
        cx.setting(&at, "keys", &raw.keys, Some("[]".to_owned()));
    }
    let keys: Vec<_> = written
        .iter()
        .enumerate()
        .map(|(index, key)| client_key(cx, &at.key("keys").item(index), &key.value))
        .collect();
    duplicates(
        cx,
        "key name",
        written
            .iter()
            .map(|key| (&key.value.name, key.value.name.value.clone())),
    );
    match &raw.required {
        Some(required) if required.value && keys.is_empty() => cx.report(
            Diagnostic::error(
                "E300",
                required.span,
                "a key is required and there is none: no request could pass",
            )
            .help("add `auth.keys`"),
        ),
        None if keys.is_empty() && off_loopback => {
            let span = first_off_loopback(cx);
            cx.report(
                Diagnostic::error("E301", span, "anybody who reaches this address may send requests, and the file does not say that this is meant")
                    .at("auth.required")
                    .label("not a loopback address")
                    .help("add keys under `auth.keys`, or write `auth: { required: false }`"),
            );
        }
        _ => {}
    }
    Auth {
        required: raw
            .required
            .as_ref()
            .map_or(off_loopback, |required| required.value),
        keys,
    }
}

fn client_key(cx: &mut Context<'_>, at: &Path, raw: &raw::ClientKey) -> ClientKey {
    cx.written(at, "name", raw.name.span, None);
    cx.written(at, "sha256_file", raw.sha256_file.span, None);
    let sha256_file = PathBuf::from(&raw.sha256_file.value);
    need(cx, &raw.sha256_file, What::Secret(sha256_file.clone()));
    ClientKey {
        name: cx.name(&raw.name),
        sha256_file,
    }
}

/// The place of the first listener address that other machines can reach.
fn first_off_loopback(cx: &Context<'_>) -> crate::config::Span {
    let root = &cx.document.root;
    let addresses = cx.needs.iter().filter(|need| match need.what {
        What::Address(address) => !address.ip().is_loopback() && need.key.starts_with("listeners"),
        _ => false,
    });
    addresses.map(|need| need.span).next().unwrap_or(root.span)
}

/// Reports every key of `items` that an earlier one already has.
pub(super) fn duplicates<'i, K: PartialEq>(
    cx: &mut Context<'_>,
    what: &str,
    items: impl Iterator<Item = (&'i Spanned<String>, K)>,
) {
    let mut seen: Vec<(&Spanned<String>, K)> = Vec::new();
    for (written, key) in items {
        if let Some((first, _)) = seen.iter().find(|(_, known)| *known == key) {
            let message = format!("the {what} {} is given twice", cx.shown(written.span));
            cx.report(
                Diagnostic::error("E106", written.span, message)
                    .label("the second one")
                    .also(first.span, "the first one"),
            );
        } else {
            seen.push((written, key));
        }
    }
}

/// Notes what the machine must have for `written` to work.
pub(super) fn need(cx: &mut Context<'_>, written: &Spanned<String>, what: What) {
    let key = cx.document.root.path_of(written.span);
    cx.needs.push(Need {
        span: written.span,
        key,
        what,
    });
}

/// The same for a file that may be left out.
pub(super) fn need_file(cx: &mut Context<'_>, written: &Maybe<String>, what: impl FnOnce(PathBuf) -> What) {
    if let Some(written) = written {
        need(cx, written, what(PathBuf::from(&written.value)));
    }
}

const DEFAULT_ADMIN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9901);
