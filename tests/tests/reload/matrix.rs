//! Every kind of change, idle and under 200 open streams: no stream is dropped, and what was learned is kept as far as it
//! is still about the same thing.

use lb_tests::client::{Exchange, ask, chat, get};
use lb_tests::daemon::Lb;
use lb_tests::provider::Script;
use rustix::process::Signal as Unix;
use tokio::net::TcpStream;

use crate::bench::Bench;

/// No streams, and as many as make a difference.
const STREAMS: [usize; 2] = [0, 200];

const KEPT: (bool, f64, u64) = (true, 0.8, 1);
const PARKED: (bool, f64, u64) = (false, 0.8, 1);
const RESUMED: (bool, f64, u64) = (true, 0.8, 2);
const FRESH: (bool, f64, u64) = (true, 1.0, 0);

// [RELOAD-1] [RELOAD-4]
#[tokio::test]
async fn an_unrelated_change_changes_nothing_else() {
    for streams in STREAMS {
        let bench = Bench::start(streams).await;
        let idle = bench.gpu.connections().len();
        bench
            .lb
            .write(&bench.changed(&[("workers: 1, ", "workers: 1, drain_timeout_ms: 1234, ")]));
        bench.lb.signal(Unix::HUP);
        bench.lb.logged(&["\"reloaded\""]).await;
        assert_eq!(bench.share().await, KEPT);
        bench.is_kept().await;
        assert_eq!(bench.gpu.connections().len(), idle);
        bench.end().await;
    }
}

// [RELOAD-4] [RELOAD-20]
#[tokio::test]
async fn a_listener_turns_to_tls_on_the_same_socket() {
    for streams in STREAMS {
        let bench = Bench::start(streams).await;
        let made = rcgen::generate_simple_self_signed(["lb.test".to_owned()]).unwrap();
        let cert = bench.lb.folder().write("cert.pem", &made.cert.pem());
        let key = bench
            .lb
            .folder()
            .write("key.pem", &made.signing_key.serialize_pem());
        let tls = format!(
            "name: data, tls: {{ cert_file: {}, key_file: {} }}, ",
            cert.display(),
            key.display()
        );
        bench.change(&[("name: data, ", &tls)]).await;
        assert_eq!(bench.share().await, KEPT);
        bench.is_kept().await;
        let mut plain = Exchange::begin(bench.lb.data(), get("/v1/models")).await;
        // An alert, and the end.
        while !plain.closed().await {}
        assert_eq!(handshake(bench.lb.data(), made.cert.der()).await, 200);
        bench.change(&[]).await;
        assert_eq!(ask(bench.lb.data(), get("/v1/models")).await.status(), 200);
        bench.end().await;
    }
}

/// Status of `GET /v1/models` over TLS.
async fn handshake(to: std::net::SocketAddr, trusted: &rustls::pki_types::CertificateDer<'static>) -> u16 {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(to).await.unwrap();
    let name = rustls::pki_types::ServerName::try_from("lb.test").unwrap();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let mut stream = connector.connect(name, stream).await.unwrap();
    stream.write_all(&get("/v1/models")).await.unwrap();
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.unwrap();
    std::str::from_utf8(&line[9..]).unwrap().parse().unwrap()
}

// [RELOAD-4] [RELOAD-21]
#[tokio::test]
async fn another_port_takes_over_and_the_old_one_ends_behind_its_streams() {
    for streams in STREAMS {
        let mut bench = Bench::start(streams).await;
        // Without a request it has nothing to wait for.
        let mut kept = Exchange::begin(bench.lb.data(), get("/v1/models")).await;
        kept.answer().await;
        bench.change(&[("name: data, ", "name: moved, ")]).await;
        let moved = bench.lb.listening("moved", 1).await;
        assert_ne!(moved, bench.lb.data());
        bench
            .lb
            .eventually("the old port to be closed", async |lb| {
                TcpStream::connect(lb.data()).await.is_err()
            })
            .await;
        assert!(kept.closed().await);
        assert_eq!(bench.share().await, KEPT);
        bench.is_kept().await;
        bench.finish().await;
        bench.lb.idle().await;
        assert_eq!(ask(moved, chat("chat", true)).await.status(), 200);
        assert_eq!(ask(bench.lb.admin(), get("/readyz")).await.status(), 200);
    }
}

// [RELOAD-4] [RELOAD-11]
#[tokio::test]
async fn another_order_begins_another_share() {
    for streams in STREAMS {
        let bench = Bench::start(streams).await;
        let [gpu, alt] =
            ["gpu", "alt"].map(|name| format!("{{ provider: {name}, upstream_model: {name}-model }}"));
        bench
            .change(&[(&format!("{gpu}, {alt}"), &format!("{alt}, {gpu}"))])
            .await;
        assert_eq!(bench.share().await, FRESH);
        bench.is_kept().await;
        let before = bench.alt.requests().len();
        drop(bench.stream().await);
        assert_eq!(
            bench.alt.requests().len(),
            before + 1,
            "the first in order is tried first"
        );
        bench
            .lb
            .eventually("the stream to be gone", async |_| {
                bench.in_flight().await == streams as u64
            })
            .await;
        bench.end().await;
    }
}

// [RELOAD-4] [RELOAD-12]
#[tokio::test]
async fn the_preferred_provider_may_go_and_come_back() {
    for streams in STREAMS {
        let bench = Bench::start(streams).await;
        bench.change(&[("  gpu: {", "  gpu: { enabled: false,")]).await;
        assert_eq!(bench.share().await, PARKED);
        assert_eq!(bench.lb.sum("lb_aimd_active", &[]).await, 0);
        bench.is_kept().await;
        let before = bench.gpu.requests().len();
        drop(bench.stream().await);
        assert_eq!(bench.gpu.requests().len(), before, "it is not tried");
        bench.change(&[]).await;
        assert_eq!(bench.share().await, RESUMED);
        assert_eq!(bench.lb.sum("lb_aimd_active", &[]).await, 1);
        bench
            .lb
            .eventually("the stream to be gone", async |_| {
                bench.in_flight().await == streams as u64
            })
            .await;
        bench.is_kept().await;
        bench.end().await;
    }
}

// [RELOAD-4] [RELOAD-10]
#[tokio::test]
async fn weights_and_limits_apply_at_once_to_what_is_held_already() {
    for streams in STREAMS {
        let bench = Bench::start(streams).await;
        bench
            .change(&[("provider: alt, ", "provider: alt, weight: 7, ")])
            .await;
        assert_eq!(bench.share().await, KEPT);
        bench.is_kept().await;
        // As many as are open now: whoever comes is one too many.
        let held = bench.lb.state().await["providers"][0]["in_flight"]
            .as_u64()
            .unwrap();
        let limit = format!("  gpu: {{ concurrency: {},", held.max(1));
        bench.change(&[("  gpu: {", &limit)]).await;
        assert_eq!(bench.share().await, KEPT);
        bench.is_kept().await;
        if streams > 0 {
            let before = bench.gpu.requests().len();
            drop(bench.stream().await);
            assert_eq!(bench.gpu.requests().len(), before);
            bench
                .lb
                .eventually("the stream to be gone", async |_| {
                    bench.in_flight().await == streams as u64
                })
                .await;
        }
        bench.change(&[]).await;
        bench.end().await;
    }
}

// [RELOAD-4] [RELOAD-5]
#[tokio::test]
async fn a_broken_file_changes_nothing_and_is_told_as_lb_check_tells_it() {
    for streams in STREAMS {
        let bench = Bench::start(streams).await;
        let broken = bench.changed(&[("provider: alt, ", "provider: elsewhere, ")]);
        bench.lb.write(&broken);
        let answer = bench.lb.reload().await;
        assert_eq!(
            (answer.status(), answer.code().as_str()),
            (422, "invalid_configuration")
        );
        assert_eq!(
            answer.json()["report"]["diagnostics"][0]["code"],
            "E101",
            "{}",
            answer.text()
        );
        let file = bench.lb.folder().path().join("lb.yaml");
        let check = lb_tests::daemon::command(["check", "--no-environment", "-c"])
            .arg(file)
            .output()
            .await;
        let snippet = String::from_utf8(check.expect("it runs").stderr).expect("text");
        let line = bench.lb.logged(&["\"not reloaded"]).await;
        let line: serde_json::Value = serde_json::from_str(&line).expect("a JSON log line");
        let said = line["message"].as_str().expect("text");
        for part in snippet
            .lines()
            .filter(|line| !line.is_empty() && !line.ends_with("warnings") && !line.ends_with("warning"))
        {
            assert!(said.contains(part), "{part:?} in {said}");
        }
        assert_eq!(bench.lb.sum("lb_config_last_reload_successful", &[]).await, 0);
        assert_eq!(bench.share().await, KEPT);
        bench.is_kept().await;
        bench.change(&[]).await;
        assert_eq!(bench.lb.sum("lb_config_last_reload_successful", &[]).await, 1);
        bench.end().await;
    }
}

// [RELOAD-4] [RELOAD-2]
#[tokio::test]
async fn a_half_written_file_is_waited_for_or_refused_and_read_when_it_is_whole() {
    for streams in STREAMS {
        let bench = Bench::start(streams).await;
        let text = bench.changed(&[("workers: 1, ", "workers: 1, drain_timeout_ms: 1234, ")]);
        // A file cut in the middle of a word, and never finished until that is complained of.
        let half = text.find("providers:").expect("there are some") + 4;
        bench.lb.write(&text[..half]);
        bench.lb.logged(&["\"not reloaded"]).await;
        assert_eq!(bench.share().await, KEPT);
        bench.is_kept().await;
        bench.lb.write(&text);
        bench.lb.logged(&["\"reloaded\""]).await;
        // One that is finished soon is never seen in its half.
        for part in [half, half + 20, half + 40, bench.text.len()] {
            bench.lb.write(&bench.text[..part]);
        }
        bench
            .lb
            .eventually("a second reload", async |lb| lb.count(&["\"reloaded\""]) == 2)
            .await;
        assert_eq!(bench.lb.count(&["\"not reloaded"]), 1);
        assert_eq!(bench.share().await, KEPT);
        bench.is_kept().await;
        bench.end().await;
    }
}

// [RELOAD-4] [RELOAD-3]
#[tokio::test]
async fn an_exchanged_link_is_one_reload_and_so_are_two_renames() {
    for streams in STREAMS {
        let bench = Bench::start(streams).await;
        let folder = bench.lb.folder().path();
        let limit =
            |n: u32| bench.changed(&[("workers: 1, ", &format!("workers: 1, drain_timeout_ms: {n}, "))]);
        for name in ["1", "2"] {
            std::fs::create_dir(folder.join(name)).unwrap();
        }
        std::fs::write(folder.join("1/lb.yaml"), &bench.text).unwrap();
        std::fs::write(folder.join("2/lb.yaml"), limit(1)).unwrap();
        // As Kubernetes mounts it.
        let link = |to: &str, at: &str| {
            std::os::unix::fs::symlink(to, folder.join("aside")).unwrap();
            std::fs::rename(folder.join("aside"), folder.join(at)).unwrap();
        };
        link("1", "..data");
        link("..data/lb.yaml", "lb.yaml");
        link("2", "..data");
        bench.lb.logged(&["\"reloaded\""]).await;
        for n in [2, 3] {
            std::fs::write(folder.join("aside"), limit(n)).unwrap();
            std::fs::rename(folder.join("aside"), folder.join("lb.yaml")).unwrap();
        }
        bench
            .lb
            .eventually("the last of them", async |lb| lb.count(&["\"reloaded\""]) >= 2)
            .await;
        assert_eq!(bench.share().await, KEPT);
        bench.is_kept().await;
        // What is in force now would not be seen by a third reload that had been due meanwhile.
        assert_eq!(bench.lb.count(&["\"reloaded\""]), 2);
        bench.end().await;
    }
}

// [RELOAD-4]
#[tokio::test]
async fn fifty_reloads_in_a_row_lose_nothing() {
    for streams in STREAMS {
        let bench = Bench::start(streams).await;
        for n in 0..50 {
            let limit = format!("  gpu: {{ concurrency: {},", 1000 + n);
            let (on, flag) = if n % 2 == 0 {
                ("true", KEPT)
            } else {
                ("false", KEPT)
            };
            bench
                .change(&[
                    ("  gpu: {", &limit),
                    ("name: data, ", &format!("name: data, http2: {on}, ")),
                ])
                .await;
            assert_eq!(bench.share().await, flag);
        }
        bench.is_kept().await;
        assert_eq!(open_sockets(&bench.lb), 3, "data, admin, and the socket file's");
        bench.end().await;
    }
}

/// Sockets of the process that listen.
fn open_sockets(lb: &Lb) -> usize {
    let own: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", lb.pid()))
        .expect("a running process")
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .map(|link| link.display().to_string())
        .collect();
    let inode = |line: &str, at: usize| {
        line.split_whitespace()
            .nth(at)
            .map(|inode| format!("socket:[{inode}]"))
    };
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{}/net/{file}", lb.pid())).expect("Linux");
    let tcp = read("tcp");
    let tcp = tcp
        .lines()
        .filter(|line| line.split_whitespace().nth(3) == Some("0A"));
    let unix = read("unix");
    let unix = unix.lines().filter(|line| line.contains("/lb-test-"));
    let listening: std::collections::BTreeSet<String> = tcp
        .filter_map(|line| inode(line, 9))
        .chain(unix.filter_map(|line| inode(line, 6)))
        .collect();
    listening.iter().filter(|socket| own.contains(socket)).count()
}

// [RELOAD-6]
#[tokio::test]
async fn what_waits_for_a_restart_is_said_once_and_the_rest_applied() {
    let bench = Bench::start(1).await;
    let answer = bench
        .change(&[
            ("workers: 1, ", "workers: 2, drain_timeout_ms: 1234, "),
            ("log: { format: json }", "log: { format: json, level: debug }"),
        ])
        .await;
    assert_eq!(
        answer.json()["waiting_for_restart"],
        serde_json::json!(["server.workers", "log"])
    );
    bench
        .lb
        .logged(&["wait for a restart", "server.workers, log"])
        .await;
    assert_eq!(bench.share().await, KEPT);
    bench.gpu.otherwise(Script::streamed(&["x"]));
    bench.end().await;
}
