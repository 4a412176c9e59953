//! docs/COMPARISON.md and its picture are what `cargo xtask compare` makes; with `UPDATE=1` they are written.

use std::path::{Path, PathBuf};

use lb_tests::sim::compare::{Cell, Trouble, Way, block, cell, svg};

use super::seeds::for_all;

const BEGIN: &str = "<!-- cargo xtask compare: from here -->\n";
const END: &str = "<!-- cargo xtask compare: to here -->\n";

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(docs(name)).unwrap_or_else(|error| panic!("docs/{name}: {error}"))
}

fn cells() -> Vec<Cell> {
    let all: Vec<(Trouble, Way)> = Trouble::ALL
        .into_iter()
        .flat_map(|trouble| Way::ALL.map(|way| (trouble, way)))
        .collect();
    let places: Vec<u64> = (0..all.len() as u64).collect();
    for_all(&places, |place| {
        let (trouble, way) = all[usize::try_from(place).expect("few")];
        cell(way, trouble)
    })
    .into_iter()
    .map(|(_, cell)| cell)
    .collect()
}

#[test]
fn the_committed_comparison_is_what_the_command_makes() {
    let cells = cells();
    let page = read("COMPARISON.md");
    let (before, rest) = page
        .split_once(BEGIN)
        .expect("the page says where the table begins");
    let (_, after) = rest.split_once(END).expect("the page says where the table ends");
    let made = format!("{before}{BEGIN}\n{}\n{END}{after}", block(&cells));
    let picture = svg(&cells);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(docs("COMPARISON.md"), &made).expect("docs can be written to");
        std::fs::write(docs("comparison.svg"), &picture).expect("docs can be written to");
        return;
    }
    assert!(
        page == made,
        "docs/COMPARISON.md is stale: `cargo xtask compare` writes\n{}",
        block(&cells)
    );
    assert!(
        read("comparison.svg") == picture,
        "docs/comparison.svg is stale: run `cargo xtask compare`"
    );
}
