//! How whoever sits at the terminal, or the system, interrupts a run.

use std::sync::Once;

use tokio::sync::watch::{Receiver, channel};

use super::output::leave;

/// Returns a watch that turns true at the first Ctrl-C or request to terminate; it never does where signals cannot be had, which
/// then do what they do to any program.
///
/// A thread of its own listens, so that a signal is heard whatever the driver is doing. A signal that was ignored when the
/// program started, as `nohup` does with one, stays so.
pub(super) fn watch() -> Receiver<bool> {
    let (sender, receiver) = channel(false);
    listen(move |_| {
        sender.send_replace(true);
    });
    receiver
}

/// Has the program end at the first of them as it would without, but for the temporary folders, which go with it.
pub(super) fn tidy() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| listen(|signal| leave(signal)));
}

/// Has a thread of its own do something at the first signal, whose number it is told.
fn listen(then: impl FnOnce(i32) + Send + 'static) {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let listen = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(async move {
                let signals = signals();
                // Whoever waits for it may be gone; the signals are heard all the same.
                let _ = ready.send(());
                then(heard(signals).await);
            });
        }
    };
    if std::thread::Builder::new().name("signals".to_owned()).spawn(listen).is_ok() {
        // Only then is no signal missed. An error says that the thread ended.
        let _ = is_ready.recv();
    }
}

#[cfg(unix)]
fn signals() -> Vec<(i32, tokio::signal::unix::Signal)> {
    use tokio::signal::unix::{SignalKind, signal};
    let ignored = ignored();
    let wanted = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].into_iter();
    let wanted = wanted.filter(|kind| ignored >> (kind.as_raw_value() - 1) & 1 == 0);
    wanted.filter_map(|kind| Some((kind.as_raw_value(), signal(kind).ok()?))).collect()
}

/// Returns the set of signals that are ignored, a bit each; none where the system does not tell.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(unix)]
async fn heard(mut signals: Vec<(i32, tokio::signal::unix::Signal)>) -> i32 {
    std::future::poll_fn(|context| {
        let heard = |(number, signal): &mut (i32, tokio::signal::unix::Signal)| {
            signal.poll_recv(context).is_ready().then_some(*number)
        };
        signals.iter_mut().find_map(heard).map_or(std::task::Poll::Pending, std::task::Poll::Ready)
    })
    .await
}

#[cfg(not(unix))]
fn signals() {}

#[cfg(not(unix))]
async fn heard((): ()) -> i32 {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    2
}
