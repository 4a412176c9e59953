//! The comparison as a part of a page.

use std::fmt::Write as _;

use super::{Cell, Trouble, Way};

/// The table, and below it what each way is set to. `cells` has all ways of a kind of trouble before those of the next.
pub fn block(cells: &[Cell]) -> String {
    let mut text = String::from(
        "| trouble | way | first token p50 | p95 | p99 | alternate's part | failovers per 100 | oscillation | unanswered per 1000 |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let rows = Trouble::ALL
        .into_iter()
        .flat_map(|trouble| Way::ALL.map(|way| (trouble, way)));
    for ((trouble, way), cell) in rows.zip(cells) {
        let [median, p95, p99] = cell.first_token;
        let first = if way == Way::ALL[0] { trouble.name() } else { "" };
        let line = format_args!(
            "| {first} | {} | {median:.1} s | {p95:.1} s | {p99:.1} s | {:.0} % | {:.1} | {:.1} | {:.1} |\n",
            way.name(),
            100.0 * cell.alternates,
            cell.failovers,
            cell.oscillation,
            cell.unanswered,
        );
        text.write_fmt(line).expect("writing to a string cannot fail");
    }
    text.push_str("\nWhat is set apart from the defaults, at the preferred provider and at the model:\n\n");
    for way in Way::ALL {
        let (provider, model) = way.settings();
        let line = match provider {
            "" => format!("- {}: nothing\n", way.name()),
            _ => format!("- {}: `{}` and `{}`\n", way.name(), shown(provider), shown(model)),
        };
        text.push_str(&line);
    }
    text
}

fn shown(settings: &str) -> &str {
    settings.trim_end_matches(',')
}
