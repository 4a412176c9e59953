//! What clients connect to.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use super::{
    context::{Context, DAY_MS, Whole},
    found::{duplicates, need},
    process::cidr,
};
use crate::config::{
    Listener, diagnostic::Diagnostic, environment::What, later, path::Path, raw, span::Spanned,
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
        cidr(cx, source);
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
pub(super) fn address(cx: &mut Context<'_>, written: &Spanned<String>) -> SocketAddr {
    let stand_in = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    match written.value.parse() {
        Ok(address) => {
            need(cx, written, What::Address(address));
            address
        }
        Err(_) if written.value.starts_with("fd:") => stand_in,
        Err(_) => {
            let message = format!("`{}` is not an address with a port", cx.shown(written.span));
            let help = "write it as 0.0.0.0:8443 or \"[::]:8443\"; a name is not looked up here";
            cx.report(Diagnostic::error("E111", written.span, message).help(help));
            stand_in
        }
    }
}
