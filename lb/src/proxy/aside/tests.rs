use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tokio::sync::Notify;

use super::Aside;

/// A task that counts how often it is woken.
#[derive(Default)]
struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Task {
    fn woken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn what_stands_aside_is_polled_when_it_was_woken_and_in_another_task() {
    let (polls, notify) = (Cell::new(0), Notify::new());
    let mut told = pin!(notify.notified());
    let mut future = pin!(poll_fn(|cx| {
        polls.set(polls.get() + 1);
        told.as_mut().poll(cx)
    }));
    let mut aside = Aside::default();
    let [first, second] = [Arc::new(Task::default()), Arc::new(Task::default())];
    for (task, polled) in [(&first, 1), (&second, 2)] {
        let waker = Waker::from(Arc::clone(task));
        for _ in 0..3 {
            let now = aside.poll(&mut Context::from_waker(&waker), future.as_mut());
            assert_eq!((now, polls.get()), (Poll::Pending, polled));
        }
    }
    notify.notify_one();
    assert_eq!(
        (first.woken(), second.woken()),
        (0, 1),
        "where it was polled last"
    );
    let waker = Waker::from(Arc::clone(&second));
    let now = aside.poll(&mut Context::from_waker(&waker), future.as_mut());
    assert_eq!((now, polls.get()), (Poll::Ready(()), 3));
}

#[test]
fn what_was_changed_from_outside_is_polled_once_more() {
    let polls = Cell::new(0);
    let mut future = pin!(poll_fn(|_| {
        polls.set(polls.get() + 1);
        Poll::<()>::Pending
    }));
    let mut aside = Aside::default();
    let waker = Waker::from(Arc::new(Task::default()));
    let mut poll = |aside: &mut Aside| {
        let now = aside.poll(&mut Context::from_waker(&waker), future.as_mut());
        assert_eq!(now, Poll::Pending);
        polls.get()
    };
    assert_eq!((poll(&mut aside), poll(&mut aside)), (1, 1));
    aside.ring();
    assert_eq!((poll(&mut aside), poll(&mut aside)), (2, 2));
}
