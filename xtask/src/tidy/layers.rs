//! Which module of lb may import which, and which crates it may name.
//!
//! The pure layers know nothing of the shell, and the shell's parts do not know each other: `run()` ties them together.
//! A module that is not in the table is a problem by itself, so that a new one has to be placed.

use super::{
    Problem, rust,
    tree::{File, Tree},
};

struct Layer {
    module: &'static str,
    /// The modules it may import besides itself.
    modules: &'static [&'static str],
    crates: Crates,
}

enum Crates {
    Any,
    /// Besides std; names apart by spaces.
    Only(&'static str),
}

use Crates::{Any, Only};

const fn layer(module: &'static str, modules: &'static [&'static str], crates: Crates) -> Layer {
    Layer {
        module,
        modules,
        crates,
    }
}

/// The modules that tie the others together, and `lib.rs` and `main.rs` themselves.
const TOP: [&str; 4] = ["", "cli", "demo", "run"];

const LAYERS: [Layer; 11] = [
    layer("policy", &[], Only("")),
    layer(
        "wire",
        &[],
        Only("bytes http httparse httpdate itoa memchr serde serde_json"),
    ),
    layer("config", &["policy"], Only(CONFIG)),
    layer("clock", &["policy"], Only("rustix tokio")),
    layer("metrics", &["policy"], Only("prometheus thiserror tracing")),
    layer("upstream", &["config", "metrics", "policy"], Only(UPSTREAM)),
    layer("net", &["policy", "wire"], Any),
    layer("probe", &SHELL, Any),
    layer("proxy", &SHELL, Any),
    layer(
        "admin",
        &["clock", "config", "metrics", "policy", "upstream"],
        Any,
    ),
    layer("kernel", &["clock", "metrics", "policy"], Any),
];

const CONFIG: &str = "annotate_snippets http rustls schemars secrecy serde serde_json serde_saphyr sha2 strsim subtle thiserror x509_parser";
const UPSTREAM: &str = "arc_swap bytes fastrand http secrecy serde thiserror tracing";
const SHELL: [&str; 7] = ["clock", "config", "metrics", "net", "policy", "upstream", "wire"];

/// Crates that only one module may name, however free the others are: what has to be replaceable in one place.
const OWNED: [(&str, &str); 3] = [
    ("aya", "kernel"),
    ("lb_ebpf", "kernel"),
    ("serde_saphyr", "config"),
];

/// The manifest that lists the crates which lb may name at all.
const MANIFEST: &str = "lb/Cargo.toml";
const SOURCE: &str = "lb/src/";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let crates = tree.file(MANIFEST).map(dependencies).unwrap_or_default();
    let files = tree.ending("rs").filter(|file| file.path.starts_with(SOURCE));
    files.flat_map(|file| check_file(file, &crates)).collect()
}

fn check_file(file: &File, crates: &[String]) -> Vec<Problem> {
    let own = module_of(&file.path);
    let module = own.first().copied().unwrap_or_default();
    if TOP.contains(&module) {
        return Vec::new();
    }
    let Some(layer) = LAYERS.iter().find(|layer| layer.module == module) else {
        let message = format!("`{module}` has no layer yet: place it in xtask/src/tidy/layers.rs");
        return vec![Problem::whole(&file.path, message)];
    };
    let code = rust::blank(&file.text);
    let paths = rust::paths(&code);
    let problems = paths.iter().filter_map(|path| {
        let message = match path.parts.first().copied()? {
            "crate" | "super" | "self" => foreign_module(layer, &own, path)?,
            // Tests may use any crate: they are not part of the layer's code.
            _ if file.is_test() || path.inside.contains(&"tests") => return None,
            name => foreign_crate(layer, name, crates)?,
        };
        Some(Problem::at(&file.path, path.line, message))
    });
    problems.collect()
}

/// What is wrong with `path` if it leads to a module that `layer` may not import.
fn foreign_module(layer: &Layer, own: &[&str], path: &rust::Path<'_>) -> Option<String> {
    let mut at = [own, &path.inside].concat();
    for part in &path.parts {
        match *part {
            "crate" => at.clear(),
            "super" => drop(at.pop()),
            "self" => {}
            name => at.push(name),
        }
    }
    match at.first().copied() {
        None => Some(format!(
            "`{}` imports the root of the crate, which imports everything",
            layer.module
        )),
        Some(name) if name == layer.module || layer.modules.contains(&name) => None,
        Some(name) => Some(format!("`{}` may not import `{name}`", layer.module)),
    }
}

fn foreign_crate(layer: &Layer, name: &str, crates: &[String]) -> Option<String> {
    let foreign = match layer.crates {
        Any => OWNED
            .iter()
            .any(|(owned, owner)| *owned == name && *owner != layer.module),
        Only(allowed) => {
            crates.iter().any(|known| known == name) && !allowed.split(' ').any(|one| one == name)
        }
    };
    foreign.then(|| format!("`{}` may not name the crate `{name}`", layer.module))
}

/// `lb/src/policy/aimd/tests.rs` is `policy::aimd::tests`.
fn module_of(path: &str) -> Vec<&str> {
    let inner = path.strip_prefix(SOURCE).unwrap_or(path).trim_end_matches(".rs");
    let mut parts: Vec<_> = inner.split('/').collect();
    if parts.last() == Some(&"mod") || matches!(parts[..], ["lib" | "main"]) {
        parts.pop();
    }
    parts
}

/// The names under which code writes the dependencies of a manifest.
fn dependencies(manifest: &File) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for (_, line) in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim_matches(['[', ']']).ends_with("dependencies");
            continue;
        }
        let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
        if inside && !name.is_empty() && !name.starts_with('#') {
            names.push(name.replace('-', "_"));
        }
    }
    names
}

#[cfg(test)]
mod tests;
