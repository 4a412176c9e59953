//! A column of the table: how the client and the provider are connected.

use std::sync::Arc;

use lb_tests::daemon::{Folder, Lb};
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::terminator::Terminator;

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// How two peers are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) version: Version,
    pub(crate) tls: bool,
}

impl Wire {
    pub(crate) const ONE: Self = Self {
        version: Version::One,
        tls: false,
    };
    pub(crate) const ONE_TLS: Self = Self {
        version: Version::One,
        tls: true,
    };
    /// By prior knowledge.
    pub(crate) const TWO: Self = Self {
        version: Version::Two,
        tls: false,
    };
    /// By ALPN.
    pub(crate) const TWO_TLS: Self = Self {
        version: Version::Two,
        tls: true,
    };

    pub(crate) const ALL: [Self; 4] = [Self::ONE, Self::ONE_TLS, Self::TWO, Self::TWO_TLS];
}

/// lb between a client and two providers that are reached in the same way.
pub(crate) struct Column {
    pub(crate) lb: Lb,
    /// What plays the scripts; an alternate that says "ok" stands behind it unless it is alone.
    pub(crate) provider: Provider,
    pub(crate) alternate: Provider,
    pub(crate) client_tls: Option<Arc<ClientConfig>>,
    pub(crate) name: String,
    _terminators: Vec<Terminator>,
    _folder: Folder,
}

/// What a test wants of its column.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wish<'a> {
    /// No alternate.
    pub(crate) alone: bool,
    /// The preferred provider's address, where it is not the scripted one's.
    pub(crate) instead: Option<&'a str>,
    pub(crate) model: &'a [&'a str],
    pub(crate) fallback: &'a [&'a str],
    pub(crate) provider: &'a [&'a str],
    /// Members of every provider's `connections`.
    pub(crate) connections: &'a [&'a str],
    pub(crate) section: &'a [&'a str],
}

impl Column {
    pub(crate) async fn start((client, upstream): (bool, Wire), wish: Wish<'_>) -> Self {
        let folder = Folder::new();
        let made =
            rcgen::generate_simple_self_signed(["lb.test".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        let certificate = folder.write("cert.pem", &made.cert.pem());
        let key = folder.write("key.pem", &made.signing_key.serialize_pem());
        let identity = server_config(&made);
        let (provider, alternate) = (
            Provider::start(Script::silent().stall()).await,
            Provider::start(Script::streamed(&["ok"])).await,
        );
        let mut terminators = Vec::new();
        let mut urls = Vec::new();
        for provider in [&provider, &alternate] {
            if upstream == Wire::ONE {
                urls.push(provider.url());
                continue;
            }
            let terminator = Terminator::start(upstream, identity.clone(), provider.address()).await;
            let scheme = if upstream.tls { "https" } else { "http" };
            urls.push(format!("{scheme}://{}/v1", terminator.address()));
            terminators.push(terminator);
        }
        let preferred = wish.instead.unwrap_or(&urls[0]);
        let mut setup = Setup::new().at("gpu", &[preferred]);
        if !wish.alone {
            setup = setup.at("alt", &[&urls[1]]);
        }
        let ca = format!("tls: {{ ca_file: {} }}", certificate.display());
        if upstream.tls {
            setup = setup.provider(&ca);
        }
        let prior = (upstream == Wire::TWO).then_some("http_version: http2");
        let connections: Vec<_> = prior.iter().chain(wish.connections).copied().collect();
        if !connections.is_empty() {
            setup = setup.provider(&format!("connections: {{ {} }}", connections.join(", ")));
        }
        let tls = format!(
            "tls: {{ cert_file: {}, key_file: {} }}",
            certificate.display(),
            key.display()
        );
        if client {
            setup = setup.listener(&tls);
        }
        setup = wish.model.iter().fold(setup, |setup, member| setup.model(member));
        setup = wish
            .fallback
            .iter()
            .fold(setup, |setup, member| setup.fallback(member));
        setup = wish
            .provider
            .iter()
            .fold(setup, |setup, member| setup.provider(member));
        setup = wish
            .section
            .iter()
            .fold(setup, |setup, lines| setup.section(lines));
        Self {
            lb: Lb::start(&setup).await,
            provider,
            alternate,
            client_tls: client.then(|| Arc::new(client_config(&made))),
            name: format!("client over TLS: {client}, provider: {upstream:?}"),
            _terminators: terminators,
            _folder: folder,
        }
    }

    /// The versions a client speaks in this column, each under the name of its cell.
    pub(crate) fn versions(&self) -> [(Version, String); 2] {
        [Version::One, Version::Two].map(|version| (version, format!("{version:?}, {}", self.name)))
    }
}

fn server_config(made: &rcgen::CertifiedKey<rcgen::KeyPair>) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap()
}

fn client_config(made: &rcgen::CertifiedKey<rcgen::KeyPair>) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}
