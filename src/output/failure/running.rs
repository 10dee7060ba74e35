//! Hints and failures of submitting and steering runs.

use git_handoff::model::hints;
use git_handoff::run::operate::{self, coordinate, extend, steer, submission, submit};
use git_handoff::run::query::{self, Unreadable};

use super::{Failure, hint_table, people};

hint_table! {
    submit::Error as E {
        E::Different(run) => hints::show_or_rename(run);
        E::Used(run) | E::OtherCase { run, .. } => hints::other_id(run.as_str());
        E::Unborn => hints::first_commit();
        E::Base(_) => hints::commits();
        E::Unsealed(_) => hints::again();
    }
    submission::Error as E {
        E::Queue(queue) => hints::register_queue(queue);
    }
    query::Error as E {
        E::Unknown(_) => hints::runs();
        E::NotARun(run) | E::Plan(run) | E::Rules(run) | E::Item(run, _) | E::History(run, ..) => hints::verify(run);
    }
    operate::Error as E {
        E::Rewritten(run) | E::Stranger(run, _) | E::Unjudged(run, ..) => hints::verify(run);
        E::Role { run, key, why } => people::missing_role(run, key, *why);
        E::Forked(bad) => hints::verify(&bad.run);
    } else error => error.hint();
    extend::Error as E {
        E::NotOpenEnded(_) => hints::open_ended();
        E::OtherRun { .. } => hints::id_of_run();
    }
    steer::Error as E {
        E::Sealed(run) => hints::verify(run);
        E::Red { run, item } => hints::red_again(format_args!("{run}/{item}"));
        E::Lacking { run, on, .. } => hints::without_product(run, on);
        E::Blocked { run, on, .. } => hints::retry(format_args!("{run}/{on}"));
        E::NotSettled { run, .. } => hints::run_to_close(run);
    }
    coordinate::Error as E {
        E::TooMany { count, .. } => hints::max_items(count);
    }
}

pub(super) fn damaged(error: &coordinate::Error) -> Option<Failure> {
    let is_damaged = matches!(error, coordinate::Error::Document(Unreadable::Damaged(..)));
    is_damaged.then(|| Failure::from_error("altered", error).hint(hints::verify_all()))
}
