//! What clients connect to.

use std::{
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroU32,
};

use super::{
    context::{Context, DAY_MS, Whole},
    found::{duplicates, need},
    process::cidr,
    tls,
};
use crate::config::{
    Cidr, Listener, Place, ProxyProtocol, diagnostic::Diagnostic, environment::What, path::Path, raw,
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
        let shared = listener
            .place
            .address()
            .is_some_and(|address| address.port() == 0);
        (!shared).then(|| item.value.address.clone())
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
    Listener {
        name: cx.name(&raw.name),
        place: place(cx, &raw.address),
        tls: tls::listener(cx, &at.key("tls"), raw.tls.as_ref()),
        http2: cx.flag(at, "http2", &raw.http2, true),
        proxy_protocol: cx.word(
            at,
            "proxy_protocol",
            &raw.proxy_protocol,
            ("off", ProxyProtocol::Off),
        ),
        max_connections_per_source: per_source(cx, at, raw),
        allow_sources: sources(cx, at, raw),
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

fn per_source(cx: &mut Context<'_>, at: &Path, raw: &raw::Listener) -> Option<NonZeroU32> {
    let whole = Whole::new(0, 0..=u64::from(u32::MAX));
    NonZeroU32::new(cx.count(
        at,
        "max_connections_per_source",
        &raw.max_connections_per_source,
        whole,
    ))
}

fn sources(cx: &mut Context<'_>, at: &Path, raw: &raw::Listener) -> Vec<Cidr> {
    cx.setting(at, "allow_sources", &raw.allow_sources, Some("[]".to_owned()));
    let written = raw.allow_sources.iter().flat_map(|sources| &sources.value);
    written.filter_map(|source| cidr(cx, source)).collect()
}

/// An address, or the name of a socket that the service manager hands over.
fn place(cx: &mut Context<'_>, written: &Spanned<String>) -> Place {
    match written.value.strip_prefix("fd:") {
        Some(name) => {
            need(cx, written, What::Socket);
            Place::Inherited(cx.name(&Spanned {
                value: name.to_owned(),
                span: written.span,
            }))
        }
        None => Place::Address(address(cx, written)),
    }
}

/// An address, or a stand-in for what is none.
pub(super) fn address(cx: &mut Context<'_>, written: &Spanned<String>) -> SocketAddr {
    let stand_in = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    if let Ok(address) = written.value.parse() {
        need(cx, written, What::Address(address));
        return address;
    }
    let message = format!("`{}` is not an address with a port", cx.shown(written.span));
    let help = "write it as 0.0.0.0:8443 or \"[::]:8443\"; a name is not looked up here";
    cx.report(Diagnostic::error("E111", written.span, message).help(help));
    stand_in
}
