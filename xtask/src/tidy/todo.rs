//! Nothing is left to be done without an issue that says so.

use super::{Problem, tree::Tree};

/// Cut in two, for this file is checked as well.
const MARKS: [[&str; 2]; 2] = [["TO", "DO"], ["FIX", "ME"]];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let marks = MARKS.map(|halves| halves.concat());
    let mut problems = Vec::new();
    for file in &tree.files {
        for (number, line) in file.lines().filter(|(_, line)| !names_an_issue(line)) {
            if let Some(mark) = marks.iter().find(|mark| words(line).any(|word| word == **mark)) {
                problems.push(Problem::at(
                    &file.path,
                    number,
                    format!("{mark} without the number of an issue (#12)"),
                ));
            }
        }
    }
    problems
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn names_an_issue(line: &str) -> bool {
    line.split('#')
        .skip(1)
        .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_needs_an_issue() {
        let [todo, fixme] = MARKS.map(|halves| halves.concat());
        let text = format!("// {todo}: later\n// {todo}(#7): later\n# {fixme} #x\nlet {todo}S = 1;\n");
        let lines: Vec<_> = check(&Tree::of(&[("a.rs", &text)]))
            .iter()
            .map(|problem| problem.line)
            .collect();
        assert_eq!(lines, [1, 3]);
    }
}
