//! Reads what a provider says of the tokens that an answer took.
//!
//! The API families say it under different names and at different times: chat completions once, at the end; responses
//! inside `response`; messages half of it in `message_start` and the rest, growing, in every `message_delta`. Each
//! member counts with its last value.

use std::sync::LazyLock;

use memchr::memmem::{Finder, FinderRev};
use serde::Deserialize;

/// Tokens of one answer, as far as they were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub prompt: u64,
    /// Tokens that were generated.
    pub completion: u64,
}

/// The members that hold it.
#[derive(Deserialize)]
struct Holder {
    #[serde(default)]
    usage: Option<Told>,
    #[serde(default)]
    response: Option<Inner>,
    #[serde(default)]
    message: Option<Inner>,
}

#[derive(Deserialize)]
struct Inner {
    #[serde(default)]
    usage: Option<Told>,
}

#[derive(Deserialize)]
struct Told {
    #[serde(alias = "input_tokens")]
    prompt_tokens: Option<u64>,
    #[serde(alias = "output_tokens")]
    completion_tokens: Option<u64>,
}

impl Usage {
    /// Looks at the data of an event. Most have no usage, which a search tells. [USAGE-1]
    pub fn event(&mut self, data: &[u8]) {
        if FORWARD.find(data).is_none() {
            return;
        }
        let Ok(holder) = serde_json::from_slice::<Holder>(data) else {
            return;
        };
        let inner = [holder.response, holder.message].into_iter().flatten();
        let told = inner.filter_map(|inner| inner.usage).chain(holder.usage);
        told.for_each(|told| self.take(&told));
    }

    /// Looks at the last bytes of a JSON answer, where the usage stands. A text in the answer cannot be taken for it:
    /// its quotes are escaped. [USAGE-2]
    pub fn tail(&mut self, end: &[u8]) {
        let Some(at) = BACKWARD.rfind(end) else { return };
        let value = end[at + NAME.len()..].trim_ascii_start();
        let Some(value) = value.strip_prefix(b":") else {
            return;
        };
        // What follows the object is not looked at.
        let mut values = serde_json::Deserializer::from_slice(value).into_iter::<Told>();
        if let Some(Ok(told)) = values.next() {
            self.take(&told);
        }
    }

    fn take(&mut self, told: &Told) {
        self.prompt = told.prompt_tokens.unwrap_or(self.prompt);
        self.completion = told.completion_tokens.unwrap_or(self.completion);
    }
}

const NAME: &[u8] = b"\"usage\"";
static FORWARD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(NAME));
static BACKWARD: LazyLock<FinderRev<'static>> = LazyLock::new(|| FinderRev::new(NAME));

#[cfg(test)]
mod tests;
