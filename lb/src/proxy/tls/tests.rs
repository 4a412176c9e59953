use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

use super::*;
use crate::config::{Certificate, ListenerTls};

/// An authority, and a folder of what it has signed.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("lb-identity-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    /// Signs a certificate for these names, into files of this name.
    fn sign(&self, file: &str, names: &[&str]) -> Certificate {
        let key = KeyPair::generate().unwrap();
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &self.issuer)
            .unwrap();
        let pair = Certificate {
            cert_file: self.folder.join(format!("{file}.pem")),
            key_file: self.folder.join(format!("{file}.key")),
        };
        std::fs::write(&pair.cert_file, certificate.pem()).unwrap();
        std::fs::write(&pair.key_file, key.serialize_pem()).unwrap();
        pair
    }

    fn ca_file(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// A client that trusts this authority.
    fn client(&self, alpn: &[&str], shows: Option<&Certificate>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match shows {
            None => builder.with_no_client_auth(),
            Some(pair) => builder
                .with_client_auth_cert(
                    chain(&pair.cert_file),
                    PrivateKeyDer::from_pem_file(&pair.key_file).unwrap(),
                )
                .unwrap(),
        };
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

fn chain(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn tls(certificates: Vec<Certificate>) -> ListenerTls {
    ListenerTls {
        certificates,
        client_ca_file: None,
    }
}

/// What a client saw of a handshake.
#[derive(Debug)]
struct Seen {
    certificate: CertificateDer<'static>,
    alpn: Option<Vec<u8>>,
    version: ProtocolVersion,
    resumed: bool,
}

/// One handshake and one byte each way.
async fn connect(identity: &Identity, client: &Arc<ClientConfig>, name: &str) -> std::io::Result<Seen> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let server = async {
        let mut stream = identity.acceptor().accept(theirs).await?;
        let byte = stream.read_u8().await?;
        stream.write_u8(byte).await?;
        stream.flush().await
    };
    let client = async {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut stream = TlsConnector::from(Arc::clone(client)).connect(name, ours).await?;
        stream.write_u8(7).await?;
        stream.flush().await?;
        assert_eq!(stream.read_u8().await?, 7);
        let session = stream.get_ref().1;
        Ok(Seen {
            certificate: session.peer_certificates().unwrap()[0].clone().into_owned(),
            alpn: session.alpn_protocol().map(<[u8]>::to_vec),
            version: session.protocol_version().unwrap(),
            resumed: session.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        })
    };
    let (served, seen): (std::io::Result<()>, std::io::Result<Seen>) = tokio::join!(server, client);
    seen.and_then(|seen| served.map(|()| seen))
}

// [TLS-1]
#[tokio::test]
async fn a_client_gets_the_certificate_of_the_name_it_asks_for() {
    let authority = Authority::new("names");
    let pairs = [
        authority.sign("first", &["first.test"]),
        authority.sign("exact", &["a.wild.test", "Upper.Test"]),
        authority.sign("wild", &["*.wild.test"]),
        authority.sign("late", &["first.test", "late.test"]),
    ];
    let leaves = pairs.clone().map(|pair| chain(&pair.cert_file).remove(0));
    let identity = Identity::load(&tls(pairs.to_vec()), true).unwrap();
    let client = authority.client(&[], None);
    for (name, expected) in [
        ("first.test", 0),
        ("a.wild.test", 1),
        ("upper.test", 1),
        ("b.wild.test", 2),
        ("late.test", 3),
    ] {
        let seen = connect(&identity, &client, name).await.unwrap();
        assert_eq!(seen.certificate, leaves[expected], "{name}");
    }
    // What nobody carries gets the first, which the client does not take for it.
    for name in ["wild.test", "b.a.wild.test", "192.0.2.1"] {
        let error = connect(&identity, &client, name).await.unwrap_err();
        assert!(
            error.to_string().contains("first.test") || error.to_string().contains("not valid for"),
            "{error}"
        );
    }
}

// [TLS-2]
#[tokio::test]
async fn the_protocol_is_agreed_on_and_none_in_common_is_refused() {
    let authority = Authority::new("alpn");
    let pairs = vec![authority.sign("a", &["a.test"])];
    let both = Identity::load(&tls(pairs.clone()), true).unwrap();
    let http1 = Identity::load(&tls(pairs), false).unwrap();
    let agreed = async |identity, offered: &[&str]| {
        let seen = connect(identity, &authority.client(offered, None), "a.test").await;
        seen.map(|seen| seen.alpn.map(|name| String::from_utf8(name).unwrap()))
    };
    assert_eq!(
        agreed(&both, &["http/1.1", "h2"]).await.unwrap().as_deref(),
        Some("h2")
    );
    assert_eq!(
        agreed(&both, &["http/1.1"]).await.unwrap().as_deref(),
        Some("http/1.1")
    );
    assert_eq!(
        agreed(&http1, &["h2", "http/1.1"]).await.unwrap().as_deref(),
        Some("http/1.1")
    );
    assert_eq!(agreed(&both, &[]).await.unwrap(), None);
    for identity in [&both, &http1] {
        assert!(agreed(identity, &["spdy/3"]).await.is_err());
    }
    assert!(agreed(&http1, &["h2"]).await.is_err());
}

// [TLS-3]
#[tokio::test]
async fn changed_files_are_used_by_new_handshakes_and_a_broken_pair_is_not() {
    let authority = Authority::new("renewal");
    let pair = authority.sign("a", &["a.test"]);
    let identity = Identity::load(&tls(vec![pair.clone()]), true).unwrap();
    let client = authority.client(&[], None);
    let old = chain(&pair.cert_file).remove(0);
    assert!(!identity.refresh().unwrap(), "nothing has changed");

    // A chain without its key, as between two writes.
    let other = authority.sign("b", &["a.test"]);
    std::fs::copy(&other.cert_file, &pair.cert_file).unwrap();
    let error = identity.refresh().unwrap_err();
    assert!(matches!(error, IdentityError::Pair { .. }), "{error}");
    let again = identity.refresh().unwrap_err();
    assert_eq!(
        again.to_string(),
        error.to_string(),
        "whoever asks again is told again"
    );
    assert_eq!(
        connect(&identity, &client, "a.test").await.unwrap().certificate,
        old
    );

    std::fs::copy(&other.key_file, &pair.key_file).unwrap();
    assert!(identity.refresh().unwrap());
    let seen = connect(&identity, &authority.client(&[], None), "a.test")
        .await
        .unwrap();
    assert_eq!(seen.certificate, chain(&other.cert_file)[0]);

    std::fs::write(&pair.cert_file, "half a cert").unwrap();
    assert!(matches!(
        identity.refresh().unwrap_err(),
        IdentityError::Pem { .. }
    ));
    std::fs::remove_file(&pair.cert_file).unwrap();
    assert!(matches!(
        identity.refresh().unwrap_err(),
        IdentityError::File { .. }
    ));
    assert!(connect(&identity, &client, "a.test").await.is_ok());
}

// [TLS-4]
#[tokio::test]
async fn with_client_authorities_only_their_clients_get_in() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let mut config = tls(vec![ours.sign("a", &["a.test"])]);
    config.client_ca_file = Some(ours.ca_file());
    let identity = Identity::load(&config, true).unwrap();
    let (known, unknown) = (
        ours.sign("known", &["client.test"]),
        theirs.sign("unknown", &["client.test"]),
    );
    assert!(
        connect(&identity, &ours.client(&[], Some(&known)), "a.test")
            .await
            .is_ok()
    );
    for shown in [None, Some(&unknown)] {
        assert!(
            connect(&identity, &ours.client(&[], shown), "a.test")
                .await
                .is_err()
        );
    }
    // Other authorities: who was let in before is not any more, not even with a ticket.
    let client = ours.client(&[], Some(&known));
    assert!(!connect(&identity, &client, "a.test").await.unwrap().resumed);
    assert!(connect(&identity, &client, "a.test").await.unwrap().resumed);
    std::fs::copy(theirs.ca_file(), ours.ca_file()).unwrap();
    assert!(identity.refresh().unwrap());
    assert!(connect(&identity, &client, "a.test").await.is_err());
    assert!(
        connect(&identity, &ours.client(&[], Some(&unknown)), "a.test")
            .await
            .is_ok()
    );
}

// [TLS-5]
#[tokio::test]
async fn sessions_are_resumed_also_after_a_renewal() {
    let authority = Authority::new("tickets");
    let pair = authority.sign("a", &["a.test"]);
    let identity = Identity::load(&tls(vec![pair.clone()]), true).unwrap();
    let client = authority.client(&[], None);
    let first = connect(&identity, &client, "a.test").await.unwrap();
    assert_eq!((first.resumed, first.version), (false, ProtocolVersion::TLSv1_3));
    assert!(connect(&identity, &client, "a.test").await.unwrap().resumed);
    authority.sign("a", &["a.test"]);
    assert!(identity.refresh().unwrap());
    assert!(connect(&identity, &client, "a.test").await.unwrap().resumed);
}

// [TLS-3]
#[test]
fn what_cannot_be_used_is_named_with_its_file() {
    let authority = Authority::new("faults");
    let pair = authority.sign("a", &["a.test"]);
    let said = |tls: &ListenerTls| Identity::load(tls, true).unwrap_err().to_string();
    let mut swapped = pair.clone();
    std::mem::swap(&mut swapped.cert_file, &mut swapped.key_file);
    assert!(said(&tls(vec![swapped])).ends_with("a.key: holds no certificate"));
    let missing = Certificate {
        key_file: "/nowhere/a.key".into(),
        ..pair.clone()
    };
    assert!(said(&tls(vec![missing])).starts_with("/nowhere/a.key: "));
    let no_authority = ListenerTls {
        certificates: vec![pair.clone()],
        client_ca_file: Some(pair.key_file.clone()),
    };
    assert!(said(&no_authority).ends_with("a.key: holds no certificate"));
}
