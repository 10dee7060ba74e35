//! The end of a session: by the end of standard input, or by a signal.
//!
//! When standard input ends, running calls get a minute: waiting ones may still start, and all are
//! answered. Only then is the protocol library told of the end, because it aborts calls after five
//! seconds. After a signal, running calls are finished and waiting ones refused.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, sleep_until};

/// How often all tasks have a turn before the calls under way are counted.
const TURNS: u32 = 8;

/// The time that calls under way have when standard input ends.
const LAST_CALLS: Duration = Duration::from_secs(60);

/// The part of that time during which a call may still begin, or wait for a remote.
const WAITING: Duration = Duration::from_secs(50);

/// The time for running calls after a signal. The sender often kills the process a few seconds
/// later.
const LAST_WORK: Duration = Duration::from_secs(10);

/// The time, once no call is under way, that a client has to read the last answers.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The end of a session, for everything that has to act on it.
#[derive(Clone)]
pub(super) struct Ending {
    ended: watch::Sender<Option<Ended>>,
    calls: watch::Sender<usize>,
}

/// How a session ended, and when.
#[derive(Clone, Copy)]
struct Ended {
    at: Instant,
    by_signal: bool,
}

impl Ended {
    /// Returns the time after which no call may begin any more.
    fn last_turn(self) -> Instant {
        if self.by_signal { self.at } else { self.at + WAITING }
    }

    /// Returns the time after which no call is waited for.
    fn last_call(self) -> Instant {
        self.at + if self.by_signal { LAST_WORK } else { LAST_CALLS }
    }
}

/// A call that is under way until this is dropped.
pub(super) struct UnderWay(watch::Sender<usize>);

impl Ending {
    /// A session that has not ended, without calls.
    pub(super) fn new() -> Self {
        Self { ended: watch::Sender::new(None), calls: watch::Sender::new(0) }
    }

    /// Returns standard input, whose end ends the session and is passed on after the last calls.
    pub(super) fn input(&self, from: Stdin) -> Input {
        let (come, quiet) = (self.clone(), self.clone());
        Input {
            from,
            ending: self.clone(),
            come: Box::pin(async move { come.come().await }),
            quiet: Some(Box::pin(async move {
                // The requests that were read last have begun once their tasks had a turn.
                for _ in 0..TURNS {
                    yield_now().await;
                }
                quiet.last_calls().await;
            })),
        }
    }

    /// Counts a call.
    pub(super) fn begin(&self) -> UnderWay {
        self.calls.send_modify(|calls| *calls += 1);
        UnderWay(self.calls.clone())
    }

    /// Ends the session because a signal asks for that.
    pub(super) fn interrupt(&self) {
        self.ended.send_replace(Some(Ended { at: Instant::now(), by_signal: true }));
    }

    /// Ends the session because standard input has ended.
    fn end(&self) {
        self.ended.send_modify(|ended| *ended = ended.or(Some(Ended { at: Instant::now(), by_signal: false })));
    }

    /// Returns when the session has ended.
    pub(super) async fn come(&self) {
        // The channel stays open, because `self` holds its sender.
        let _ = self.ended.subscribe().wait_for(Option::is_some).await;
    }

    /// Returns true if the session has ended.
    pub(super) fn has_come(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Returns true if the session has ended and no call may begin any more.
    pub(super) fn is_nearly_over(&self) -> bool {
        self.ended.borrow().is_some_and(|ended| ended.last_turn() <= Instant::now())
    }

    /// Returns when the session has ended and no call may begin any more.
    pub(super) async fn nearly_over(&self) {
        self.until(Ended::last_turn).await;
    }

    /// Waits until no call is under way, or the time for the last ones is over.
    pub(super) async fn last_calls(&self) {
        let mut calls = self.calls.subscribe();
        tokio::select! {
            _ = calls.wait_for(|calls| *calls == 0) => {}
            () = self.until(Ended::last_call) => {}
        }
    }

    /// Waits for a deadline that depends on how the session ends; a signal may bring it forward.
    async fn until(&self, moment: fn(Ended) -> Instant) {
        let mut changes = self.ended.subscribe();
        loop {
            let ended = *changes.borrow_and_update();
            tokio::select! {
                () = sleep_until(ended.map_or_else(Instant::now, moment)), if ended.is_some() => return,
                _ = changes.changed() => {}
            }
        }
    }

    /// Waits until the session has ended and nothing is left to wait for, even if answers are not
    /// read.
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

/// Standard input, which tells when it ends, and itself ends with the session.
pub(super) struct Input {
    from: Stdin,
    ending: Ending,
    /// Waits for the end of the session.
    come: Waiting,
    /// Waits for the last calls, until there are none.
    quiet: Option<Waiting>,
}

type Waiting = Pin<Box<dyn Future<Output = ()> + Send>>;

impl AsyncRead for Input {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.ending.has_come() && self.come.as_mut().poll(context).is_pending() {
            let before = bytes.filled().len();
            match Pin::new(&mut self.from).poll_read(context, bytes) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if bytes.filled().len() > before => return Poll::Ready(Ok(())),
                // An error ends the session as well.
                Poll::Ready(_) => self.ending.end(),
            }
        }
        if let Some(quiet) = &mut self.quiet {
            ready!(quiet.as_mut().poll(context));
            self.quiet = None;
        }
        Poll::Ready(Ok(()))
    }
}
