//! "Did you mean …?"

/// The one of `known` that `word` most likely stands for, as a line of help.
pub(super) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > LIKELY)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

/// Below this, a suggestion is more often noise than help: `url` for `name` has 0, `weigth` for `weight` 0.97.
const LIKELY: f64 = 0.8;

#[cfg(test)]
mod tests;
