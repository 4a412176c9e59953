//! Relative links between the project's pages lead somewhere: to a file, and to a heading of it.

use super::{
    Problem,
    tree::{File, Tree},
};

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree.ending("md") {
        for (number, line) in prose(file) {
            let broken = targets(&line).filter(|target| !resolves(tree, file, target));
            problems.extend(
                broken.map(|target| Problem::at(&file.path, number, format!("`{target}` leads nowhere"))),
            );
        }
    }
    problems
}

/// The lines outside code blocks, without the code inside them.
fn prose(file: &File) -> impl Iterator<Item = (usize, String)> {
    let mut in_code = false;
    file.lines().filter_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            return None;
        }
        (!in_code).then(|| (number, line.split('`').step_by(2).collect()))
    })
}

/// What the inline links of `line` point to, inside the project.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let links = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let outside = |target: &str| target.contains("://") || target.starts_with("mailto:");
    links
        .map(|(target, _)| target.trim())
        .filter(move |target| !outside(target))
}

fn resolves(tree: &Tree, from: &File, target: &str) -> bool {
    let (path, heading) = target
        .split_once('#')
        .map_or((target, None), |(path, heading)| (path, Some(heading)));
    let Some(path) = (if path.is_empty() {
        Some(from.path.clone())
    } else {
        join(&from.path, path)
    }) else {
        return false;
    };
    // Only pages have headings; a line of a source file (#L12) is not followed.
    let page = tree.ending("md").find(|page| page.path == path);
    match (heading, page) {
        (Some(heading), Some(page)) => headings(page).any(|slug| slug == heading),
        _ => tree.has(&path),
    }
}

/// `target` as seen from the file `from`; none if it leaves the tree.
fn join(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<_> = if target.starts_with('/') {
        Vec::new()
    } else {
        from.split('/').collect()
    };
    parts.pop();
    for part in target.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

/// The anchors that a page's headings get on the usual hosts.
fn headings(page: &File) -> impl Iterator<Item = String> {
    let lines = page.lines().filter(|(_, line)| line.starts_with('#'));
    lines.map(|(_, line)| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_a_file_a_folder_or_a_heading() {
        let page = "[a](../README.md) [b](adr/) [c](#the-share-rule-3) [d](../README.md#quick-start) [e](https://x.y/z)\n\
                    [f](GONE.md) and [g](../README.md#gone) and [h](../../outside)\n\
                    `[i](code)`\n```\n[j](code)\n```\n# The share: rule 3\n";
        let tree = Tree::of(&[
            ("docs/A.md", page),
            ("README.md", "## Quick start\n"),
            ("docs/adr/1.md", ""),
        ]);
        let problems: Vec<_> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "docs/A.md:2: `GONE.md` leads nowhere",
                "docs/A.md:2: `../README.md#gone` leads nowhere",
                "docs/A.md:2: `../../outside` leads nowhere"
            ]
        );
    }
}
