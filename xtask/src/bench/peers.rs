//! lb beside its peers: builds what the kit needs, writes lb's configuration, and hands over to the kit's script.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::Peers;
use crate::{
    command::{self, Failure, Result},
    release,
};

/// One worker with all policy on: a strict model over two providers, so that the share is active, health and metrics.
const CONFIG: &str = r#"version: 1
listeners:
  - { name: plain, address: "127.0.0.1:21000", max_connections: 20000 }
  - { name: tls, address: "127.0.0.1:21001", max_connections: 20000, tls: { cert_file: CERT, key_file: KEY } }
admin: { address: "127.0.0.1:21002" }
auth: { required: false }
server: { workers: 1 }
log: { access: ACCESS }
providers:
  gpu: { endpoints: [{ url: "http://127.0.0.1:20000/v1" }], connections: { max_idle_per_endpoint: 1024 } }
  alt: { endpoints: [{ url: "http://127.0.0.1:20001/v1" }] }
  health: { endpoints: [{ url: "http://127.0.0.1:20000" }] }
routes:
  - { match: { path_prefix: /v1/ }, to: models }
  - { match: { path_prefix: /healthz }, to: { provider: health } }
models:
  mock: { targets: [{ provider: gpu }, { provider: alt }] }
kernel: { mode: off }
"#;

pub(super) fn run(args: &Peers) -> Result {
    let script = args.kit.join("run.py");
    if !script.exists() {
        return Err(Failure::new(format!(
            "{} is not there: --kit names the folder of the benchmark kit",
            script.display()
        )));
    }
    let kit = absolute(&args.kit)?;
    let work = command::root().join("target/bench");
    prepare(&kit, &work)?;
    let lb = lb(args)?;
    let mut run = Command::new("python3");
    run.arg("run.py")
        .current_dir(&work)
        .args(["--peers", &args.peers, "--scenarios", &args.scenarios])
        .args(["--rounds", &args.rounds.to_string()]);
    let ours = [("lb", "false"), ("lb-logging", "true")];
    for (name, access) in ours.into_iter().take(if args.access_log { 2 } else { 1 }) {
        let file = work.join(format!("{name}.yaml"));
        let text = CONFIG
            .replace("CERT", &work.join("certs/leaf.pem").display().to_string())
            .replace("KEY", &work.join("certs/leaf.key").display().to_string())
            .replace("ACCESS", access);
        fs::write(&file, text).map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
        run.arg("--peer").arg(format!(
            "{name}={} run -c {},port=21000,tls_port=21001,note=one worker, all policy on, access log {access}",
            lb.display(),
            file.display()
        ));
    }
    command::run(&mut run)
}

/// The lb that is measured: what is shipped, if nothing else is asked for.
fn lb(args: &Peers) -> Result<PathBuf> {
    if let Some(lb) = &args.lb {
        return absolute(lb);
    }
    if !args.plain {
        return release::build();
    }
    command::run(command::cargo().args(["build", "--quiet", "--release", "--locked"]))?;
    Ok(command::root().join("target/release/lb"))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// Copies the kit to where it may write, builds its programs and makes its certificates.
fn prepare(kit: &Path, work: &Path) -> Result {
    fs::create_dir_all(work).map_err(|error| Failure::new(format!("{}: {error}", work.display())))?;
    command::run(
        Command::new("cp")
            .arg("-a")
            .arg(format!("{}/.", kit.display()))
            .arg(work),
    )?;
    let mut build = command::cargo();
    build
        .current_dir(work.join("benchkit"))
        .args(["build", "--quiet", "--release"]);
    command::run(&mut build)?;
    if !work.join("certs/leaf.pem").exists() {
        command::run(Command::new("sh").arg("gen.sh").current_dir(work.join("certs")))?;
    }
    Ok(())
}
