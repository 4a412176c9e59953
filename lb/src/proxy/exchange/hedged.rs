//! Two attempts of one request side by side, of which one answers.
//!
//! The first runs alone until its hedge is due. From then on whichever comes to something that no other try could mend
//! is the answer, and the other is cut in the same poll; what another try could mend is left to the one that still
//! runs. So there is never more than one commit, and never an attempt that nobody waits for.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use super::{Errand, Tried, settle, try_once};
use crate::policy::outcome::Ended;
use crate::policy::time::Instant;
use crate::proxy::account::Account;
use crate::proxy::timer::until;
use crate::proxy::worker::{Live, Worker};
use crate::upstream::{Attempt, Hedging, Run, Settled};

/// What is the same for both: by whom, under which settings, what is sent, and when it has to be over.
type Request<'a> = (&'a Worker, &'a Live, Errand<'a>, Option<Instant>);

/// Which of the two has ended.
enum Ran {
    First,
    Second,
}

/// Makes an attempt, and a second one beside it if it has not answered when `hedging` says; gives the one that decides.
pub(super) async fn hedged(
    request: Request<'_>,
    (run, account): (&mut Run, &mut Account),
    (mut attempt, fresh): (Attempt, bool),
    hedging: Hedging,
) -> (Settled, Tried) {
    let worker = request.0;
    let mut first = Box::pin(tried(request, &mut attempt, fresh));
    let due = worker.shared.clock.tokio(hedging.at);
    if let Some(tried) = until(Some(due), first.as_mut()).await {
        drop(first);
        return settle(worker, run, account, attempt, tried);
    }
    let Some(mut hedge) = run.hedge(worker.now(), hedging, Worker::draw()) else {
        let tried = first.await;
        return settle(worker, run, account, attempt, tried);
    };
    // Two would be mixed, so that only the first one's interim responses are the client's.
    let silent = |hop| {
        let errand = Errand {
            interims: None,
            hop,
            ..request.2
        };
        (request.0, request.1, errand, request.3)
    };
    let mut second = Box::pin(tried(silent(account.trying(&hedge)), &mut hedge, false));
    loop {
        let (ran, ended) = either(first.as_mut(), second.as_mut()).await;
        match ran {
            Ran::First => {
                drop(first);
                match settle(worker, run, account, attempt, ended) {
                    (Settled::Again(same), _) => {
                        attempt = same;
                        let hop = account.trying(&attempt);
                        let errand = Errand { hop, ..request.2 };
                        let request = (request.0, request.1, errand, request.3);
                        first = Box::pin(tried(request, &mut attempt, true));
                    }
                    (Settled::Yielded, _) => {
                        let ended = second.await;
                        return settle(worker, run, account, hedge, ended);
                    }
                    answer => {
                        drop(second);
                        outrun(worker, run, account, hedge);
                        return answer;
                    }
                }
            }
            Ran::Second => {
                drop(second);
                match settle(worker, run, account, hedge, ended) {
                    (Settled::Again(same), _) => {
                        hedge = same;
                        let hop = account.trying(&hedge);
                        second = Box::pin(tried(silent(hop), &mut hedge, true));
                    }
                    (Settled::Yielded, _) => {
                        let ended = first.await;
                        return settle(worker, run, account, attempt, ended);
                    }
                    answer => {
                        drop(first);
                        outrun(worker, run, account, attempt);
                        return answer;
                    }
                }
            }
        }
    }
}

async fn tried((worker, live, errand, total): Request<'_>, attempt: &mut Attempt, fresh: bool) -> Tried {
    try_once(worker, live, attempt, errand, fresh, total).await
}

/// The one of two that ends first; of two that have ended the first.
async fn either(
    mut first: Pin<&mut impl Future<Output = Tried>>,
    mut second: Pin<&mut impl Future<Output = Tried>>,
) -> (Ran, Tried) {
    poll_fn(|cx| {
        if let Poll::Ready(tried) = first.as_mut().poll(cx) {
            return Poll::Ready((Ran::First, tried));
        }
        second.as_mut().poll(cx).map(|tried| (Ran::Second, tried))
    })
    .await
}

/// The attempt was cut, because the one beside it is the answer.
fn outrun(worker: &Worker, run: &mut Run, account: &mut Account, attempt: Attempt) {
    settle(
        worker,
        run,
        account,
        attempt,
        Tried::without_response(Ended::Outrun),
    );
}
