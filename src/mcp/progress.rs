//! Progress of a call that takes a while, for clients that asked for it by a token.
//!
//! Clients use it to show that a call is alive; many restart their time limit with each
//! notification.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// The time before the first notification; most calls are over by then.
const FIRST: Duration = Duration::from_millis(200);

/// The time between two notifications.
const BEAT: Duration = Duration::from_secs(1);

/// The state of a call, as it is reported.
#[derive(Clone, Default)]
pub(super) struct Progress(Arc<Mutex<State>>);

#[derive(Clone, Default)]
struct State {
    /// The seconds after which the call returns at the latest, if it has such a limit.
    total: Option<f64>,
    message: String,
}

impl Progress {
    /// Changes the message that the next notifications carry.
    pub(super) fn say(&self, message: impl Into<String>) {
        self.lock().message = message.into();
    }

    /// Sets the time after which the call returns at the latest.
    pub(super) fn limit(&self, time: Duration) {
        self.lock().total = Some(time.as_secs_f64());
    }

    /// Reports the state repeatedly, with the elapsed seconds as progress. Never returns.
    ///
    /// Ignores notifications that cannot be sent: the client is gone or does not read.
    pub(super) async fn report(&self, client: &Peer<RoleServer>, token: ProgressToken) {
        let begun = Instant::now();
        let mut beats = interval_at(begun + FIRST, BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beats.tick().await;
            let State { total, message } = self.lock().clone();
            let mut notification = ProgressNotificationParam::new(token.clone(), begun.elapsed().as_secs_f64());
            notification.total = total;
            notification.message = Some(message).filter(|message| !message.is_empty());
            let _ = client.notify_progress(notification).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
