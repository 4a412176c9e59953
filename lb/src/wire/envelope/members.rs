//! What of a body tells which conversation it belongs to: some strings of the outermost object, and the messages that a
//! conversation begins with.

use std::ops::Range;

use super::string::Text;

/// Where in the whole body members of the outermost object stand; empty where they are missing, are no strings, or have
/// not ended yet. Of one that is given twice, the last counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// The value of `prompt_cache_key`, its quotes included.
    pub cache_key: Range<usize>,
    /// The beginning of `messages` or `input`: up to the end of the first message of a user, which stays the same while
    /// the conversation goes on; all of it where there is none, or where it is a string.
    pub opening: Range<usize>,
}

/// What is noted of a body whose conversation is wanted. Boxed by who has it, since nearly nobody wants it.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) members: Members,
    /// The message that the scan is in, where their first ones are still looked for.
    pub(super) item: Item,
}

/// How deep the members of a message are: in the body, in its messages, in the message.
pub(super) const ITEM: u32 = 3;

/// The longest of the words that are of interest, in bytes: `role`, `user`.
const WORD: usize = 4;

/// One message in progress.
#[derive(Debug)]
pub(super) struct Item {
    text: Text,
    sought: bool,
    is_role: bool,
    is_user: bool,
}

impl Default for Item {
    fn default() -> Self {
        Self {
            text: Text::lenient(WORD),
            sought: false,
            is_role: false,
            is_user: false,
        }
    }
}

impl Item {
    /// The messages begin.
    pub(super) fn seek(&mut self) {
        (self.sought, self.is_role, self.is_user) = (true, false, false);
    }

    /// Whether the scan is in the messages, and has not passed the first of a user.
    pub(super) fn is_sought(&self) -> bool {
        self.sought
    }

    /// The key or the role in progress, decoded.
    pub(super) fn text(&mut self) -> &mut Text {
        &mut self.text
    }

    /// A key of the message has been read.
    pub(super) fn key(&mut self) {
        self.is_role = self.text.bytes() == Some(b"role");
        self.text.clear();
    }

    /// Whether the value of `role` is next.
    pub(super) fn is_role(&self) -> bool {
        self.sought && self.is_role
    }

    /// The role has been read.
    pub(super) fn role(&mut self) {
        self.is_user |= self.text.bytes() == Some(b"user");
    }

    /// An array or object ends that is open at this depth; whether the opening ends with it.
    pub(super) fn closes(&mut self, depth: u32) -> bool {
        let over = depth < ITEM || (depth == ITEM && self.is_user);
        if over {
            self.sought = false;
        } else if depth == ITEM {
            self.is_role = false;
        }
        over
    }
}
