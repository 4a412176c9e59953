//! The openai packages for Python and for Node.js as clients of lb.
//!
//! Their interpreters come from `LB_OPENAI_PYTHON` and `LB_OPENAI_NODE`, beside which file stands the `node_modules`
//! that it uses. Without one its tests say so and are skipped; with `LB_REQUIRE_CLIENTS=1` a skip is a failure.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::daemon::{Lb, skip};

/// A package, and how it is connected.
#[derive(Debug, Clone)]
pub struct Sdk {
    interpreter: PathBuf,
    script: &'static str,
    /// The certificate to trust: over TLS, HTTP/2 is spoken.
    certificate: Option<PathBuf>,
}

impl Sdk {
    /// The package for Python, over HTTP/1.1 in the clear; `None` after saying why there is none.
    pub fn python() -> Option<Self> {
        Self::find("LB_OPENAI_PYTHON", "client.py")
    }

    /// The package for Node.js, over HTTP/1.1 in the clear; `None` after saying why there is none.
    pub fn node() -> Option<Self> {
        Self::find("LB_OPENAI_NODE", "client.cjs")
    }

    /// What runs programs that use the package.
    pub fn interpreter(&self) -> &Path {
        &self.interpreter
    }

    /// Over TLS and HTTP/2, which only Python's can, trusting this certificate for `localhost`.
    #[must_use]
    pub fn over_http2(self, certificate: &Path) -> Self {
        Self {
            certificate: Some(certificate.to_owned()),
            ..self
        }
    }

    /// What an application gets that asks lb for each of these, one after the other, with the SDK's own defaults.
    pub async fn ask(&self, lb: &Lb, what: &[&str]) -> Vec<Value> {
        let orders = what.iter().map(|what| json!({"what": what})).collect();
        self.ask_with(lb, orders).await
    }

    /// As [`Sdk::ask`], where an order has `what` and some of `model`, `key` and `retries`.
    pub async fn ask_with(&self, lb: &Lb, mut orders: Vec<Value>) -> Vec<Value> {
        let port = lb.data().port();
        for order in &mut orders {
            order["base"] = match &self.certificate {
                None => format!("http://127.0.0.1:{port}/v1").into(),
                Some(certificate) => {
                    order["ca"] = certificate.to_str().expect("our own path").into();
                    format!("https://localhost:{port}/v1").into()
                }
            };
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("clients")
            .join(self.script);
        let mut command = Command::new(&self.interpreter);
        command
            .arg(script)
            .arg(Value::from(orders).to_string())
            .stdin(Stdio::null())
            .env("NO_PROXY", "*")
            .kill_on_drop(true);
        if let Some(folder) = self.interpreter.parent() {
            command.env("NODE_PATH", folder.join("node_modules"));
        }
        let output = command.output().await.expect("the interpreter starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).expect("a JSON list")
    }

    fn find(variable: &str, script: &'static str) -> Option<Self> {
        let interpreter = std::env::var_os(variable).filter(|path| !path.is_empty());
        let Some(interpreter) = interpreter else {
            skip(&format!(
                "{variable} names no interpreter with the openai package"
            ));
            return None;
        };
        Some(Self {
            interpreter: interpreter.into(),
            script,
            certificate: None,
        })
    }
}
