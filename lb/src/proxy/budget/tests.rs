use super::*;

fn budget(limit: u64) -> Arc<Budget> {
    Arc::new(Budget::new(limit))
}

// [BODY-1]
#[tokio::test(start_paused = true)]
async fn what_is_held_never_passes_the_limit_and_comes_back() {
    let budget = budget(10);
    let (mut first, mut second) = (Held::new(&budget), Held::new(&budget));
    assert_eq!(first.grow(4).await, Ok(()));
    assert_eq!(first.grow(6).await, Ok(()));
    assert_eq!(second.grow(1).await, Err(NoRoom));
    assert_eq!(budget.held(), 10);
    drop(first);
    assert_eq!(budget.held(), 0);
    assert_eq!(second.grow(10).await, Ok(()));
}

// [BODY-1]
#[tokio::test(start_paused = true)]
async fn a_body_waits_for_room_and_goes_on_when_there_is_some() {
    let budget = budget(10);
    let mut first = Held::new(&budget);
    first.grow(10).await.expect("room");
    let mut second = Held::new(&budget);
    let begun = Instant::now();
    let wait = async {
        let grown = second.grow(3).await;
        (grown, begun.elapsed(), budget.held())
    };
    let free = async {
        tokio::time::sleep(PATIENCE / 2).await;
        drop(first);
    };
    let (waited, ()) = tokio::join!(wait, free);
    assert_eq!(waited, (Ok(()), PATIENCE / 2, 3));
}

// [BODY-1]
#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_leaves_nothing_behind() {
    let budget = budget(1);
    let mut first = Held::new(&budget);
    first.grow(1).await.expect("room");
    let mut second = Held::new(&budget);
    let given_up = tokio::time::timeout(PATIENCE / 2, second.grow(1)).await;
    assert!(given_up.is_err());
    assert_eq!((budget.held(), budget.waiting.load(Ordering::SeqCst)), (1, 0));
    drop((first, second));
    assert_eq!(budget.held(), 0);
}

// [BODY-1]
#[tokio::test]
async fn room_is_found_across_threads() {
    let budget = budget(3);
    let run = |seed: u64| {
        let budget = Arc::clone(&budget);
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime");
            let mut random = fastrand::Rng::with_seed(seed);
            for _ in 0..2000 {
                let mut held = Held::new(&budget);
                runtime
                    .block_on(held.grow(random.u64(1..=3)))
                    .expect("room in time");
                assert!(budget.limit.load(Ordering::Relaxed) == 3);
            }
        }
    };
    let threads: Vec<_> = (0..4).map(|seed| std::thread::spawn(run(seed))).collect();
    for thread in threads {
        thread.join().expect("no thread starves");
    }
    assert_eq!(budget.held(), 0);
}
