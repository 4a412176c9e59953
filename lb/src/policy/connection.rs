//! Words for what an upstream connection is doing and what is to be done with it: those who watch it in the kernel and
//! those who use it know nothing of each other, but talk about the same.

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// TCP or TLS is being set up.
    Connecting,
    /// In the pool, with nothing under way.
    Idle,
    /// An attempt has no byte of its response yet.
    Waiting,
    /// An attempt's response is under way.
    Streaming,
}

/// What to do with a connection that is not trusted any more, the mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// Never use it again; what is under way goes on.
    Poison,
    /// It is idle: close it.
    Close,
    /// End the attempt, which has no byte yet, and close; to every machine the ending is a connection failure.
    FailOver,
    /// End the response as truncated, now, and close.
    End,
}
