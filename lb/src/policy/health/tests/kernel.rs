//! What the kernel saw: out at once and for a short time, back by a connection and a request.

use super::*;

const SPAN: Duration = Duration::from_secs(1);

impl Rig {
    fn on_kernel(&mut self, cause: KernelCause) -> Option<Transition> {
        self.health.eject(self.now, cause, SPAN, true)
    }

    /// Out for loss and its time over.
    fn unproven() -> Self {
        let mut rig = Self::new();
        rig.on_kernel(KernelCause::Loss).expect("it was healthy");
        rig.pass(SPAN);
        rig
    }
}

// [HEALTH-14]
#[test]
fn what_the_kernel_saw_ejects_at_once_for_its_own_span() {
    let mut rig = Rig::new();
    let until = rig.now + SPAN;
    let expected = Transition {
        from: State::Healthy,
        to: State::Ejected,
        cause: Some(Cause::Kernel(KernelCause::Refused)),
        until: Some(until),
    };
    assert_eq!(rig.on_kernel(KernelCause::Refused), Some(expected));
    assert_eq!(rig.standing(), Standing::Ejected { until });
    assert_eq!(rig.health.acquire(rig.now), None);
    let cause = rig.health.snapshot(rig.now).cause;
    assert_eq!(cause, Some(Cause::Kernel(KernelCause::Refused)));
}

// [HEALTH-15]
#[test]
fn after_its_time_a_connection_and_then_a_request_bring_it_back() {
    let mut rig = Rig::unproven();
    assert_eq!(rig.standing(), Standing::Unproven);
    assert_eq!(rig.health.acquire(rig.now), None);
    let half_open = rig.health.connected(rig.now).expect("it waited for this");
    assert_eq!((half_open.from, half_open.to), (State::Ejected, State::HalfOpen));
    assert_eq!(rig.standing(), Standing::HalfOpen);
    let healthy = rig.request(Verdict::Success).expect("the probe succeeded");
    assert_eq!(healthy.to, State::Healthy);
    assert_eq!(rig.health.snapshot(rig.now).cause, None);
}

// [HEALTH-15]
#[test]
fn a_connection_proves_nothing_before_the_time_is_up_or_when_it_is_not_asked_for() {
    let mut rig = Rig::new();
    assert_eq!(rig.health.connected(rig.now), None);
    rig.on_kernel(KernelCause::Loss).expect("it was healthy");
    assert_eq!(rig.health.connected(rig.now), None);
    let mut passive = Rig::new();
    passive.eject();
    passive.pass(EJECTION);
    assert_eq!(passive.health.connected(passive.now), None);
    assert_eq!(passive.standing(), Standing::HalfOpen);
}

// [HEALTH-15]
#[test]
fn it_waits_for_the_connection_as_long_as_that_takes_and_no_longer() {
    let mut rig = Rig::unproven();
    rig.pass(10 * EJECTION);
    assert_eq!(rig.on_kernel(KernelCause::Refused), None, "a connection failed");
    assert_eq!(rig.standing(), Standing::Unproven);
    assert!(rig.health.connected(rig.now).is_some());
    assert_eq!(rig.standing(), Standing::HalfOpen);
}

// [HEALTH-14]
#[test]
fn neither_the_kernels_ejections_lengthen_passive_ones_nor_those_the_kernels() {
    let mut rig = Rig::unproven();
    rig.health.connected(rig.now).expect("its time was up");
    let failed = rig.request(Verdict::Failure).expect("the probe failed");
    assert_eq!(failed.cause, Some(Cause::HalfOpenFailure));
    assert_eq!(failed.until, Some(rig.now + EJECTION), "the first in a row");
    rig.pass(EJECTION);
    let seen = rig.on_kernel(KernelCause::Reset).expect("it was half-open");
    assert_eq!((seen.from, seen.until), (State::HalfOpen, Some(rig.now + SPAN)));
}

// [HEALTH-17]
#[test]
fn an_ejection_for_failures_ends_by_a_connection_where_nobody_is_there() {
    let mut rig = Rig::new();
    rig.eject();
    assert_eq!(rig.on_kernel(KernelCause::Reset), None, "somebody is there");
    let seen = rig.on_kernel(KernelCause::Refused).expect("nobody is there");
    assert_eq!((seen.from, seen.to), (State::Ejected, State::Ejected));
    assert_eq!(seen.until, Some(rig.now + SPAN));
    rig.pass(SPAN);
    assert_eq!(rig.standing(), Standing::Unproven);
    assert_eq!(rig.on_kernel(KernelCause::Refused), None);
    assert!(rig.health.connected(rig.now).is_some());
    assert!(rig.request(Verdict::Success).is_some());
}

// [HEALTH-17]
#[test]
fn it_never_makes_an_ejection_for_failures_longer() {
    let mut rig = Rig::new();
    let until = rig.eject().until.expect("an ejection ends");
    rig.pass(EJECTION.saturating_sub(SPAN / 2));
    let seen = rig.on_kernel(KernelCause::Loss).expect("it is still out");
    assert_eq!(seen.until, Some(until));
}

// [HEALTH-11] [HEALTH-14]
#[test]
fn a_provider_that_can_spare_no_endpoint_keeps_it_whatever_the_kernel_saw() {
    let mut rig = Rig::new();
    let refused = rig.health.eject(rig.now, KernelCause::Refused, SPAN, false);
    assert_eq!((refused, rig.standing()), (None, Standing::Healthy));
    let mut out = Rig::unproven();
    assert!(out.health.connected(out.now).is_some());
    let again = out.health.eject(out.now, KernelCause::Refused, SPAN, false);
    assert!(again.is_some(), "it is out already");
}

// [HEALTH-16]
#[test]
fn a_loss_of_our_own_is_taken_back() {
    let mut rig = Rig::new();
    rig.on_kernel(KernelCause::Loss).expect("it was healthy");
    let back = rig.health.withdraw(rig.now).expect("it was out for loss");
    assert_eq!((back.to, back.cause), (State::Healthy, None));
    assert_eq!(rig.standing(), Standing::Healthy);
    rig.on_kernel(KernelCause::Refused).expect("it is healthy");
    assert_eq!(rig.health.withdraw(rig.now), None, "a refusal is no loss");
}

// [HEALTH-16]
#[test]
fn what_was_half_open_before_a_loss_of_our_own_is_so_again() {
    let mut rig = Rig::new();
    rig.eject();
    rig.pass(EJECTION);
    rig.on_kernel(KernelCause::Loss).expect("it was half-open");
    let back = rig.health.withdraw(rig.now).expect("it was out for loss");
    assert_eq!((back.to, rig.standing()), (State::HalfOpen, Standing::HalfOpen));
}

// [HEALTH-8] [HEALTH-14]
#[test]
fn the_attempts_of_before_say_nothing_about_after() {
    let mut rig = Rig::new();
    let before = rig.acquire();
    rig.on_kernel(KernelCause::Loss).expect("it was healthy");
    rig.pass(SPAN);
    rig.health.connected(rig.now).expect("its time was up");
    assert_eq!(rig.release(before, Verdict::Failure), None);
    assert_eq!(rig.standing(), Standing::HalfOpen);
}
