//! The real daemon as a child process.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::PATIENCE;
use crate::client::{Answer, Exchange, ask, chat, get};
use crate::setup::Setup;

/// `lb run` with a configuration of its own; dropped, the process is killed.
#[derive(Debug)]
pub struct Lb {
    child: Child,
    log: Log,
    data: SocketAddr,
    admin: SocketAddr,
    /// Kept for as long as the daemon may read its file again.
    folder: Arc<Folder>,
}

impl Lb {
    /// Starts the daemon and waits until it is ready.
    pub async fn start(setup: &Setup) -> Self {
        Self::with(&setup.text()).await
    }

    /// Starts the daemon with the text of a configuration, whose log is JSON, and waits until it is ready.
    pub async fn with(text: &str) -> Self {
        let folder = Arc::new(Folder::new());
        folder.write("lb.yaml", text);
        Self::spawn(folder, &mut command(["run"])).await
    }

    /// Starts another daemon from the same file, which takes over from this one; `text` is what the file says by then.
    pub async fn successor(&self, text: &str) -> Self {
        self.write(text);
        Self::spawn(Arc::clone(&self.folder), &mut command(["run", "--takeover"])).await
    }

    /// Starts the daemon by this command, from the file `lb.yaml` in `folder`, and waits until it is ready.
    pub async fn spawn(folder: Arc<Folder>, run: &mut Command) -> Self {
        run.arg("-c").arg(folder.path().join("lb.yaml"));
        run.env("RUNTIME_DIRECTORY", folder.path());
        let mut child = run.spawn().expect("the binary starts");
        let log = Log::default();
        log.follow(child.stderr.take().expect("piped"));
        log.follow(child.stdout.take().expect("piped"));
        let (data, admin) = (
            log.address("listening", "address").await,
            log.address("started", "admin").await,
        );
        let lb = Self {
            child,
            log,
            data,
            admin,
            folder,
        };
        lb.eventually("readiness", async |lb| {
            ask(lb.admin, get("/readyz")).await.status() == 200
        })
        .await;
        lb
    }

    /// The folder that its file is in, and its socket file.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Writes its file anew, in place.
    pub fn write(&self, text: &str) {
        self.folder.write("lb.yaml", text);
    }

    /// Has it read its file again, and returns the answer.
    pub async fn reload(&self) -> Answer {
        let reload = "POST /api/v1/reload HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
        ask(self.admin, reload).await
    }

    /// How many log lines hold all of these.
    pub fn count(&self, parts: &[&str]) -> usize {
        let log = self.log.text();
        log.lines()
            .filter(|line| parts.iter().all(|part| line.contains(part)))
            .count()
    }

    /// Waits until the listener of this name has come up for the `n`th time, and returns where.
    pub async fn listening(&self, name: &str, n: usize) -> SocketAddr {
        let (message, name) = ("\"listening\"", format!("\"{name}\""));
        self.eventually("a listener", async |lb| lb.count(&[message, &name]) >= n)
            .await;
        let log = self.log.text();
        let mut lines = log
            .lines()
            .filter(|line| line.contains(message) && line.contains(&name));
        let line: Value =
            serde_json::from_str(lines.nth(n - 1).expect("just counted")).expect("a JSON log line");
        let address = line["address"].as_str().and_then(|address| address.parse().ok());
        address.expect("a bound address")
    }

    /// Where clients connect.
    pub fn data(&self) -> SocketAddr {
        self.data
    }

    /// Where operators connect.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("not yet waited for")
    }

    /// Its resident memory, in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("a running process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.expect("Linux says how much memory a process has")
    }

    /// Asks the model `chat` and reads the whole answer.
    pub async fn chat(&self, stream: bool) -> Answer {
        ask(self.data, chat("chat", stream)).await
    }

    /// Begins a streaming request to the model `chat`.
    pub async fn begin(&self) -> Exchange {
        Exchange::begin(self.data, chat("chat", true)).await
    }

    /// Sends this request and reads the whole answer.
    pub async fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        ask(self.data, request).await
    }

    /// What `/api/v1/state` says.
    pub async fn state(&self) -> Value {
        ask(self.admin, get("/api/v1/state")).await.json()
    }

    /// The default pool of the model `chat` in [`Lb::state`].
    pub async fn pool(&self) -> Value {
        let state = self.state().await;
        named(&named(&state["models"], "chat")["pools"], "default").clone()
    }

    /// The `n`th endpoint of a provider in [`Lb::state`].
    pub async fn endpoint(&self, provider: &str, n: usize) -> Value {
        named(&self.state().await["providers"], provider)["endpoints"][n].clone()
    }

    /// The value of a series on `/metrics`, by its name with labels as exposed; 0 where it is absent.
    pub async fn metric(&self, series: &str) -> f64 {
        let page = ask(self.admin, get("/metrics")).await.text();
        let value = page
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or_default()
    }

    /// The sum over all counts of this name that carry all of these labels (`outcome="unknown"`).
    pub async fn sum(&self, name: &str, labels: &[&str]) -> u64 {
        let page = ask(self.admin, get("/metrics")).await.text();
        let ours = |line: &&str| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        };
        page.lines()
            .filter(ours)
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
    }

    /// Waits until nothing is in flight any more: every gauge, slot and permit is back.
    pub async fn idle(&self) {
        let idle = async |lb: &Self| {
            let state = lb.state().await;
            let endpoints = state["providers"]
                .as_array()
                .expect("a list")
                .iter()
                .flat_map(|provider| {
                    let own = provider["endpoints"].as_array().expect("a list");
                    own.iter().chain([provider])
                });
            endpoints.into_iter().all(|holder| holder["in_flight"] == 0)
                && lb.pool().await["in_flight"].as_u64().unwrap_or_default() == 0
                && lb.sum("lb_inflight_requests", &[]).await == 0
        };
        self.eventually("all in-flight gauges to be back at zero", idle)
            .await;
    }

    /// Polls until `is` holds.
    pub async fn eventually(&self, what: &str, is: impl AsyncFn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is(self).await {
            let log = self.log.text();
            assert!(
                Instant::now() < deadline,
                "waited {PATIENCE:?} in vain for {what}; log:\n{log}"
            );
            sleep(POLL).await;
        }
    }

    /// Everything it has logged so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits for a log line that holds all of these, and returns it.
    pub async fn logged(&self, parts: &[&str]) -> String {
        self.log.line(parts).await
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = self
            .pid()
            .try_into()
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.expect("a process id"), signal).expect("our own child");
    }

    /// Waits for its end.
    pub async fn exit(&mut self) -> ExitStatus {
        let exit = timeout(PATIENCE, self.child.wait()).await;
        exit.expect("lb ends in time").expect("our own child")
    }
}

/// The binary with these arguments, its output captured; killed when its child is dropped.
pub fn command<const N: usize>(arguments: [&str; N]) -> Command {
    command_of(binary(), arguments)
}

/// As [`command`], but of a copy of the binary.
pub fn command_of<const N: usize>(binary: &Path, arguments: [&str; N]) -> Command {
    let mut command = Command::new(binary);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
        .env_remove("LB_CONFIG")
        .env_remove("JOURNAL_STREAM")
        .kill_on_drop(true);
    command
}

/// A folder of the test's own, gone when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes it.
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "lb-test-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the temporary folder is writable");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("our own folder is writable");
        path
    }

    /// A copy of a program, and its path: other users can get at this folder, and perhaps not at the build's.
    pub fn within_reach(&self, program: &Path) -> PathBuf {
        let copy = self.0.join(program.file_name().expect("a program is a file"));
        fs::copy(program, &copy).expect("our own folder is writable");
        copy
    }
}

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// What the process has written so far, and how many of its pipes are still open.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<(String, usize)>>);

impl Log {
    fn follow(&self, pipe: impl AsyncRead + Send + Unpin + 'static) {
        let log = self.clone();
        log.lock().1 += 1;
        tokio::spawn(async move {
            let mut lines = BufReader::new(pipe).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let text = &mut log.lock().0;
                text.push_str(&line);
                text.push('\n');
            }
            log.lock().1 -= 1;
        });
    }

    fn lock(&self) -> MutexGuard<'_, (String, usize)> {
        self.0.lock().expect("no holder panics")
    }

    fn text(&self) -> String {
        self.lock().0.clone()
    }

    async fn line(&self, parts: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (text, open) = self.lock().clone();
            if let Some(line) = text
                .lines()
                .find(|line| parts.iter().all(|part| line.contains(part)))
            {
                return line.to_owned();
            }
            assert!(open > 0, "ended without a log line with {parts:?}; log:\n{text}");
            assert!(
                Instant::now() < deadline,
                "no log line with {parts:?} within {PATIENCE:?}; log:\n{text}"
            );
            sleep(POLL).await;
        }
    }

    /// The address in this field of the line that says this.
    async fn address(&self, message: &str, field: &str) -> SocketAddr {
        let line = self
            .line(&[&format!("\"{message}\""), &format!("\"{field}\"")])
            .await;
        let line: Value = serde_json::from_str(&line).expect("a JSON log line");
        let address = line[field].as_str().or_else(|| line["fields"][field].as_str());
        address
            .and_then(|address| address.parse().ok())
            .expect("a bound address")
    }
}

/// The item of a list that has this name, or `null`.
fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let found = list
        .as_array()
        .and_then(|list| list.iter().find(|item| item["name"] == name));
    found.unwrap_or(&Value::Null)
}

/// Says that a test is skipped, and why; a failure where clients are required.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
pub fn skip(why: &str) {
    assert!(
        std::env::var_os("LB_REQUIRE_CLIENTS").is_none_or(|value| value != "1"),
        "required, but {why}"
    );
    eprintln!("skipped: {why}");
}

/// The binary under test: `LB_BIN`, else the one of this profile, built now.
///
/// Cargo builds no binary of another package for a test, and an old one would test the past. The whole workspace is
/// built since a single package would be built with other features of its dependencies, all over again.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(binary) = std::env::var_os("LB_BIN") {
            return binary.into();
        }
        let test = std::env::current_exe().expect("a running test has a path");
        let folder = test
            .ancestors()
            .nth(2)
            .expect("tests are built in target/<profile>/deps");
        let mut build = std::process::Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--workspace", "--bins"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        let built = build
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .expect("cargo runs");
        assert!(built.success(), "lb does not build");
        folder.join("lb")
    })
}

/// How often what cannot be waited for is looked at.
const POLL: Duration = Duration::from_millis(5);
