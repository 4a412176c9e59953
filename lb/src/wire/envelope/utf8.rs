//! Checks that a text is UTF-8 although its characters may be cut by chunks.

/// The bytes of a character whose end has not arrived.
#[derive(Debug, Default)]
pub(super) struct Utf8 {
    pending: [u8; 4],
    length: usize,
}

impl Utf8 {
    /// Checks the next bytes. The error is the offset in `chunk` of the first byte that no character goes on with,
    /// however the text is cut.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<(), usize> {
        let mut at = 0;
        loop {
            if self.length == 0 {
                let Err(error) = std::str::from_utf8(&chunk[at..]) else {
                    return Ok(());
                };
                at += error.valid_up_to();
            }
            // A character that is cut, or wrong: byte by byte until it is clear which.
            loop {
                let Some(&byte) = chunk.get(at) else { return Ok(()) };
                self.pending[self.length] = byte;
                self.length += 1;
                // Four bytes are always a character or an error, so there is room for one more where there is neither.
                match std::str::from_utf8(&self.pending[..self.length]) {
                    Ok(_) => break,
                    Err(error) if error.error_len().is_some() => {
                        self.length = 0;
                        return Err(at);
                    }
                    Err(_) => at += 1,
                }
            }
            self.length = 0;
            at += 1;
        }
    }
}
