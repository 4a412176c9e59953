//! Replays the fuzzers' corpora, so that what they found once stays found without a nightly compiler.

#[cfg(test)]
#[path = "../fuzz/checks/http1_request.rs"]
mod http1_request;

#[cfg(test)]
#[path = "../fuzz/checks/http1_response.rs"]
mod http1_response;

#[cfg(test)]
#[path = "../fuzz/checks/segments.rs"]
mod segments;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{http1_request, http1_response, segments};

    /// Runs `check` on every file of one corpus and returns how many there were.
    #[expect(
        clippy::print_stdout,
        reason = "shown only if the test fails, to say on which input"
    )]
    fn replay(target: &str, check: impl Fn(&[u8])) -> usize {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("fuzz/corpus")
            .join(target);
        let mut inputs: Vec<_> = fs::read_dir(corpus)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        // By name, so that a failure is the same one everywhere.
        inputs.sort_unstable();
        for input in &inputs {
            println!("{}", input.display());
            check(&fs::read(input).unwrap());
        }
        inputs.len()
    }

    // [HTTP-58]
    #[test]
    fn requests_of_the_corpus_are_read_alike_in_every_split() {
        assert!(replay("http1_request", http1_request::check) >= 20);
    }

    // [NET-8]
    #[test]
    fn responses_of_the_corpus_are_read_alike_in_every_split() {
        assert!(replay("http1_response", http1_response::check) >= 20);
    }

    // [KERNEL-4]
    #[test]
    fn segments_of_the_corpus_keep_every_flow_consistent() {
        assert!(replay("segments", segments::check) >= 20);
    }
}
