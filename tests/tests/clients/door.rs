//! How a package's requests reach lb.

use lb_tests::daemon::{Folder, Lb};
use lb_tests::sdk::Sdk;
use lb_tests::setup::Setup;
use serde_json::{Value, json};

/// A package, and what it speaks.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Door {
    Node,
    Python,
    /// Python over TLS and HTTP/2.
    Python2,
}

/// An lb behind its door.
pub(crate) struct Behind {
    pub(crate) lb: Lb,
    sdk: Sdk,
    /// What a client of Python sees spoken.
    http: Value,
    _folder: Folder,
}

impl Door {
    /// Starts lb so that the package can reach it; `None` after saying why it cannot run.
    pub(crate) async fn open(self, mut setup: Setup) -> Option<Behind> {
        let folder = Folder::new();
        let (sdk, http) = match self {
            Self::Node => (Sdk::node()?, Value::Null),
            Self::Python => (Sdk::python()?, json!("HTTP/1.1")),
            Self::Python2 => {
                let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
                let certificate = folder.write("cert.pem", &made.cert.pem());
                let key = folder.write("key.pem", &made.signing_key.serialize_pem());
                setup = setup.listener(&format!(
                    "tls: {{ cert_file: {}, key_file: {} }}",
                    certificate.display(),
                    key.display()
                ));
                (Sdk::python()?.over_http2(&certificate), json!("HTTP/2"))
            }
        };
        Some(Behind {
            lb: Lb::start(&setup).await,
            sdk,
            http,
            _folder: folder,
        })
    }
}

impl Behind {
    /// What an application gets that asks for each of these, by the SDK's own defaults.
    pub(crate) async fn ask(&self, what: &[&str]) -> Vec<Value> {
        self.ask_with(what.iter().map(|what| json!({"what": what})).collect())
            .await
    }

    /// As [`Behind::ask`], where an order has `what` and some of `model`, `key` and `retries`.
    pub(crate) async fn ask_with(&self, orders: Vec<Value>) -> Vec<Value> {
        let all = self.sdk.ask_with(&self.lb, orders).await;
        for seen in &all {
            assert_eq!(seen["http"], self.http, "{seen}");
        }
        all
    }

    /// The values of what has to succeed.
    pub(crate) async fn values(&self, what: &[&str]) -> Vec<Value> {
        let all = self.ask(what).await.into_iter();
        all.map(|mut seen| {
            assert_eq!(seen["error"], Value::Null, "{seen}");
            seen["value"].take()
        })
        .collect()
    }
}
