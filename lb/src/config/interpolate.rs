//! `${VAR}`, `${VAR:-default}` and `${VAR:?message}` in plain values.
//!
//! A value in quotes is taken as it stands, as in a shell's single quotes; where double quotes hold what looks like a
//! reference, a warning says so. Values that came from the environment are marked and never shown.

use super::{
    Span,
    diagnostic::Diagnostic,
    node::{Form, Node, Scalar},
};

/// Where variables come from; a name that is not set gives nothing.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Replaces every reference in `root`, which was read from `text`, and reports all that cannot be.
pub(super) fn expand(root: &mut Node, text: &str, environment: Environment<'_>) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    walk(root, &mut |span, scalar| {
        if scalar.plain {
            match expand_scalar(&scalar.text, span, environment) {
                Ok(None) => {}
                Ok(Some(value)) => {
                    scalar.text = value;
                    scalar.from_environment = true;
                }
                Err(problem) => problems.push(*problem),
            }
        } else if text[span.range()].starts_with('"') && looks_like_a_reference(&scalar.text) {
            problems.push(
                Diagnostic::warning("W004", span, "a value in quotes is taken as it stands: nothing is inserted")
                    .help("remove the quotes to insert the variable, or use single quotes to say that this is meant"),
            );
        }
    });
    problems
}

fn walk(node: &mut Node, visit: &mut impl FnMut(Span, &mut Scalar)) {
    match &mut node.form {
        Form::Scalar(scalar) => visit(node.span, scalar),
        Form::List(items) => items.iter_mut().for_each(|item| walk(item, visit)),
        Form::Map(entries) => entries.iter_mut().for_each(|(_, value)| walk(value, visit)),
    }
}

/// The value with every reference replaced, or nothing where there is none.
fn expand_scalar(
    text: &str,
    span: Span,
    environment: Environment<'_>,
) -> Result<Option<String>, Box<Diagnostic>> {
    let mut out = String::new();
    let mut rest = text;
    let mut found = false;
    while let Some(open) = rest.find("${") {
        found = true;
        let at = span.start + (text.len() - rest.len()) + open;
        let body = &rest[open + 2..];
        let Some(close) = body.find('}') else {
            let whole = Span {
                start: at,
                end: span.end,
            };
            let problem = Diagnostic::error("E003", whole, "`${` is not closed");
            return Err(problem.help("add the missing `}`").into());
        };
        out.push_str(&rest[..open]);
        out.push_str(&value_of(
            &body[..close],
            Span {
                start: at,
                end: at + 2 + close + 1,
            },
            environment,
        )?);
        rest = &body[close + 1..];
    }
    out.push_str(rest);
    Ok(found.then_some(out))
}

/// What the inside of one `${…}` stands for.
fn value_of(body: &str, span: Span, environment: Environment<'_>) -> Result<String, Box<Diagnostic>> {
    let name_end = body
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(body.len());
    let (name, operator) = body.split_at(name_end);
    let valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let set = || environment(name).filter(|value| !value.is_empty());
    match (operator.get(..2), operator) {
        (_, "") if valid => environment(name).ok_or_else(|| missing(name, span, "")),
        (Some(":-"), _) if valid => Ok(set().unwrap_or_else(|| operator[2..].to_owned())),
        (Some(":?"), _) if valid => set().ok_or_else(|| missing(name, span, &operator[2..])),
        _ => {
            let problem = Diagnostic::error("E003", span, "this is not a reference to a variable");
            let forms = "the forms are ${NAME}, ${NAME:-default} and ${NAME:?message}";
            Err(problem
                .help(format!("{forms}; single quotes take a value as it stands"))
                .into())
        }
    }
}

fn missing(name: &str, span: Span, why: &str) -> Box<Diagnostic> {
    let message = format!("the environment variable `{name}` is not set");
    let diagnostic = Diagnostic::error("E003", span, message).label(why.trim());
    let help = format!("set {name} for the process, or give a default: ${{{name}:-…}}");
    diagnostic.help(help).into()
}

fn looks_like_a_reference(text: &str) -> bool {
    text.split("${")
        .skip(1)
        .any(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && rest.contains('}'))
}

#[cfg(test)]
mod tests;
