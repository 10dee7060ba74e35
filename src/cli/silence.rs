//! Reports of attempts that print nothing for a while.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use git_handoff::model::printable;
use git_handoff::process::live::Lives;

/// The time without output after which an attempt counts as silent.
pub(super) const QUIET: Duration = Duration::from_secs(60);

/// The prefix and attempts of one run, for reports of silence.
pub(crate) type Watched = (String, Arc<Lives>);

/// Reports silent attempts that have no row, unless the clock is pinned; ends on drop.
pub(crate) async fn tell_of_silence(watched: Vec<Watched>, is_timed: bool) -> Infallible {
    if !is_timed || watched.is_empty() {
        std::future::pending::<()>().await;
    }
    let mut warned = HashMap::new();
    loop {
        tokio::time::sleep(QUIET / 4).await;
        let mut err = io::stderr().lock();
        let silent = watched.iter().flat_map(|(label, lives)| {
            lives.silent().into_iter().map(move |(item, silent)| (format!("{label}… {item}"), silent))
        });
        for line in silences(silent, &mut warned) {
            // Stops if standard error is closed.
            let _ = writeln!(err, "{}", printable::line(&line));
        }
    }
}

/// Returns a line for each silent attempt after one, two, five and then every five minutes.
fn silences(silent: impl Iterator<Item = (String, Duration)>, warned: &mut HashMap<String, u64>) -> Vec<String> {
    let mut lines = Vec::new();
    for (attempt, duration) in silent {
        let due = match duration.as_secs() / 60 {
            0 => 0,
            1 => 1,
            2..5 => 2,
            minutes => minutes - minutes % 5,
        };
        let before = warned.insert(attempt.clone(), due).unwrap_or(0);
        if due > before {
            lines.push(format!("{attempt}  silent for {}", minutes(duration)));
        }
    }
    lines
}

pub(super) fn minutes(silent: Duration) -> String {
    format!("{} min", silent.as_secs() / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_says_nothing_is_told_of_every_few_minutes() {
        let mut warned = HashMap::new();
        let mut after =
            |minutes: u64| silences([("… a".to_owned(), Duration::from_secs(minutes * 60))].into_iter(), &mut warned);
        let none = Vec::<String>::new();
        assert_eq!(after(0), none);
        assert_eq!(after(1), ["… a  silent for 1 min"]);
        assert_eq!(after(1), none);
        assert_eq!(after(2), ["… a  silent for 2 min"]);
        assert_eq!(after(4), none);
        assert_eq!(after(5), ["… a  silent for 5 min"]);
        assert_eq!(after(9), none);
        assert_eq!(after(11), ["… a  silent for 11 min"]);
        assert_eq!(after(0), none, "it said something");
        assert_eq!(after(6), ["… a  silent for 6 min"]);
    }
}
