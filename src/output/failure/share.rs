//! Failures of sharing.

use git_handoff::git::remote;
use git_handoff::model::any_error::AnyError;
use git_handoff::model::format;
use git_handoff::model::hints;
use git_handoff::repository::remote_record;
use git_handoff::share::{Diverged, How, Kind, bundle, fetch, protected_files, push};
use git_handoff::verify::BundleError;

use super::{Failure, hint_table, refusal};

/// The remote git's message about a locked ref.
const LOCKED: &str = "cannot lock ref";

/// git's message about single refs to a remote with `mirror` set.
const MIRROR: &str = "--mirror can't be combined with refspecs";

/// git's message about push options that the remote does not support.
const NO_PUSH_OPTIONS: &str = "the receiving end does not support push options";

hint_table! {
    remote::Error as E {
        E::TooLarge(..) => hints::fetch_less_or_raise();
        E::Failed(to, why) if why.to_string().contains(MIRROR) => hints::no_mirror(to);
        E::Failed(_, why) if why.to_string().contains(NO_PUSH_OPTIONS) => hints::no_push_option();
    } else error => refusal::of_remote(error);
    push::Error as E {
        E::Unknown(_) => hints::runs_and_threads();
    }
    fetch::Error as E {
        E::TooMany(_) => hints::fetch_less();
    }
    remote_record::Error as E {
        // This loses only the record of what was seen, no fetched data.
        E::Read(path, _) | E::Bad(path, _) => hints::forget_seen(path.display());
    }
    bundle::Error as E {
        E::Write(_) => hints::fetch_content();
    }
    BundleError as E {
        E::Pack(_, why) => refusal::of_check(&why.to_string());
    }
}

impl Failure {
    /// Creates the failure of a push, with a hint.
    pub(crate) fn of_push(error: AnyError, request: &push::Request) -> Self {
        let (to, names) = (&request.remote.given, request.selection.names());
        if matches!(error.downcast_ref(), Some(push::Error::Declined { messages, .. }) if messages.contains(LOCKED)) {
            return Self::from(error).hint(hints::push_again(to, names)).race();
        }
        let outside = request.space.folder() == format::REFS;
        let of_remote = || match error.downcast_ref()? {
            remote::Error::Forbidden(_, why) => {
                let by_right = refusal::of_push(request, &why.to_string());
                Some(by_right.unwrap_or_else(|| if outside { hints::forbidden(to, names) } else { hints::bundle() }))
            }
            remote::Error::Failed(_, why) => refusal::of_push(request, &why.to_string()),
            _ => None,
        };
        let hint = match error.downcast_ref() {
            Some(push::Error::Diverged(diverged)) => {
                let chain = diverged.iter().find(|one| matches!(one.place.kind, Kind::Run | Kind::Thread));
                chain.or(diverged.first()).map(|one| match one.place.kind {
                    Kind::Run if one.how == How::Another => hints::rename_and_delete(&one.place.name),
                    Kind::Run if one.is_driven_twice() => hints::keep_one(&one.place.name, to),
                    Kind::Run => hints::fetch_and_verify(to, &one.place.name, request.remote.name_of(&one.place)),
                    Kind::Thread => {
                        hints::fetch_and_verify_thread(to, &one.place.name, request.remote.name_of(&one.place))
                    }
                    Kind::Log => hints::verify_logs(),
                    Kind::Archive | Kind::Transcripts | Kind::Stamps | Kind::ThreadStamps => hints::fetch(to),
                })
            }
            Some(push::Error::Declined { answers, messages }) => Some(refusal::of_declined(request, answers, messages)),
            Some(push::Error::ReadBack { .. }) if outside => Some(hints::hidden(to, names)),
            _ => of_remote(),
        };
        Self::from(error).hint_if(hint)
    }
}

pub(super) fn push(error: &push::Error) -> Option<Failure> {
    match error {
        push::Error::Diverged(diverged) if diverged.iter().any(Diverged::is_driven_twice) => {
            Some(Failure::from_error("driven-twice", error))
        }
        push::Error::Declined { messages, .. } => {
            let causes = messages.lines().filter_map(|line| line.strip_prefix("remote: "));
            let causes = causes.map(|line| line.trim_end().to_owned()).collect();
            Some(Failure { causes, ..Failure::from_error("declined", error) })
        }
        _ => None,
    }
}

pub(super) fn vanished(error: &fetch::Error) -> Option<Failure> {
    let fetch::Error::Vanished(vanished) = error else { return None };
    vanished.was_shown.then(|| Failure { exit: 3, ..Failure::from_error("vanished", error) })
}

pub(super) fn protected(error: &bundle::Error) -> Option<Failure> {
    let bundle::Error::Protected(inner) = error else { return None };
    let hint = match inner {
        protected_files::Error::NoBase { base, .. } => hints::fetch_base(base),
        protected_files::Error::NoFile { .. } => hints::fetch_all_files(),
        _ => return None,
    };
    Some(Failure::from_error("no-base", error).hint(hint))
}
