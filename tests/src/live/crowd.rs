//! The clients: so many streams at a time, each followed by the next, and what became of each.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::Plan;
use super::endpoint::NAMES;
use crate::client::{End, Exchange, chat};

/// How long a phase may take: a machine may be busy.
const PATIENCE: Duration = Duration::from_mins(1);

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// With all of its tokens and `[DONE]`.
    Whole,
    /// Visibly, before that.
    Cut,
    /// It never began: what the client was told instead, if anything.
    Error(Option<u16>),
}

/// One stream as its client saw it.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    /// When it was asked for.
    pub(super) begun: Instant,
    /// When its first bytes came.
    pub(super) first: Option<Instant>,
    /// Which endpoint spoke in it.
    pub(super) by: Option<usize>,
    /// How it ended, once it has.
    pub(super) ending: Option<Ending>,
}

/// What has become of all streams so far.
#[derive(Debug, Default)]
struct Record {
    streams: Mutex<(Vec<Stream>, bool)>,
    changed: Notify,
}

impl Record {
    fn lock(&self) -> MutexGuard<'_, (Vec<Stream>, bool)> {
        self.streams.lock().expect("no holder panics")
    }
}

/// The clients; dropped, they are gone.
#[derive(Debug)]
pub(super) struct Crowd {
    record: Arc<Record>,
    clients: JoinSet<()>,
}

impl Crowd {
    /// Every other one asks for the other model; they begin one after the other over the length of a stream, so that
    /// there are streams of every age from then on.
    pub(super) fn start(plan: &Plan, lb: SocketAddr) -> Self {
        let record = Arc::<Record>::default();
        let stagger = plan.length() / plan.streams;
        let mut clients = JoinSet::new();
        for n in 0..plan.streams {
            let (plan, record) = (*plan, Arc::clone(&record));
            clients.spawn(async move {
                sleep(stagger * n).await;
                let model = if n % 2 == 0 { "chat" } else { "other" };
                client(lb, model, plan.tokens, record).await;
            });
        }
        Self { record, clients }
    }

    /// Waits until the streams so far are as wanted.
    pub(super) async fn until(&self, what: &str, wanted: impl Fn(&[Stream]) -> bool) {
        let found = async {
            loop {
                let changed = self.record.changed.notified();
                if wanted(&self.record.lock().0) {
                    return;
                }
                changed.await;
            }
        };
        timeout(PATIENCE, found)
            .await
            .unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain for {what}"));
    }

    /// Lets the streams under way end, and begins no others; what became of all of them.
    pub(super) async fn end(self) -> Vec<Stream> {
        self.record.lock().1 = true;
        self.clients.join_all().await;
        std::mem::take(&mut self.record.lock().0)
    }
}

async fn client(lb: SocketAddr, model: &'static str, tokens: u32, record: Arc<Record>) {
    loop {
        let number = {
            let (streams, over) = &mut *record.lock();
            if *over {
                return;
            }
            streams.push(Stream {
                begun: Instant::now(),
                first: None,
                by: None,
                ending: None,
            });
            streams.len() - 1
        };
        let change = |change: &dyn Fn(&mut Stream)| {
            change(&mut record.lock().0[number]);
            record.changed.notify_waiters();
        };
        let ending = listen(lb, model, tokens, change).await;
        change(&|stream| stream.ending = Some(ending.clone()));
    }
}

/// Asks for one stream and listens to its end.
async fn listen(lb: SocketAddr, model: &str, tokens: u32, change: impl Fn(&dyn Fn(&mut Stream))) -> Ending {
    let mut exchange = Exchange::begin(lb, chat(model, true)).await;
    let Some(head) = exchange.try_head().await else {
        return Ending::Error(None);
    };
    if head.status != 200 {
        return Ending::Error(Some(head.status));
    }
    let mut text = Vec::new();
    let end = loop {
        match exchange.piece().await {
            Ok(piece) => {
                if text.is_empty() {
                    let by = NAMES.iter().position(|name| holds(&piece, name));
                    let now = Instant::now();
                    change(&|stream| {
                        stream.first = Some(now);
                        stream.by = by;
                    });
                }
                text.extend_from_slice(&piece);
            }
            Err(end) => break end,
        }
    };
    let text = String::from_utf8_lossy(&text);
    let spoken = NAMES.map(|name| text.matches(name).count());
    assert!(
        spoken.iter().filter(|count| **count > 0).count() <= 1,
        "two endpoints speak in one stream: {text}"
    );
    let whole = spoken.contains(&(tokens as usize)) && text.ends_with("data: [DONE]\n\n");
    assert_eq!(whole, end == End::Clean, "{end:?} after {text}");
    if whole { Ending::Whole } else { Ending::Cut }
}

fn holds(piece: &[u8], name: &str) -> bool {
    piece.windows(name.len()).any(|window| window == name.as_bytes())
}
