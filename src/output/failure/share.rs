//! Failures of sharing.

use git_handoff::git::remote;
use git_handoff::model::any_error::AnyError;
use git_handoff::model::{format, hints};
use git_handoff::repository::shown;
use git_handoff::share::{Diverged, How, Kind, bundle, fetch, protected_files, push};
use git_handoff::verify::BundleError;

use super::{Failure, refusal};

/// The remote git's message about a locked ref.
const LOCKED: &str = "cannot lock ref";

/// git's message about single refs to a remote with `mirror` set.
const MIRROR: &str = "--mirror can't be combined with refspecs";

/// git's message about push options that the remote does not support.
const NO_PUSH_OPTIONS: &str = "the receiving end does not support push options";

impl Failure {
    /// Creates the failure of a push, with a hint.
    pub(crate) fn of_push(error: AnyError, request: &push::Request) -> Self {
        let (to, names) = (&request.remote.given, request.asked.names());
        if matches!(error.downcast_ref(), Some(push::Error::Declined { said, .. }) if said.contains(LOCKED)) {
            return Self::from(error).hint(hints::push_again(to, names)).race();
        }
        let outside = request.space.folder() == format::REFS;
        let of_remote = || match error.downcast_ref()? {
            remote::Error::Forbidden(_, why) => {
                let by_right = refusal::of_push(request, &why.to_string());
                let otherwise = || if outside { hints::forbidden(to, names) } else { hints::bundle() };
                Some(by_right.unwrap_or_else(otherwise))
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
            Some(push::Error::Declined { answers, said }) => Some(refusal::of_declined(request, answers, said)),
            Some(push::Error::ReadBack { .. }) if outside => Some(hints::hidden(to, names)),
            _ => of_remote(),
        };
        Self::from(error).hint_if(hint)
    }
}

pub(super) fn remote(error: &remote::Error) -> Failure {
    let failure = Failure::of("remote", error);
    match error {
        remote::Error::Unknown(_) => Failure { code: "unknown-remote", ..failure },
        remote::Error::Forbidden(..) => Failure { code: "forbidden", ..failure },
        remote::Error::TooLarge(..) => Failure { code: "too-large", ..failure }.hint(hints::fetch_less_or_raise()),
        remote::Error::Failed(to, why) if why.to_string().contains(MIRROR) => failure.hint(hints::no_mirror(to)),
        remote::Error::Failed(_, why) if why.to_string().contains(NO_PUSH_OPTIONS) => {
            failure.hint(hints::no_push_option())
        }
        remote::Error::NotGit(..) => Failure { code: "not-git", ..failure },
        remote::Error::Failed(..) | remote::Error::Unsound(..) => failure.hint_if(refusal::of_remote(error)),
        remote::Error::Quarantine(_) | remote::Error::Outgoing(_) | remote::Error::Git(_) => failure,
    }
}

pub(super) fn push(error: &push::Error) -> Option<Failure> {
    Some(match error {
        push::Error::Unknown(_) => Failure::of("unknown-run", error).hint(hints::runs_and_threads()),
        push::Error::Diverged(diverged) if diverged.iter().any(Diverged::is_driven_twice) => {
            Failure::of("driven-twice", error)
        }
        push::Error::Diverged(_) => Failure::of("diverged", error),
        push::Error::Record(_) => Failure::of("io", error),
        push::Error::Declined { said, .. } => {
            let causes = said.lines().filter_map(|line| line.strip_prefix("remote: "));
            let causes = causes.map(|line| line.trim_end().to_owned()).collect();
            Failure { causes, ..Failure::of("declined", error) }
        }
        push::Error::Blocked(_) => Failure::of("unsound", error),
        push::Error::ReadBack { .. } => Failure::of("read-back", error),
        push::Error::Head(_) => Failure::of("git", error),
        push::Error::Overtaken(..) => return None,
    })
}

pub(super) fn fetch(error: &fetch::Error) -> Failure {
    match error {
        fetch::Error::Unknown(..) => Failure::of("unknown-run", error),
        fetch::Error::Vanished(vanished) => {
            let exit = if vanished.seen { 3 } else { 1 };
            Failure { exit, ..Failure::of("vanished", error) }
        }
        fetch::Error::TooMany(_) => Failure::of("too-many", error).hint(hints::fetch_less()),
        fetch::Error::Archive(_) => Failure::of("archive", error),
    }
}

pub(super) fn shown(error: &shown::Error) -> Option<Failure> {
    let failure = Failure::of("remote-record", error);
    Some(match error {
        // This loses only the record of what was seen, no fetched data.
        shown::Error::Read(path, _) | shown::Error::Bad(path, _) => failure.hint(hints::forget_seen(path.display())),
        shown::Error::Write(..) => failure,
        shown::Error::Ref(_) => return None,
    })
}

pub(super) fn bundle(error: &bundle::Error) -> Option<Failure> {
    Some(match error {
        bundle::Error::ScratchRepo(_) | bundle::Error::Ref(_) => return None,
        bundle::Error::Protected(protected_files::Error::NoBase { base, .. }) => {
            Failure::of("no-base", error).hint(hints::fetch_base(base))
        }
        bundle::Error::Protected(protected_files::Error::NoFile { .. }) => {
            Failure::of("no-base", error).hint(hints::fetch_all_files())
        }
        bundle::Error::Write(_) => Failure::of("bundle", error).hint(hints::fetch_content()),
        _ => Failure::of("bundle", error),
    })
}

pub(super) fn bundle_error(error: &BundleError) -> Option<Failure> {
    Some(match error {
        BundleError::Missing(_) => Failure::of("unknown-run", error),
        BundleError::Empty => Failure::of("no-runs", error),
        BundleError::Pack(_, why) => {
            let hint = refusal::of_check(&why.to_string());
            Failure::of("bundle", error).hint_if(hint)
        }
        BundleError::ScratchRepo(_) | BundleError::Ref(_) | BundleError::Store(_) | BundleError::Logs(_) => {
            return None;
        }
        _ => Failure::of("bundle", error),
    })
}
