//! The daemon as a process: what it shows, what it leaves behind, and what it does without privilege.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use lb_tests::daemon::{Folder, binary, command_of};
use lb_tests::netns::{Family, Network};
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use crate::harness::Tests;
use crate::stage::Stage;
use crate::{bench, loading};

pub(crate) fn tests(tests: &mut Tests) {
    tests.network(what_the_kernel_counted_is_shown);
    tests.network(a_killed_daemon_leaves_no_program_behind);
    tests.network(without_privilege_the_daemon_runs_and_says_what_it_lacks_unless_it_must_have_it);
}

// [KERNEL-26]
fn what_the_kernel_counted_is_shown(network: &Network) {
    bench::run(network, async || {
        let stage = Stage::set(network, Family::V4, "required", "enabled: true").await;
        stage.warm().await;
        let lb = &stage.lb;
        assert!(lb.log().contains("\"kernel\":\"tc+cgroup\""), "{}", lb.log());
        let state = lb.state().await;
        assert_eq!(state["kernel"]["mode"], "tc+cgroup");
        let counted = &lb.endpoint("gpu", 0).await["kernel"];
        assert_eq!((&counted["syn"], &counted["handshake"]), (&1.into(), &1.into()));
        let bytes = |direction| {
            let series = format!(
                "lb_endpoint_bytes_total{{direction=\"{direction}\",endpoint=\"gpu-0\",provider=\"gpu\"}}"
            );
            async move { lb.metric(&series).await }
        };
        assert!(bytes("sent").await > 100.0 && bytes("received").await > 100.0);
        assert_eq!(lb.sum("lb_kernel_mode", &["mode=\"tc+cgroup\""]).await, 1);
    });
}

// [KERNEL-18]
fn a_killed_daemon_leaves_no_program_behind(network: &Network) {
    let before = loading::held();
    bench::run(network, async || {
        let mut stage = Stage::set(network, Family::V4, "required", "enabled: true").await;
        assert!(loading::held() > before);
        stage.lb.signal(Signal::KILL);
        assert_eq!(stage.lb.exit().await.signal(), Some(9));
        loading::wait_for(before);
        drop(Stage::set(network, Family::V4, "required", "enabled: true").await);
    });
    loading::wait_for(before);
}

/// `lb run` by nobody with this mode; `lb` is a copy of the binary that nobody can get at.
fn unprivileged(lb: &Path, folder: &Folder, provider: &Provider, mode: &str) -> Child {
    let setup = Setup::single(provider).section(&format!("kernel: {{ mode: {mode} }}"));
    let file = folder.write(&format!("{mode}.yaml"), &setup.text());
    let mut child = command_of(lb, ["run", "-c"]);
    child.arg(&file).uid(loading::NOBODY).gid(loading::NOBODY);
    child.spawn().expect("a file that everybody may run")
}

// [KERNEL-17]
fn without_privilege_the_daemon_runs_and_says_what_it_lacks_unless_it_must_have_it(network: &Network) {
    bench::run(network, async || {
        let provider = Provider::start(Script::completion("ok")).await;
        let folder = Folder::new();
        let lb = folder.within_reach(binary());
        let mut auto = unprivileged(&lb, &folder, &provider, "auto");
        let mut lines = BufReader::new(auto.stderr.take().expect("piped")).lines();
        let started = loop {
            let line = lines.next_line().await.expect("readable");
            let line = line.expect("a line that says that lb has started");
            if line.contains("\"started\"") {
                break line;
            }
        };
        assert!(
            started.contains("\"kernel\":\"off: ") && started.contains("CAP_BPF"),
            "{started}"
        );
        let required = unprivileged(&lb, &folder, &provider, "required");
        let output = required.wait_with_output().await.expect("our own child");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(77), "{said}");
        assert!(said.contains("CAP_BPF"), "{said}");
    });
}
