//! Who may look in, and who may send.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use super::{
    context::{Context, NULL},
    found::{duplicates, need},
    listener::address,
    route::known,
};
use crate::config::{
    Admin, Auth, ClientKey, Listener, Model, Pattern, Place, Preset, Span, diagnostic::Diagnostic,
    environment::What, path::Path, raw,
};

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
        if address.port() != 0
            && listeners
                .iter()
                .any(|listener| listener.place == Place::Address(address))
        {
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
    let off_loopback = listeners.iter().any(|listener| !listener.place.is_loopback());
    cx.setting(&at, "required", &raw.required, Some(NULL.to_owned()));
    let written = raw::items(&raw.keys);
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
    cx.setting(at, "models", &raw.models, Some(NULL.to_owned()));
    let models = raw.models.as_ref();
    ClientKey {
        name: cx.name(&raw.name),
        sha256_file,
        models: models.map(|names| names.value.iter().map(|name| name.value.clone()).collect()),
    }
}

/// Reports models that keys may use and nothing answers for; a family stands for whatever there is of it.
pub(super) fn check_models(
    cx: &mut Context<'_>,
    raw: Option<&raw::Auth>,
    models: &[Model],
    presets: &[Preset],
) {
    let keys = raw.map(|raw| raw::items(&raw.keys)).unwrap_or_default();
    for name in keys.iter().flat_map(|key| raw::items(&key.value.models)) {
        if matches!(Pattern::of(&name.value), Pattern::Exact(_)) {
            known(cx, name, models, presets);
        }
    }
}

/// The place of the first listener address that other machines can reach.
fn first_off_loopback(cx: &Context<'_>) -> Span {
    let root = &cx.document.root;
    let addresses = cx.needs.iter().filter(|need| match need.what {
        What::Address(address) => !address.ip().is_loopback() && need.key.starts_with("listeners"),
        What::Socket => true,
        _ => false,
    });
    addresses.map(|need| need.span).next().unwrap_or(root.span)
}

const DEFAULT_ADMIN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9901);
