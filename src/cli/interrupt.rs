//! How whoever sits at the terminal, or the system, interrupts a run.

use tokio::sync::watch::{Receiver, channel};

/// Returns a watch that turns true at the first Ctrl-C or request to terminate; it never does where signals cannot be had, which
/// then do what they do to any program.
///
/// A thread of its own listens, so that a signal is heard whatever the driver is doing. A signal that was ignored when the
/// program started, as `nohup` does with one, stays so.
pub(super) fn watch() -> Receiver<bool> {
    let (sender, receiver) = channel(false);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let listen = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(async move {
                let signals = signals();
                // Whoever waits for it may be gone; the signals are heard all the same.
                let _ = ready.send(());
                heard(signals).await;
                sender.send_replace(true);
            });
        }
    };
    if std::thread::Builder::new().name("signals".to_owned()).spawn(listen).is_ok() {
        // Only then is no signal missed. An error says that the thread ended.
        let _ = is_ready.recv();
    }
    receiver
}

#[cfg(unix)]
fn signals() -> Vec<tokio::signal::unix::Signal> {
    use tokio::signal::unix::{SignalKind, signal};
    let ignored = ignored();
    let wanted = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].into_iter();
    wanted.filter(|kind| ignored >> (kind.as_raw_value() - 1) & 1 == 0).filter_map(|kind| signal(kind).ok()).collect()
}

/// Returns the set of signals that are ignored, a bit each; none where the system does not tell.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(unix)]
async fn heard(mut signals: Vec<tokio::signal::unix::Signal>) {
    std::future::poll_fn(|context| {
        let heard = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if heard { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[cfg(not(unix))]
fn signals() {}

#[cfg(not(unix))]
async fn heard((): ()) {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
