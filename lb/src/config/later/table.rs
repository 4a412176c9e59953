//! The table: who builds a knob's machinery deletes its row.

/// A key whose machinery comes later.
pub(super) struct Later {
    /// Where it stands; `*` is any name or item.
    pub(super) key: &'static str,
    /// What leaving it out means, written as in the file.
    pub(super) default: &'static str,
    /// What is missing, to stand before "is not in this version".
    pub(super) what: &'static str,
}

const fn later(key: &'static str, default: &'static str, what: &'static str) -> Later {
    Later { key, default, what }
}

pub(super) const LATER: &[Later] = &[
    later("admin.dashboard", "true", "the dashboard"),
    later("kernel.pin_path", "null", "keeping the programs over a restart"),
    later("kernel.allow_xdp_generic", "false", "watching connections by XDP"),
    later(
        "kernel.guard",
        "null",
        "dropping packets before the stack sees them",
    ),
    later(
        "store",
        "{ url: \"sqlite:///var/lib/lb/lb.db\" }",
        "the model API's database",
    ),
    later("log.content", "false", "logging prompts and completions"),
];

/// A key of which only some words work yet.
pub(super) struct Words {
    pub(super) key: &'static str,
    pub(super) built: &'static [&'static str],
    /// What is missing, to stand before "is not in this version".
    pub(super) what: &'static str,
}

pub(super) const WORDS: &[Words] = &[Words {
    key: "kernel.attach",
    built: &["auto", "tc", "cgroup"],
    what: "watching connections by XDP",
}];
