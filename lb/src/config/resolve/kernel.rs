//! What the kernel is asked to watch.

use super::{
    check,
    context::{Context, HOUR_MS, Whole},
};
use crate::config::{
    Attach, Kernel, KernelMode, Signals, Steps, diagnostic::Diagnostic, path::Path, raw, span::Spanned,
};

pub(super) fn kernel(cx: &mut Context<'_>, raw: Option<&raw::Kernel>) -> Kernel {
    let at = Path::top("kernel");
    let nothing = raw::Kernel::default();
    let raw = raw.unwrap_or(&nothing);
    check::guard(cx, raw);
    Kernel {
        mode: cx.word(&at, "mode", &raw.mode, ("auto", KernelMode::Auto)),
        attach: match cx.word(&at, "attach", &raw.attach, ("auto", raw::Attach::Auto)) {
            // XDP is refused by `later`.
            raw::Attach::Auto | raw::Attach::Xdp => Attach::Auto,
            raw::Attach::Cgroup => Attach::Cgroup,
            raw::Attach::Tc => Attach::Tc,
        },
        interfaces: interfaces(cx, &at, raw),
        max_flows: max_flows(cx, &at, raw),
        signals: signals(cx, &at.key("signals"), raw.signals.as_ref()),
    }
}

fn interfaces(cx: &mut Context<'_>, at: &Path, raw: &raw::Kernel) -> Vec<String> {
    cx.setting(at, "interfaces", &raw.interfaces, Some("[]".to_owned()));
    let written = raw.interfaces.iter().flat_map(|interfaces| &interfaces.value);
    written.map(|Spanned { value, .. }| value.clone()).collect()
}

fn max_flows(cx: &mut Context<'_>, at: &Path, raw: &raw::Kernel) -> u32 {
    const DEFAULT: u32 = 16_384;
    let allowed = |flows: u64| flows.is_power_of_two() && (1024..=1 << 24).contains(&flows);
    cx.require(
        &raw.max_flows,
        "E255",
        "be a power of two from 1024 to 16777216",
        |flows| allowed(*flows),
    );
    cx.setting(at, "max_flows", &raw.max_flows, Some(DEFAULT.to_string()));
    let written = raw.max_flows.as_ref().map(|flows| flows.value);
    written
        .and_then(|flows| u32::try_from(flows).ok())
        .unwrap_or(DEFAULT)
}

fn signals(cx: &mut Context<'_>, at: &Path, raw: Option<&raw::Signals>) -> Signals {
    let nothing = raw::Signals::default();
    let raw = raw.unwrap_or(&nothing);
    let time = |default| Whole::new(default, 1..=HOUR_MS).code("E255");
    let nothing = raw::Rst::default();
    let rst = raw.rst.as_ref().unwrap_or(&nothing);
    Signals {
        syn_timeout: cx.time(at, "syn_timeout_ms", &raw.syn_timeout_ms, time(250)),
        streak: steps(cx, &at.key("streak"), raw.streak.as_ref(), (2, 3)),
        silent: steps(cx, &at.key("silent"), raw.silent.as_ref(), (2, 4)),
        rst_count: cx.count(
            &at.key("rst"),
            "count",
            &rst.count,
            Whole::new(3, 1..=1_000_000).code("E255"),
        ),
        rst_window: cx.time(&at.key("rst"), "window_ms", &rst.window_ms, time(1000)),
        ejection: cx.time(at, "ejection_ms", &raw.ejection_ms, time(1000)),
    }
}

fn steps(cx: &mut Context<'_>, at: &Path, raw: Option<&raw::Steps>, default: (u64, u64)) -> Steps {
    let nothing = raw::Steps::default();
    let raw = raw.unwrap_or(&nothing);
    let whole = |default| Whole::new(default, 1..=1000).code("E255");
    let steps = Steps {
        failover: cx.count(at, "failover", &raw.failover, whole(default.0)),
        end_stream: cx.count(at, "end_stream", &raw.end_stream, whole(default.1)),
    };
    if steps.end_stream < steps.failover {
        let (failover, end) = (raw.failover.as_ref(), raw.end_stream.as_ref());
        let span = end
            .or(failover)
            .map_or(cx.document.root.span, |written| written.span);
        let message = format!(
            "`{at}.end_stream` must be at least `failover` ({}), not {}",
            steps.failover, steps.end_stream
        );
        let help = "a stream is ended on more evidence than it takes to try the next target";
        let diagnostic = Diagnostic::error("E255", span, message).help(help);
        cx.report(match failover.filter(|failover| failover.span != span) {
            Some(failover) => diagnostic.also(failover.span, "the other bound"),
            None => diagnostic,
        });
    }
    steps
}
