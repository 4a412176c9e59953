//! `lb demo`: the whole story of the share controller on one machine, in a minute, without a GPU.
//!
//! Three simulated providers, a load generator and the real daemon in one process, everything on loopback. The
//! providers are simulated where it matters: their first-token time grows with their load, so that the controller has
//! something to control. One plain line a second says what happened, made for people and for `grep` alike: no escape
//! codes, `key=value` fields that never move.
//!
//! The demo is a client of lb as any other: it reads the share from the admin address and everything else from the
//! responses. It therefore knows nothing of lb's inside, and is handed the started daemon as two addresses.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

mod client;
mod load;
mod provider;
mod report;
mod story;

use load::Load;
use provider::{Plant, Provider};
use report::Report;
pub use report::Totals;
use story::{Event, Story};

/// What the command line chose.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long the story takes (`--for`); all its parts are scaled to it.
    pub length: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            length: Duration::from_secs(75),
        }
    }
}

/// Where the daemon that `start_lb` started can be reached.
#[derive(Debug, Clone, Copy)]
pub struct Started {
    /// Its listener for clients.
    pub data: SocketAddr,
    /// Its admin listener.
    pub admin: SocketAddr,
}

/// Why a demo could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The daemon did not start.
    #[error("lb did not start: {0}")]
    Daemon(#[source] io::Error),
    /// The report could not be written, say because the reader of a pipe has left.
    #[error("the report cannot be written: {0}")]
    Output(#[source] io::Error),
    /// A simulated provider got no port.
    #[error("a simulated provider cannot listen: {0}")]
    Provider(#[source] io::Error),
}

/// Plays the story once and returns what it came to.
///
/// `start_lb` is given the text of a configuration and answers once the daemon is ready. The daemon's end is the
/// caller's, too.
pub async fn run(
    options: &Options,
    out: &mut impl Write,
    start_lb: impl AsyncFnOnce(String) -> io::Result<Started>,
) -> Result<Totals, Error> {
    let mut stage = Stage::set().await.map_err(Error::Provider)?;
    let lb = start_lb(stage.configuration()).await.map_err(Error::Daemon)?;
    let (samples, mut received) = mpsc::unbounded_channel();
    let load = Load::start(lb.data, samples);
    let mut story = Story::new(options.length);
    let mut report = Report::new();
    let begun = Instant::now();
    write(out, &report::opening(lb.data))?;
    let state = client::state(lb.admin).await.unwrap_or_default();
    write(out, &report::kernel(&state))?;

    let mut seconds = interval_at(begun, Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is the beginning: it sets the first scene and has nothing to report.
    seconds.tick().await;
    loop {
        for event in story.due(begun.elapsed()) {
            write(out, &event.to_string())?;
            stage.apply(event, &load).await.map_err(Error::Provider)?;
            if let Some(killed) = event.killed() {
                let noticed = client::noticed(lb.admin, killed).await;
                write(out, &report::gone(killed, &noticed))?;
            }
        }
        if begun.elapsed() >= options.length {
            break;
        }
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => break,
            _ = seconds.tick() => {}
        }
        while let Ok(sample) = received.try_recv() {
            report.add(sample);
        }
        let state = client::state(lb.admin).await.unwrap_or_default();
        write(out, &report.second(begun.elapsed(), &state))?;
    }
    let totals = report.totals();
    write(out, &totals.to_string())?;
    Ok(totals)
}

/// The providers of the story.
struct Stage {
    gpu: Provider,
    vendor_a: Provider,
    vendor_b: Provider,
}

impl Stage {
    async fn set() -> io::Result<Self> {
        // The preferred provider is the fastest and the smallest: with 160 ms of tokens behind each first one, a batch
        // of 5 keeps the budget up to some 24 requests a second. The hosted ones behind it are slower and endless.
        let plant = |milliseconds, batch| Plant::new(Duration::from_millis(milliseconds), batch);
        Ok(Self {
            gpu: Provider::start("gpu", plant(120, GPU_BATCH)).await?,
            vendor_a: Provider::start("vendor-a", plant(250, 1000)).await?,
            vendor_b: Provider::start("vendor-b", plant(350, 1000)).await?,
        })
    }

    async fn apply(&mut self, event: Event, load: &Load) -> io::Result<()> {
        match event {
            Event::Load(rate) => load.set(rate),
            Event::MoreCapacity => self.gpu.resize(GPU_BATCH * 3),
            Event::KillPreferred => self.gpu.kill().await,
            Event::KillAlternate => self.vendor_a.kill().await,
            Event::Revive => {
                self.gpu.revive().await?;
                self.vendor_a.revive().await?;
            }
        }
        Ok(())
    }

    /// The configuration that lb is started with: the documented defaults but for the clock's pace.
    fn configuration(&self) -> String {
        let health = "health: { ejection_ms: 2000, max_ejection_ms: 4000 }";
        let provider = |provider: &Provider| {
            format!(
                "  {}: {{ endpoints: [{{ url: \"{}\" }}], {health} }}\n",
                provider.name(),
                provider.url()
            )
        };
        let providers = [&self.gpu, &self.vendor_a, &self.vendor_b].map(provider).concat();
        format!(
            r#"version: 1
listeners: [{{ name: data, address: "127.0.0.1:0" }}]
admin: {{ address: "127.0.0.1:0" }}
server: {{ reveal: endpoint }}
log: {{ level: error, access: false }}
providers:
{providers}models:
  {MODEL}:
    targets: [{{ provider: gpu }}, {{ provider: vendor-a }}, {{ provider: vendor-b }}]
    fallback:
      first_token_timeout_ms: 1000
      aimd: {{ latency_budget_ms: 500, dwell_ms: 1000 }}
"#
        )
    }
}

fn write(out: &mut impl Write, line: &str) -> Result<(), Error> {
    // Flushed line by line: whoever reads a pipe wants to see each second as it passes.
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(Error::Output)
}

/// What clients put in `model`.
const MODEL: &str = "chat";
/// The preferred provider's batch at first.
const GPU_BATCH: u32 = 5;
