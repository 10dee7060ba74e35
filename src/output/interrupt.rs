//! Handling of Ctrl-C and termination signals.

use std::sync::Once;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch::{Receiver, channel};

use super::Failure;
use super::leave;

/// Returns a runtime with one thread beside the caller's, and the channel of [`watch`].
pub(crate) fn runtime() -> Result<(Runtime, Receiver<bool>), Failure> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| Failure::io("the runtime could not be started", &e))?;
    let interrupt = runtime.block_on(async { watch() });
    Ok((runtime, interrupt))
}

/// Returns a channel that becomes true at the first Ctrl-C or termination signal. If signals cannot
/// be handled, it never does, and they have their default effect.
///
/// A separate thread listens, so that a busy driver does not delay it. A signal that was ignored at
/// the start, as by `nohup`, stays ignored.
pub(crate) fn watch() -> Receiver<bool> {
    let (sender, receiver) = channel(false);
    listen(move |_| {
        sender.send_replace(true);
    });
    receiver
}

/// Ends the program at the first signal as by default, but removes temporary folders first.
pub(crate) fn tidy() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| listen(|signal| leave(signal)));
}

/// Calls a function with the number of the first signal, on a separate thread.
fn listen(then: impl FnOnce(i32) + Send + 'static) {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let listen = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(async move {
                let signals = signals();
                // The receiver may be gone; signals are handled all the same.
                let _ = ready.send(());
                then(wait_for_signal(signals).await);
            });
        }
    };
    if std::thread::Builder::new().name("signals".to_owned()).spawn(listen).is_ok() {
        // Ensures that no signal is missed. An error means that the thread ended.
        let _ = is_ready.recv();
    }
}

fn signals() -> Vec<(i32, tokio::signal::unix::Signal)> {
    use tokio::signal::unix::{SignalKind, signal};
    let ignored = ignored();
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].into_iter();
    let kinds = kinds.filter(|kind| ignored >> (kind.as_raw_value() - 1) & 1 == 0);
    kinds.filter_map(|kind| Some((kind.as_raw_value(), signal(kind).ok()?))).collect()
}

/// Returns the ignored signals as a bit set, or `None` if unknown.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

async fn wait_for_signal(mut signals: Vec<(i32, tokio::signal::unix::Signal)>) -> i32 {
    std::future::poll_fn(|context| {
        signals
            .iter_mut()
            .find_map(|(number, signal)| signal.poll_recv(context).is_ready().then_some(*number))
            .map_or(std::task::Poll::Pending, std::task::Poll::Ready)
    })
    .await
}
