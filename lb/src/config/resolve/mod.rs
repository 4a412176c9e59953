//! From the shape of the file to a [`Config`], with all problems of meaning found at once.
//!
//! Every part resolves what it can and stands in for what it cannot, so that one fault never hides another. The
//! stand-ins are never seen: one error is enough to give no configuration at all.

#![expect(
    clippy::ref_option,
    reason = "what may be left out is passed as it stands in the shape"
)]

mod access;
mod affinity;
mod aimd;
mod bound;
mod check;
mod connections;
mod context;
mod embedding;
mod endpoint;
mod fallback;
mod found;
mod health;
mod kernel;
mod listener;
mod model;
mod preset;
mod process;
mod provider;
mod retries;
mod route;
mod status;
mod target;
mod tls;
mod traffic;

pub(super) use self::context::Context;
use super::{Config, Failover, diagnostic::Diagnostic, document::Document, later, path::Path, raw};

/// The configuration that `file` means, as far as it has one, and everything found on the way.
pub(super) fn resolve<'a>(file: &raw::File, document: &'a Document) -> (Config, Context<'a>) {
    let mut cx = Context::new(document);
    if file.version.value != 1 {
        cx.report(
            Diagnostic::error(
                "E002",
                file.version.span,
                "this version of the format is not known",
            )
            .help("write `version: 1`"),
        );
    }
    cx.written(&Path::default(), "version", file.version.span, None);
    let listeners = listener::listeners(&mut cx, file);
    let admin = access::admin(&mut cx, file.admin.as_ref(), &listeners);
    let auth = access::auth(&mut cx, file.auth.as_ref(), &listeners);
    let server = process::server(&mut cx, file.server.as_ref());
    let providers = provider::providers(&mut cx, file);
    let failover = fallback::failover(&mut cx, file.failover.as_ref());
    let models = model::models(&mut cx, file, &failover);
    let presets = preset::presets(&mut cx, file, &models, &failover);
    embedding::check(&mut cx, file, &models, &presets);
    access::check_models(&mut cx, file.auth.as_ref(), &models, &presets);
    let routes = route::routes(&mut cx, file, &providers, &models, &presets);
    target::warn_of_idle(&mut cx, file, &providers, &models, &routes);
    affinity::warn_of_no_conversation(&mut cx, file, &providers, &models);
    let log = process::log(&mut cx, file.log.as_ref());
    let metrics = process::metrics(&mut cx, file.metrics.as_ref(), &models, &presets);
    let kernel = kernel::kernel(&mut cx, file.kernel.as_ref());
    let tracing = process::tracing(&mut cx, file.tracing.as_ref());
    check::store(&mut cx, file);
    later::check(&mut cx);
    cx.diagnostics
        .sort_by_key(|diagnostic| diagnostic.primary.span.start);
    let failover = Failover {
        total_deadline: failover.total_deadline,
        stream_idle_timeout: failover.stream_idle_timeout,
    };
    let config = Config {
        listeners,
        admin,
        auth,
        server,
        routes,
        providers,
        models,
        failover,
        presets,
        kernel,
        log,
        metrics,
        tracing,
    };
    (config, cx)
}
