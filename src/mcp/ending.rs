//! How a session ends: who is told that standard input has ended, and how long is waited for what is still under way.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// How long a call that is under way when standard input ends may take to come to its own end.
const LAST_CALLS: Duration = Duration::from_secs(60);

/// How long of it a call may spend waiting for others, so that these can be ended with it.
const WAITING: Duration = Duration::from_secs(50);

/// How long whoever ended standard input may take, once no call is under way, to read what is still to be read.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The end of a session, told to everybody who waits for it.
#[derive(Clone)]
pub(super) struct Ending {
    /// Since when it is over, if it is.
    ended: watch::Sender<Option<Instant>>,
    calls: watch::Sender<usize>,
}

/// A call that is under way until this is dropped.
pub(super) struct UnderWay(watch::Sender<usize>);

impl Ending {
    /// A session that has not ended, without calls.
    pub(super) fn new() -> Self {
        Self { ended: watch::Sender::new(None), calls: watch::Sender::new(0) }
    }

    /// Returns standard input as one whose end is the end of the session.
    pub(super) fn input(&self, from: Stdin) -> Input {
        Input { from, ended: self.ended.clone() }
    }

    /// Counts a call.
    pub(super) fn begin(&self) -> UnderWay {
        self.calls.send_modify(|calls| *calls += 1);
        UnderWay(self.calls.clone())
    }

    /// Waits until standard input has ended.
    pub(super) async fn come(&self) {
        if self.ended.subscribe().wait_for(Option::is_some).await.is_err() {
            // Nobody is left who could end it.
            pending::<()>().await;
        }
    }

    /// Returns whether standard input has ended.
    pub(super) fn has_come(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Returns whether standard input ended so long ago that nothing is worth waiting for that is somewhere else.
    pub(super) fn is_nearly_over(&self) -> bool {
        self.ended.borrow().is_some_and(|since| since.elapsed() > WAITING)
    }

    /// Waits until no call is under way; those that take too long are left alone.
    pub(super) async fn last_calls(&self) {
        let mut calls = self.calls.subscribe();
        let _ = timeout(LAST_CALLS, calls.wait_for(|calls| *calls == 0)).await;
    }

    /// Waits until standard input has ended and nothing is worth waiting for any more, whether answers are read or not.
    pub(super) async fn over(&self) {
        self.come().await;
        self.last_calls().await;
        sleep(LAST_WORDS).await;
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls -= 1);
    }
}

/// Standard input, which tells when it ends.
pub(super) struct Input {
    from: Stdin,
    ended: watch::Sender<Option<Instant>>,
}

impl AsyncRead for Input {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = bytes.filled().len();
        let read = ready!(Pin::new(&mut self.from).poll_read(context, bytes));
        if read.is_err() || bytes.filled().len() == before {
            self.ended.send_modify(|ended| *ended = ended.or_else(|| Some(Instant::now())));
        }
        Poll::Ready(read)
    }
}
