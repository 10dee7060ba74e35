//! Answers lines that are no JSON, which the protocol library drops without a word.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

/// The bytes to read at once.
const CHUNK: usize = 64 << 10;

/// Input of which only lines of JSON are passed on.
pub(super) struct Lines<R> {
    from: R,
    /// The line that is not complete yet.
    line: Vec<u8>,
    /// Complete lines, and how much of them was passed on.
    passed: (Vec<u8>, usize),
    /// Receives the reason for each line that is not passed on.
    refused: mpsc::UnboundedSender<String>,
}

/// How the library writes an error without an id, and how the protocol wants it.
const WITHOUT_ID: (&[u8], &[u8]) = (br#"{"jsonrpc":"2.0","error":"#, br#"{"jsonrpc":"2.0","id":null,"error":"#);

/// Output whose errors without an id have the id null.
pub(super) struct Identified<W> {
    to: W,
    /// The beginning of an error that is still to be written.
    begun: &'static [u8],
}

/// A transport that answers the refused lines of its input.
pub(super) struct Answering<T: Transport<RoleServer>> {
    inner: T,
    refused: mpsc::UnboundedReceiver<String>,
    /// The answer that is being sent; kept here because `receive` may be dropped.
    answer: Option<Sending<T::Error>>,
}

type Sending<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

/// Returns the input without its refused lines, and what answers them around a transport.
pub(super) fn split<R, T: Transport<RoleServer>>(from: R, transport: impl FnOnce(Lines<R>) -> T) -> Answering<T> {
    let (sender, refused) = mpsc::unbounded_channel();
    let lines = Lines { from, line: Vec::new(), passed: (Vec::new(), 0), refused: sender };
    Answering { inner: transport(lines), refused, answer: None }
}

impl<W> Identified<W> {
    pub(super) fn new(to: W) -> Self {
        Self { to, begun: &[] }
    }
}

impl<W: AsyncWrite + Unpin> Identified<W> {
    /// Writes the beginning of an error.
    fn begin(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.begun.is_empty() {
            let written = ready!(Pin::new(&mut self.to).poll_write(context, self.begun))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.begun = &self.begun[written..];
        }
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Identified<W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.begin(context))?;
        // In a string its quotes would be escaped.
        let (bare, complete) = WITHOUT_ID;
        if bytes.starts_with(bare) {
            self.begun = complete;
            return Poll::Ready(Ok(bare.len()));
        }
        Pin::new(&mut self.to).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.begin(context))?;
        Pin::new(&mut self.to).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.begin(context))?;
        Pin::new(&mut self.to).poll_shutdown(context)
    }
}

impl<R> Lines<R> {
    /// Takes bytes that were read.
    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.complete();
            }
        }
    }

    /// Passes a complete line on, or refuses it.
    fn complete(&mut self) {
        let line = self.line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.line);
        let found = std::str::from_utf8(line).map_err(|error| error.to_string());
        let found = found.map(str::trim).and_then(|text| match text {
            "" => Ok(()),
            text => serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|error| error.to_string()),
        });
        match found {
            Ok(()) => self.passed.0.append(&mut self.line),
            // The receiver ends with the session.
            Err(why) => drop(self.refused.send(why)),
        }
        self.line.clear();
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let (lines, at) = &mut self.passed;
            if *at < lines.len() {
                let count = to.remaining().min(lines.len() - *at);
                to.put_slice(&lines[*at..*at + count]);
                *at += count;
                return Poll::Ready(Ok(()));
            }
            lines.clear();
            *at = 0;
            let mut chunk = vec![0; CHUNK];
            let mut read = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut self.from).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                if !self.line.is_empty() {
                    self.complete();
                    continue;
                }
                return Poll::Ready(Ok(()));
            }
            let length = read.filled().len();
            self.take(&chunk[..length]);
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Answering<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(answer) = &mut self.answer {
                let sent = answer.await;
                self.answer = None;
                sent.ok()?;
            }
            let why = tokio::select! {
                biased;
                Some(why) = self.refused.recv() => why,
                message = self.inner.receive() => match (message, self.refused.try_recv()) {
                    (None, Ok(why)) => why,
                    (Some(message), Err(_)) => return Some(message),
                    (None, Err(_)) => return None,
                    (Some(message), Ok(why)) => {
                        self.answer = Some(self.parse_error(&why));
                        return Some(message);
                    }
                },
            };
            self.answer = Some(self.parse_error(&why));
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

impl<T: Transport<RoleServer>> Answering<T> {
    fn parse_error(&mut self, why: &str) -> Sending<T::Error> {
        let error = ErrorData::parse_error(format!("cannot parse the message: {why}"), None);
        Box::pin(self.inner.send(TxJsonRpcMessage::<RoleServer>::error(error, None)))
    }
}
