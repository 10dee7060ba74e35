//! Standard input of a server, with nothing in it that takes more memory than its bytes are worth.
//!
//! A request is a line. One that is too long, too deep or of too many values is cut off where that shows, so that nobody reads it,
//! and a line that is no request follows in its place: it is what the client is answered to. The lines after it are read as ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// The most bytes of a request, with its end; more than that the transport would drop without a word.
const MAX_BYTES: usize = (16 << 20) - 16;

/// The most signs that make arrays, objects and their members; there is one at least for each value.
const MAX_SIGNS: usize = 1 << 19;

/// The most arrays and objects in one another; more than that no reader takes, and the transport would drop it without a word.
const MAX_DEPTH: usize = 120;

/// What is read after the beginning of a line that was cut off: its end, and a line that is no request.
const INSTEAD: &[u8] = b"\n{}\n";

/// The lines of a client.
pub(super) struct Lines<R> {
    input: R,
    line: Line,
    /// What may be passed on, and how much of it was.
    out: (Vec<u8>, usize),
}

impl<R> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, line: Line::default(), out: (Vec::new(), 0) }
    }
}

/// The line that is being read.
#[derive(Default)]
struct Line {
    bytes: usize,
    signs: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    cut: bool,
}

impl Line {
    /// Takes in a byte; adds to `out` what may be passed on.
    fn take(&mut self, byte: u8, out: &mut Vec<u8>) {
        if byte == b'\n' {
            if !self.cut {
                out.push(byte);
            }
            *self = Self::default();
            return;
        }
        if self.cut {
            return;
        }
        self.bytes += 1;
        match (self.in_string, byte) {
            (true, _) if self.escaped => self.escaped = false,
            (true, b'\\') => self.escaped = true,
            (_, b'"') => self.in_string = !self.in_string,
            (false, b',' | b':') => self.signs += 1,
            (false, b'[' | b'{') => (self.signs, self.depth) = (self.signs + 1, self.depth + 1),
            (false, b']' | b'}') => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.cut = self.bytes > MAX_BYTES || self.signs > MAX_SIGNS || self.depth > MAX_DEPTH;
        if self.cut { out.extend_from_slice(INSTEAD) } else { out.push(byte) }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let (out, passed) = &mut this.out;
            if *passed < out.len() {
                let length = buffer.remaining().min(out.len() - *passed);
                buffer.put_slice(&out[*passed..*passed + length]);
                *passed += length;
                return Poll::Ready(Ok(()));
            }
            out.clear();
            *passed = 0;
            let mut space = [0; 8 << 10];
            let mut read = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut this.input).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            for byte in read.filled() {
                this.line.take(*byte, out);
            }
        }
    }
}
