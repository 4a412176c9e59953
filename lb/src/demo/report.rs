//! One line a second, and the sum at the end.

use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use super::MODEL;
use super::client::{Ending, Noticed, Sample, chat_body};

/// What a demo came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Requests that ended.
    pub requests: usize,
    /// Those that were answered whole.
    pub answered: usize,
    /// Those that were cut after their first token.
    pub cut: usize,
    /// Those that got no token.
    pub failed: usize,
    /// Those whose first token came from another provider than the preferred one.
    pub alternates: usize,
    /// The lowest share seen.
    pub lowest_share: f64,
    /// The last share seen.
    pub last_share: f64,
    /// Median and 95th percentile of the time to the first token.
    pub first_token: (Duration, Duration),
}

impl Totals {
    /// The alternates' part of the requests that got a token, in percent.
    fn alternates_percent(&self) -> usize {
        (self.alternates * 100)
            .checked_div(self.requests - self.failed)
            .unwrap_or_default()
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            requests,
            answered,
            cut,
            failed,
            lowest_share,
            last_share,
            first_token,
            ..
        } = self;
        let alternates = self.alternates_percent();
        write!(
            f,
            "total requests={requests} answered={answered} cut={cut} failed={failed} alternates={alternates}% \
             lowest share={lowest_share:.2} last share={last_share:.2} ttft p50={} p95={}",
            seconds(first_token.0),
            seconds(first_token.1),
        )
    }
}

/// Collects samples and turns them into lines.
#[derive(Debug)]
pub(super) struct Report {
    second: Vec<Sample>,
    all: Vec<Sample>,
    lowest_share: f64,
    last_share: f64,
}

impl Report {
    pub(super) fn new() -> Self {
        Self {
            second: Vec::new(),
            all: Vec::new(),
            lowest_share: 1.0,
            last_share: 1.0,
        }
    }

    /// Takes in a finished request.
    pub(super) fn add(&mut self, sample: Sample) {
        self.second.push(sample);
    }

    /// The line of the second that ends now, `state` being lb's own.
    pub(super) fn second(&mut self, elapsed: Duration, state: &Value) -> String {
        let pool = &find(&state["models"], MODEL)["pools"];
        let pool = find(pool, "default");
        let share = pool["share"].as_f64().unwrap_or(self.last_share);
        self.last_share = share;
        self.lowest_share = self.lowest_share.min(share);
        let breach = pool["breach_rate"]
            .as_f64()
            .map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}"));

        let now = summary(&self.second, share, share);
        let (p50, p95) = now.first_token;
        let mut line = format!(
            "t={}s share={share:.2} breach={breach} requests={} ttft p50={} p95={} alternates={}% cut={} failed={}",
            elapsed.as_secs(),
            now.requests,
            seconds(p50),
            seconds(p95),
            now.alternates_percent(),
            now.cut,
            now.failed,
        );
        for (provider, state) in standings(state) {
            write!(line, " {provider}={state}").expect("a String takes everything");
        }
        self.all.append(&mut self.second);
        line
    }

    /// The sum over all seconds.
    pub(super) fn totals(&self) -> Totals {
        summary(&self.all, self.lowest_share, self.last_share)
    }
}

/// The lines before the first second.
pub(super) fn opening(lb: SocketAddr) -> String {
    format!(
        "lb demo: dwell 1 s, latency budget 0.5 s (30 s and 10 s by default), three simulated providers\n\
         try it meanwhile: curl -N http://{lb}/v1/chat/completions -H 'content-type: application/json' -d '{}'",
        chat_body(),
    )
}

/// The line that says whether the kernel is watching.
pub(super) fn kernel(state: &Value) -> String {
    let kernel = &state["kernel"];
    let mode = kernel["mode"].as_str().unwrap_or("off");
    kernel["missing"][0].as_str().map_or_else(
        || format!("kernel plane: {mode}"),
        |why| format!("kernel plane: {mode}, {why}"),
    )
}

/// Whether the kernel is watching.
pub(super) fn kernel_watches(state: &Value) -> bool {
    state["kernel"]["mode"].as_str().is_some_and(|mode| mode != "off")
}

/// The line that says how soon a killed provider was left alone, and by what it was noticed.
pub(super) fn gone(provider: &str, noticed: &[Noticed]) -> String {
    let Some((first, later)) = noticed.split_first() else {
        return format!("-- {provider} is not out after its death");
    };
    let mut line = format!(
        "-- {provider} is out {} ms after its death: {}",
        first.after.as_millis(),
        first.cause
    );
    for Noticed { after, cause } in later {
        write!(line, ", {cause} after {} ms", after.as_millis()).expect("a String takes everything");
    }
    line
}

fn summary(samples: &[Sample], lowest_share: f64, last_share: f64) -> Totals {
    let count = |ending| samples.iter().filter(|sample| sample.ending == ending).count();
    let elsewhere = |sample: &&Sample| sample.first_token.is_some() && sample.provider != PREFERRED;
    let mut first_tokens = samples
        .iter()
        .filter_map(|sample| sample.first_token)
        .collect::<Vec<_>>();
    first_tokens.sort_unstable();
    Totals {
        requests: samples.len(),
        answered: count(Ending::Answered),
        cut: count(Ending::Cut),
        failed: count(Ending::Failed),
        alternates: samples.iter().filter(elsewhere).count(),
        lowest_share,
        last_share,
        first_token: (quantile(&first_tokens, 50), quantile(&first_tokens, 95)),
    }
}

/// The nearest-rank quantile of sorted values; zero where there are none.
fn quantile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

fn seconds(time: Duration) -> String {
    format!("{:.2}s", time.as_secs_f64())
}

/// Every provider's name and the state of its endpoint; each has one here.
fn standings(state: &Value) -> impl Iterator<Item = (&str, &str)> {
    let providers = state["providers"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    providers.iter().filter_map(|provider| {
        let standing = provider["endpoints"][0]["state"].as_str()?;
        Some((provider["name"].as_str()?, standing))
    })
}

pub(super) fn find<'a>(list: &'a Value, name: &str) -> &'a Value {
    let found = list
        .as_array()
        .and_then(|list| list.iter().find(|item| item["name"] == name));
    found.unwrap_or(&Value::Null)
}

/// The provider that the demo's model prefers.
const PREFERRED: &str = "gpu";

#[cfg(test)]
mod tests;
