//! Settings in an included tracked file: stricter ones count, weaker ones do not, in any order of
//! files.

use git_handoff::model::confinement::{Asked, Network};
use git_handoff::repository::config::Config;

use super::read;
use crate::common::clone::TestClone;

/// Settings outside, settings in the tracked file, the ignored ones of these, and the result for
/// all and for the subagent `w`.
type Case<T> =
    (&'static [(&'static str, &'static str)], &'static [(&'static str, &'static str)], &'static [&'static str], T, T);

const ALL: [&str; 2] = ["handoff.sandbox", "handoff.network"];
const OF_W: [&str; 2] = ["handoff.subagent.w.sandbox", "handoff.subagent.w.network"];

const SANDBOX: &[Case<Asked>] = &[
    (&[(ALL[0], "strict")], &[(ALL[0], "require")], &[ALL[0]], Asked::Strict, Asked::Strict),
    (&[(ALL[0], "strict")], &[(OF_W[0], "require")], &[OF_W[0]], Asked::Strict, Asked::Strict),
    (&[(OF_W[0], "strict")], &[(OF_W[0], "auto")], &[OF_W[0]], Asked::Auto, Asked::Strict),
    (&[(OF_W[0], "strict")], &[(ALL[0], "require")], &[], Asked::Require, Asked::Strict),
    (&[(ALL[0], "require")], &[(OF_W[0], "strict")], &[], Asked::Require, Asked::Strict),
    (&[(ALL[0], "require")], &[(ALL[0], "require")], &[], Asked::Require, Asked::Require),
    (&[(ALL[0], "none")], &[(OF_W[0], "auto")], &[], Asked::None, Asked::Auto),
    (&[(ALL[0], "strict"), (OF_W[0], "none")], &[(OF_W[0], "require")], &[], Asked::Strict, Asked::Require),
    (&[], &[(ALL[0], "none"), (OF_W[0], "none")], &[ALL[0], OF_W[0]], Asked::Auto, Asked::Auto),
    // A tracked setting does not affect whether another counts.
    (&[(ALL[0], "require")], &[(OF_W[0], "strict"), (OF_W[0], "auto")], &[OF_W[0]], Asked::Require, Asked::Strict),
    (&[(ALL[0], "require")], &[(ALL[0], "strict"), (OF_W[0], "require")], &[], Asked::Strict, Asked::Require),
    (&[], &[(ALL[0], "bogus")], &[ALL[0]], Asked::Auto, Asked::Auto),
];

const NETWORK: &[Case<Network>] = &[
    (&[(ALL[1], "none")], &[(ALL[1], "loopback")], &[ALL[1]], Network::None, Network::None),
    (&[(ALL[1], "none")], &[(OF_W[1], "loopback")], &[OF_W[1]], Network::None, Network::None),
    (&[(OF_W[1], "none")], &[(OF_W[1], "loopback")], &[OF_W[1]], Network::Any, Network::None),
    (&[(ALL[1], "none"), (OF_W[1], "none")], &[(OF_W[1], "any")], &[OF_W[1]], Network::None, Network::None),
    (&[(ALL[1], "none"), (OF_W[1], "any")], &[(OF_W[1], "loopback")], &[], Network::None, Network::Loopback),
    (&[(ALL[1], "loopback")], &[(ALL[1], "none")], &[], Network::None, Network::None),
    (&[], &[(OF_W[1], "any")], &[], Network::Any, Network::Any),
];

#[test]
fn it_confines_more_and_never_less() {
    each(SANDBOX, |config| {
        (config.sandbox, config.subagents.get("w").and_then(|own| own.sandbox).unwrap_or(config.sandbox))
    });
}

#[test]
fn it_shuts_the_network_and_never_opens_it() {
    each(NETWORK, |config| {
        (config.network, config.subagents.get("w").and_then(|own| own.network).unwrap_or(config.network))
    });
}

fn each<T: Copy + PartialEq + std::fmt::Debug>(cases: &[Case<T>], get: fn(&Config) -> (T, T)) {
    for case in cases {
        for is_included_first in [true, false] {
            let clone = TestClone::new();
            let include = || clone.git(&["config", "include.path", "../team.config"]);
            clone.git(&["config", "--file", "team.config", "handoff.maxItems", "7"]);
            if is_included_first {
                include();
            }
            let (outside, tracked, ignored, all, own) = case;
            for (key, value) in *outside {
                clone.git(&["config", key, value]);
            }
            for (key, value) in *tracked {
                clone.git(&["config", "--file", "team.config", "--add", key, value]);
            }
            if !is_included_first {
                include();
            }
            let config = read(&clone).unwrap();
            assert_eq!(config.max_items, 7);
            assert_eq!(get(&config), (*all, *own), "{case:?}");
            let warned: Vec<_> = ignored
                .iter()
                .map(|key| {
                    format!(
                        "`{key}` is ignored: a file inside the work tree sets it, and a commit can change that file"
                    )
                })
                .collect();
            assert_eq!(config.warnings, warned, "{case:?}");
        }
    }
}
