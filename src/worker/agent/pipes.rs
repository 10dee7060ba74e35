//! What a command writes.

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;

use crate::worker::transcript::Stream;

/// Our ends of the pipes that a command writes to.
pub(super) struct Pipes {
    out: Pipe,
    err: Pipe,
}

struct Pipe {
    from: Option<Box<dyn AsyncRead + Unpin + Send>>,
    buffer: Box<[u8]>,
}

impl Pipes {
    pub(super) fn of(child: &mut Child) -> Self {
        Self { out: Pipe::new(child.stdout.take()), err: Pipe::new(child.stderr.take()) }
    }

    /// Reads from whichever has something; none when both are at their end. Dropping this loses nothing.
    pub(super) async fn read(&mut self) -> Option<(Stream, usize)> {
        loop {
            let (stream, count) = tokio::select! {
                count = self.out.read(), if self.out.from.is_some() => (Stream::Out, count),
                count = self.err.read(), if self.err.from.is_some() => (Stream::Err, count),
                else => return None,
            };
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
