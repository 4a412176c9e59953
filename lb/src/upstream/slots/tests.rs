use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use proptest::prelude::*;

use super::{Number, Slots};

struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn slots(limit: u32) -> Slots {
    let slots = Slots::default();
    slots.set_limit(limit);
    slots
}

fn has_place(slots: &Slots, number: &Number) -> bool {
    slots.poll(number, &Context::from_waker(Waker::noop())) == Poll::Ready(())
}

// [LIMITER-6]
#[test]
fn a_place_that_comes_free_is_theirs_who_came_first_and_they_are_woken() {
    let slots = slots(1);
    assert!(slots.take());
    let [first, second] = [slots.join(2), slots.join(2)].map(|number| number.expect("there is room to wait"));
    assert_eq!(slots.join(2), None, "the queue is bounded");
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    assert!(slots.poll(&first, &Context::from_waker(&waker)).is_pending());
    slots.release();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert!(!slots.take(), "nobody gets in before those who wait");
    assert!(!has_place(&slots, &second));
    assert!(has_place(&slots, &first));
    slots.release();
    assert!(has_place(&slots, &second));
    slots.release();
    assert_eq!((slots.taken(), slots.waiting()), (0, 0));
}

// [LIMITER-6]
#[test]
fn whoever_leaves_frees_the_place_in_the_queue_and_hands_on_what_was_granted() {
    let slots = slots(1);
    assert!(slots.take());
    let [first, second, third] = [(); 3].map(|()| slots.join(3).expect("there is room to wait"));
    slots.leave(&second);
    assert_eq!(slots.waiting(), 2);
    slots.release();
    slots.leave(&first);
    assert!(has_place(&slots, &third));
    slots.release();
    assert_eq!((slots.taken(), slots.waiting()), (0, 0));
    assert!(slots.take());
}

// [LIMITER-6]
#[test]
fn more_places_let_in_who_waits_and_fewer_throw_nobody_out() {
    let slots = slots(2);
    assert!(slots.take() && slots.take());
    let waiting: Vec<_> = (0..3)
        .map(|_| slots.join(3).expect("there is room to wait"))
        .collect();
    slots.set_limit(4);
    assert_eq!(
        waiting
            .iter()
            .map(|number| has_place(&slots, number))
            .collect::<Vec<_>>(),
        [true, true, false]
    );
    slots.set_limit(1);
    for _ in 0..3 {
        slots.release();
        assert!(!has_place(&slots, &waiting[2]));
    }
    slots.release();
    assert!(has_place(&slots, &waiting[2]));
    slots.release();
    assert_eq!(slots.taken(), 0);
}

#[test]
fn without_a_limit_nobody_waits() {
    let slots = slots(0);
    assert!((0..1000).all(|_| slots.take()));
    assert!(!slots.is_full());
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Come,
    Fetch(usize),
    Leave(usize),
    Limit(u32),
    Release,
}

proptest! {
    // [LIMITER-6]
    #[test]
    fn it_is_a_plain_queue_in_front_of_a_counter(
        events in prop::collection::vec(
            prop_oneof![
                6 => Just(Event::Come),
                3 => any::<usize>().prop_map(Event::Fetch),
                1 => any::<usize>().prop_map(Event::Leave),
                1 => (1..5u32).prop_map(Event::Limit),
                5 => Just(Event::Release),
            ],
            1..120,
        ),
    ) {
        let slots = slots(2);
        let (mut limit, max) = (2u32, 4);
        // Places in use; those who wait, and those who have a place that they have not fetched.
        let (mut using, mut queue, mut granted) = (0u32, VecDeque::<Number>::new(), Vec::<Number>::new());
        for event in events {
            match event {
                Event::Come => {
                    let room = queue.is_empty() && using + u32::try_from(granted.len()).expect("small") < limit;
                    prop_assert_eq!(slots.take(), room);
                    if room {
                        using += 1;
                    } else {
                        let number = slots.join(max);
                        prop_assert_eq!(number.is_some(), queue.len() < max as usize);
                        queue.extend(number);
                    }
                }
                Event::Fetch(which) if !granted.is_empty() => {
                    let number = granted.swap_remove(which % granted.len());
                    prop_assert!(has_place(&slots, &number));
                    using += 1;
                }
                Event::Leave(which) if !queue.is_empty() => {
                    let number = queue.remove(which % queue.len()).expect("within");
                    prop_assert!(!has_place(&slots, &number));
                    slots.leave(&number);
                }
                Event::Leave(_) if !granted.is_empty() => {
                    slots.leave(&granted.pop().expect("not empty"));
                }
                Event::Limit(next) => {
                    limit = next;
                    slots.set_limit(limit);
                }
                Event::Release if using > 0 => {
                    using -= 1;
                    slots.release();
                }
                _ => {}
            }
            while using + u32::try_from(granted.len()).expect("small") < limit && !queue.is_empty() {
                granted.extend(queue.pop_front());
            }
            prop_assert_eq!(slots.taken(), using + u32::try_from(granted.len()).expect("small"));
            prop_assert_eq!(slots.waiting() as usize, queue.len());
        }
        granted.iter().chain(&queue).for_each(|number| slots.leave(number));
        (0..using).for_each(|_| slots.release());
        prop_assert_eq!((slots.taken(), slots.waiting()), (0, 0));
    }
}
