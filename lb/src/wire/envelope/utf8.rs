//! Checks that a text is UTF-8 although its characters may be cut by chunks.

/// The bytes of a character whose end has not arrived.
#[derive(Debug, Default)]
pub(super) struct Utf8 {
    pending: [u8; 4],
    length: usize,
}

impl Utf8 {
    /// Checks the next bytes; the error is the offset in `chunk` of the first one that is wrong.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<(), usize> {
        let mut at = 0;
        while self.length > 0 {
            let Some(&byte) = chunk.get(at) else { return Ok(()) };
            // Four bytes are always a character or an error, so there is room for one more.
            self.pending[self.length] = byte;
            self.length += 1;
            match std::str::from_utf8(&self.pending[..self.length]) {
                Ok(_) => self.length = 0,
                Err(error) if error.error_len().is_some() => {
                    self.length = 0;
                    return Err(at);
                }
                Err(_) => {}
            }
            at += 1;
        }
        let rest = &chunk[at..];
        let Err(error) = std::str::from_utf8(rest) else {
            return Ok(());
        };
        let cut = &rest[error.valid_up_to()..];
        if error.error_len().is_some() {
            return Err(at + error.valid_up_to());
        }
        self.length = cut.len();
        self.pending[..cut.len()].copy_from_slice(cut);
        Ok(())
    }
}
