//! What a command writes.

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;

use crate::worker::transcript::Stream;

/// So often one is read before the other when both have something.
const AT_ONCE: u32 = 16;

/// Our ends of the pipes that a command writes to.
pub(super) struct Pipes {
    out: Pipe,
    err: Pipe,
    /// How often in a row the output was read.
    in_a_row: u32,
}

struct Pipe {
    from: Option<Box<dyn AsyncRead + Unpin + Send>>,
    buffer: Box<[u8]>,
}

impl Pipes {
    pub(super) fn of(child: &mut Child) -> Self {
        Self { out: Pipe::new(child.stdout.take()), err: Pipe::new(child.stderr.take()), in_a_row: 0 }
    }

    /// Reads from whichever has something; none when both are at their end. Dropping this loses nothing.
    ///
    /// Where both have, the output comes first: what a program says of its failure it says last, and the order of the two is not known.
    pub(super) async fn read(&mut self) -> Option<(Stream, usize)> {
        loop {
            let (mut first, mut second) = ((Stream::Out, &mut self.out), (Stream::Err, &mut self.err));
            if self.in_a_row >= AT_ONCE {
                std::mem::swap(&mut first, &mut second);
            }
            let (stream, count) = tokio::select! {
                biased;
                count = first.1.read(), if first.1.from.is_some() => (first.0, count),
                count = second.1.read(), if second.1.from.is_some() => (second.0, count),
                else => return None,
            };
            self.in_a_row = if matches!(stream, Stream::Out) { self.in_a_row.saturating_add(1) } else { 0 };
            if count > 0 {
                return Some((stream, count));
            }
            match stream {
                Stream::Out => self.out.from = None,
                Stream::Err => self.err.from = None,
            }
        }
    }

    pub(super) fn bytes(&self, stream: Stream, count: usize) -> &[u8] {
        match stream {
            Stream::Out => &self.out.buffer[..count],
            Stream::Err => &self.err.buffer[..count],
        }
    }
}

impl Pipe {
    fn new(from: Option<impl AsyncRead + Unpin + Send + 'static>) -> Self {
        Self { from: from.map(|from| Box::new(from) as _), buffer: vec![0; 64 << 10].into() }
    }

    /// Reads once; 0 at the end, which a broken pipe is as well.
    async fn read(&mut self) -> usize {
        match &mut self.from {
            Some(from) => from.read(&mut self.buffer).await.unwrap_or(0),
            None => 0,
        }
    }
}
