//! An endpoint that is a process of its own, so that it can be killed and stopped as one.
//!
//! The program that wants one runs itself again in this role, so that nothing else has to be built or found.

use std::io::{BufRead as _, BufReader, Write as _, stdin, stdout};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::Plan;
use crate::netns::{Family, Network};
use crate::provider::{Provider, Script};

/// All endpoints, those of a provider next to each other.
pub(super) const NAMES: [&str; 4] = ["gpu-0", "gpu-1", "alt-0", "alt-1"];

/// In the environment of a process that is to play an endpoint: a [`Role`] as JSON.
const ROLE: &str = "LB_TEST_ENDPOINT";

/// How long an endpoint thinks before its first token.
const THINKS: Duration = Duration::from_millis(20);

/// What an endpoint is told when it starts.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Role {
    /// Which it says as every token of it.
    name: String,
    address: SocketAddr,
    tokens: u32,
    gap: Duration,
}

/// How it answers.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Manner {
    /// With a whole stream.
    Well,
    /// With this status, and with this Retry-After if it is not 0.
    Refuses { status: u16, retry_after: u64 },
    /// With a whole stream, of which the first token takes this long.
    Slow(Duration),
    /// With a stream that ends in a reset after its third token.
    Cut,
}

impl Role {
    fn script(&self, manner: Manner) -> Script {
        let pause = |script: Script, span: Duration| {
            script.pause(span.as_millis().try_into().expect("a short while"))
        };
        let begun = |after: Duration, tokens: u32| {
            let head = pause(Script::silent(), after).streams().token(&self.name);
            (1..tokens).fold(head, |script, _| pause(script, self.gap).token(&self.name))
        };
        match manner {
            Manner::Well => begun(THINKS, self.tokens).finish(),
            Manner::Slow(after) => begun(after, self.tokens).finish(),
            Manner::Cut => pause(begun(THINKS, 3), self.gap).reset(),
            Manner::Refuses { status, retry_after } => {
                let seconds = retry_after.to_string();
                let wish = [("retry-after", seconds.as_str())];
                let fields = if retry_after == 0 { &[][..] } else { &wish };
                Script::json(
                    status,
                    fields,
                    &serde_json::json!({"error": {"message": "scripted"}}),
                )
            }
        }
    }
}

/// Plays the endpoint to its end if this process was started as one; false if it was not.
///
/// It says where it listens, takes a manner a line, and answers each with how many requests came before it.
pub fn play() -> bool {
    let Ok(role) = std::env::var(ROLE) else {
        return false;
    };
    let role: Role = serde_json::from_str(&role).expect("written by `Endpoint::start`");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let provider = runtime.block_on(Provider::at(role.address, role.script(Manner::Well)));
    let say = |line: &str| writeln!(stdout(), "{line}").and_then(|()| stdout().flush());
    say(&provider.address().to_string()).expect("somebody listens");
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    for line in stdin().lock().lines().map_while(Result::ok) {
        let manner = serde_json::from_str(&line).expect("written by `Endpoint::tell`");
        provider.otherwise(role.script(manner));
        say(&provider.requests().len().to_string()).expect("somebody listens");
    }
    true
}

/// An endpoint at the server's end of a network; dropped, it is killed.
#[derive(Debug)]
pub(super) struct Endpoint {
    role: Role,
    child: Child,
    say: ChildStdin,
    hear: BufReader<ChildStdout>,
}

impl Endpoint {
    pub(super) fn start(network: &Network, plan: &Plan, name: &str) -> Self {
        Self::spawn(
            network,
            Role {
                name: name.to_owned(),
                address: SocketAddr::new(Family::V4.server(), 0),
                tokens: plan.tokens,
                gap: plan.gap,
            },
        )
    }

    fn spawn(network: &Network, mut role: Role) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a running program has a path"));
        let role_text = serde_json::to_string(&role).expect("plain data");
        command
            .env(ROLE, role_text)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = network
            .at_server(|| command.spawn())
            .expect("this program starts once more");
        let say = child.stdin.take().expect("piped");
        let mut hear = BufReader::new(child.stdout.take().expect("piped"));
        role.address = heard(&mut hear).parse().expect("an address");
        Self {
            role,
            child,
            say,
            hear,
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.role.address
    }

    /// Has it answer in another manner; how many requests it has had so far.
    pub(super) fn tell(&mut self, manner: Manner) -> usize {
        let line = serde_json::to_string(&manner).expect("plain data");
        writeln!(self.say, "{line}").expect("the endpoint lives");
        heard(&mut self.hear).parse().expect("a number")
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().expect("our own child");
        self.child.wait().expect("our own child");
    }

    /// Starts it again where it was.
    pub(super) fn revive(&mut self, network: &Network) {
        *self = Self::spawn(network, self.role.clone());
    }

    /// Stops the process, or has it go on; connections stay, and the kernel goes on taking new ones.
    pub(super) fn signal(&self, signal: Signal) {
        let pid = self.child.id().try_into().ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), signal).expect("our own child");
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // It may be dead already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn heard(from: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("the endpoint speaks");
    line.trim().to_owned()
}
