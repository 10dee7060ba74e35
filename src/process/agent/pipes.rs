//! Reads the output pipes of a command.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;
use tokio::time::{Instant, timeout_at};

use crate::process::transcript::{self, Stream, TranscriptWriter};

/// How often in a row one pipe is read before the other when both have data.
const AT_ONCE: u32 = 16;

/// How long to read the pipes after every process that should hold them has ended.
const DRAIN: Duration = Duration::from_millis(500);

/// Our ends of the pipes that a command writes to.
pub(super) struct Pipes {
    out: Pipe,
    err: Pipe,
    /// How often in a row standard output was read.
    in_a_row: u32,
}

struct Pipe {
    from: Option<Box<dyn AsyncRead + Unpin + Send>>,
    buffer: Box<[u8]>,
}

impl Pipes {
    pub(super) fn take_from(child: &mut Child) -> Self {
        Self { out: Pipe::new(child.stdout.take()), err: Pipe::new(child.stderr.take()), in_a_row: 0 }
    }

    /// Reads from a pipe that has data, or returns `None` when both are closed. Dropping this
    /// future loses nothing.
    ///
    /// Standard output comes first if both have data: programs usually write the reason of a
    /// failure last, and the true order is unknown.
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

    /// Copies the output that is left after the command ended.
    pub(super) async fn drain(&mut self, transcript: &mut TranscriptWriter) -> Result<(), transcript::Error> {
        let until = Instant::now() + DRAIN;
        while let Ok(Some((stream, count))) = timeout_at(until, self.read()).await {
            transcript.push(stream, self.bytes(stream, count))?;
            // With constant output the time-out above is never polled.
            if Instant::now() > until {
                break;
            }
        }
        transcript.flush()
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

    /// Reads once. Returns 0 at the end, and for a broken pipe.
    async fn read(&mut self) -> usize {
        match &mut self.from {
            Some(from) => from.read(&mut self.buffer).await.unwrap_or(0),
            None => 0,
        }
    }
}
