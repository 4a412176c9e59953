//! What the kernel plane costs: `cargo xtask bench kernel`, or with `LB_BIN` set `cargo bench -p lb-tests --bench kernel`.
//!
//! Small requests over loopback on connections that stay open: every segment passes the cgroup's programs, and nothing is
//! done for a request besides, so that it is the dearest case. A run with the plane and one without make a pair; pairs
//! follow each other in turned order, so that what else the machine does meets both. Prints for each pair the CPU time of
//! one request, of the whole system and of those who take part, and at the end the medians of the ratios. The system's is
//! the one that counts, on a machine that does nothing else; the other also tells something on a busy one.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use lb_tests::client::chat;
use lb_tests::daemon::Lb;
use lb_tests::setup::Setup;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Odd, so that the median is one of them.
const PAIRS: usize = 13;
const SPAN: Duration = Duration::from_secs(3);
const CONNECTIONS: usize = 64;
const BODY: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","choices":[]}"#;

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime")
}

fn main() {
    let (sender, address) = mpsc::channel();
    thread::spawn(move || runtime().block_on(upstream(&sender)));
    let upstream = address.recv().expect("the upstream says where it listens");
    let mut ratios = [Vec::new(), Vec::new()];
    for pair in 0..PAIRS {
        let mut modes = ["required", "off"];
        if pair % 2 == 1 {
            modes.reverse();
        }
        let mut costs = modes.map(|mode| runtime().block_on(run(upstream, mode)));
        if pair % 2 == 1 {
            costs.reverse();
        }
        let [on, off] = costs;
        report(&format!(
            "{pair:2}: system {:.2} µs on, {:.2} µs off; those who take part {:.2} µs on, {:.2} µs off",
            on[0], off[0], on[1], off[1]
        ));
        for (which, ratios) in ratios.iter_mut().enumerate() {
            ratios.push(on[which] / off[which]);
        }
    }
    for (who, mut ratios) in ["system", "those who take part"].into_iter().zip(ratios) {
        ratios.sort_unstable_by(f64::total_cmp);
        let (median, least, most) = (ratios[PAIRS / 2], ratios[0], ratios[PAIRS - 1]);
        report(&format!(
            "{who}: on costs {median:.4} of off, from {least:.3} to {most:.3}, {PAIRS} pairs of {SPAN:?}"
        ));
    }
}

/// Microseconds of CPU for a request: the system's, and those of this process and the daemon.
async fn run(upstream: SocketAddr, mode: &str) -> [f64; 2] {
    let setup = Setup::new()
        .at("gpu", &[&format!("http://{upstream}/v1")])
        .provider("connections: { max_idle_per_endpoint: 1024 }")
        .section(&format!("kernel: {{ mode: {mode} }}"));
    let lb = Lb::start(&setup).await;
    let pids = [std::process::id(), lb.pid()];
    let before = [system(), taken(pids)];
    let end = Instant::now() + SPAN;
    let clients: JoinSet<_> = (0..CONNECTIONS).map(|_| client(lb.data(), end)).collect();
    let requests: u32 = clients.join_all().await.into_iter().sum();
    let after = [system(), taken(pids)];
    [0, 1].map(|which| (after[which] - before[which]) * 1e6 / f64::from(requests))
}

/// Asks until `end`; how often.
async fn client(lb: SocketAddr, end: Instant) -> u32 {
    let mut stream = TcpStream::connect(lb).await.expect("lb listens");
    stream.set_nodelay(true).expect("an option of TCP");
    let request = chat("chat", false);
    let mut buffer = Vec::new();
    let mut requests = 0;
    while Instant::now() < end {
        stream.write_all(&request).await.expect("lb reads");
        buffer.clear();
        while !buffer.ends_with(BODY.as_bytes()) {
            let read = stream.read_buf(&mut buffer).await.expect("lb answers");
            assert!(read > 0, "lb closed: {}", String::from_utf8_lossy(&buffer));
        }
        requests += 1;
    }
    requests
}

async fn upstream(address: &mpsc::Sender<SocketAddr>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let here = listener.local_addr().expect("it is bound");
    address.send(here).expect("the benchmark waits for it");
    loop {
        let (stream, _) = listener.accept().await.expect("descriptors enough");
        tokio::spawn(answer(stream));
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let length = BODY.len();
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{BODY}"
    );
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        // A request ends with its body, an object, and no head of one ends like that.
        while !buffer.ends_with(b"}") {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        stream.write_all(response.as_bytes()).await?;
    }
}

/// Seconds that all CPUs were busy.
fn system() -> f64 {
    let text = fs::read_to_string("/proc/stat").expect("Linux has it");
    let line = text.lines().next().expect("the sum of all CPUs");
    let ticks = line
        .split_whitespace()
        .skip(1)
        .map(|ticks| ticks.parse().unwrap_or(0.0));
    // user nice system idle iowait irq softirq steal: all but idle, waiting, and what the host took.
    let busy = ticks
        .enumerate()
        .filter(|(which, _)| [0, 1, 2, 5, 6].contains(which));
    busy.map(|(_, ticks): (_, f64)| ticks).sum::<f64>() / 100.0
}

/// Seconds that the threads of these processes ran.
fn taken(pids: [u32; 2]) -> f64 {
    let tasks = pids
        .into_iter()
        .flat_map(|pid| fs::read_dir(format!("/proc/{pid}/task")));
    let ran = tasks.flatten().flatten().filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    ran.sum::<f64>() / 1e9
}

#[expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]
fn report(line: &str) {
    println!("{line}");
}
