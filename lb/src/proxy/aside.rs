//! What a task waits for beside its work.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Polls a future only once it was woken. The task that it is part of is polled for each read and write of its
/// connection, while what stands aside wakes it once in its life: to ask after that every time costs locks.
#[derive(Debug, Default)]
pub(super) struct Aside {
    bell: Option<(Arc<Bell>, Waker)>,
}

/// The waker of what stands aside.
#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    task: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

impl Aside {
    /// Has the next poll reach the future although nothing woke it: for one that was changed from outside.
    pub(super) fn ring(&self) {
        if let Some((bell, _)) = &self.bell {
            bell.rung.store(true, Ordering::Release);
        }
    }

    /// Polls `future` if it was woken since it was polled last, or if another task polls now than before.
    pub(super) fn poll<F: Future>(&mut self, cx: &mut Context<'_>, future: Pin<&mut F>) -> Poll<F::Output> {
        self.bell.take_if(|(bell, _)| !bell.task.will_wake(cx.waker()));
        let (bell, waker) = &*self.bell.get_or_insert_with(|| {
            let bell = Arc::new(Bell {
                rung: AtomicBool::new(true),
                task: cx.waker().clone(),
            });
            let waker = Waker::from(Arc::clone(&bell));
            (bell, waker)
        });
        // Looked at first, since it is hardly ever true and a look costs less than a change. What rings behind the change
        // has woken the task again.
        if !bell.rung.load(Ordering::Relaxed) || !bell.rung.swap(false, Ordering::Acquire) {
            return Poll::Pending;
        }
        future.poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
mod tests;
