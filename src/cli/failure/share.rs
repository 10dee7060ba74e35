//! Failures of sharing.

use git_handoff::git::{remote, scratch_repo};
use git_handoff::model::{format, hints};
use git_handoff::repository::shown;
use git_handoff::share::{How, Kind, bundle, fetch, push};
use git_handoff::verify::BundleError;

use super::super::share::fetched;
use super::{Failure, refusal};

/// The remote git's message about a locked ref.
const LOCKED: &str = "cannot lock ref";

/// git's message about single refs to a remote with `mirror` set.
const MIRROR: &str = "--mirror can't be combined with refspecs";

/// git's message about push options that the remote does not support.
const NO_PUSH_OPTIONS: &str = "the receiving end does not support push options";

impl Failure {
    /// Creates the failure of a push, with a hint.
    pub(crate) fn of_push(error: push::Error, request: &push::Request) -> Self {
        let (to, names) = (&request.remote.given, request.asked.names());
        if matches!(&error, push::Error::Declined { said, .. } if said.contains(LOCKED)) {
            return Self::from(error).hint(hints::push_again(to, names)).race();
        }
        let outside = request.space.folder() == format::REFS;
        let hint = match &error {
            push::Error::Diverged(diverged) => {
                let chain = diverged.iter().find(|one| matches!(one.place.kind, Kind::Run | Kind::Thread));
                chain.or(diverged.first()).map(|one| match one.place.kind {
                    Kind::Run if one.how == How::Another => hints::rename_and_delete(&one.place.name),
                    Kind::Run => hints::fetch_and_verify(to, &one.place.name, fetched(&request.remote, &one.place)),
                    Kind::Thread => {
                        hints::fetch_and_verify_thread(to, &one.place.name, fetched(&request.remote, &one.place))
                    }
                    Kind::Log => hints::verify_logs(),
                    Kind::Archive | Kind::Transcripts | Kind::Stamps | Kind::ThreadStamps => hints::fetch(to),
                })
            }
            push::Error::Declined { answers, said } => Some(refusal::of_declined(request, answers, said)),
            push::Error::ReadBack { .. } if outside => Some(hints::hidden(to, names)),
            push::Error::Remote(remote::Error::Forbidden(_, why)) => {
                let by_right = refusal::of_push(request, &why.to_string());
                let otherwise = || if outside { hints::forbidden(to, names) } else { hints::bundle() };
                Some(by_right.unwrap_or_else(otherwise))
            }
            push::Error::Remote(remote::Error::Failed(_, why)) => refusal::of_push(request, &why.to_string()),
            _ => None,
        };
        Self::from(error).hint_if(hint)
    }
}

impl From<scratch_repo::Error> for Failure {
    fn from(error: scratch_repo::Error) -> Self {
        Self::of("scratch", &error)
    }
}

impl From<remote::Error> for Failure {
    fn from(error: remote::Error) -> Self {
        let failure = Self::of("remote", &error);
        match &error {
            remote::Error::Unknown(_) => Self { code: "unknown-remote", ..failure },
            remote::Error::Forbidden(..) => Self { code: "forbidden", ..failure },
            remote::Error::TooLarge(..) => Self { code: "too-large", ..failure }.hint(hints::fetch_less_or_raise()),
            remote::Error::Failed(to, why) if why.to_string().contains(MIRROR) => failure.hint(hints::no_mirror(to)),
            remote::Error::Failed(_, why) if why.to_string().contains(NO_PUSH_OPTIONS) => {
                failure.hint(hints::no_push_option())
            }
            remote::Error::NotGit(..) => Self { code: "not-git", ..failure },
            remote::Error::Failed(..) | remote::Error::Unsound(..) => failure.hint_if(refusal::of_remote(&error)),
            remote::Error::Quarantine(_) | remote::Error::Outgoing(_) | remote::Error::Git(_) => failure,
        }
    }
}

impl From<push::Error> for Failure {
    fn from(error: push::Error) -> Self {
        match error {
            push::Error::Unknown(_) => Self::of("unknown-run", &error).hint(hints::runs_and_threads()),
            push::Error::Diverged(_) => Self::of("diverged", &error),
            push::Error::Declined { ref said, .. } => {
                let causes = said.lines().filter_map(|line| line.strip_prefix("remote: "));
                let causes = causes.map(|line| line.trim_end().to_owned()).collect();
                Self { causes, ..Self::of("declined", &error) }
            }
            push::Error::Overtaken(inner, _) => (*inner).into(),
            push::Error::Blocked(_) => Self::of("unsound", &error),
            push::Error::ReadBack { .. } => Self::of("read-back", &error),
            push::Error::Secret(inner) => inner.into(),
            push::Error::Git(inner) => inner.into(),
            push::Error::Head(_) => Self::of("git", &error),
            push::Error::Remote(inner) => inner.into(),
            push::Error::Ref(inner) => inner.into(),
            push::Error::Log(inner) => inner.into(),
            push::Error::Store(inner) => inner.into(),
        }
    }
}

impl From<fetch::Error> for Failure {
    fn from(error: fetch::Error) -> Self {
        match error {
            fetch::Error::Unknown(..) => Self::of("unknown-run", &error),
            fetch::Error::Vanished(ref vanished) => {
                let exit = if vanished.seen { 3 } else { 1 };
                Self { exit, ..Self::of("vanished", &error) }
            }
            fetch::Error::Shown(inner) => inner.into(),
            fetch::Error::Logs(inner) => inner.into(),
            fetch::Error::TooMany(_) => Self::of("too-many", &error).hint(hints::fetch_less()),
            fetch::Error::Remote(inner) => inner.into(),
            fetch::Error::Ref(inner) => inner.into(),
            fetch::Error::Archive(_) => Self::of("archive", &error),
            fetch::Error::Store(inner) => inner.into(),
        }
    }
}

impl From<shown::Error> for Failure {
    fn from(error: shown::Error) -> Self {
        let failure = Self::of("remote-record", &error);
        match error {
            // This loses only the record of what was seen, no fetched data.
            shown::Error::Read(path, _) | shown::Error::Bad(path, _) => {
                failure.hint(hints::forget_seen(path.display()))
            }
            shown::Error::Ref(inner) => inner.into(),
            shown::Error::Write(..) => failure,
        }
    }
}

impl From<bundle::Error> for Failure {
    fn from(error: bundle::Error) -> Self {
        match error {
            bundle::Error::ScratchRepo(inner) => inner.into(),
            bundle::Error::Ref(inner) => inner.into(),
            bundle::Error::Write(_) => Self::of("bundle", &error).hint(hints::fetch_content()),
            _ => Self::of("bundle", &error),
        }
    }
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        match error {
            BundleError::Missing(_) => Self::of("unknown-run", &error),
            BundleError::Empty => Self::of("no-runs", &error),
            BundleError::Pack(_, ref why) => {
                let hint = refusal::of_check(&why.to_string());
                Self::of("bundle", &error).hint_if(hint)
            }
            BundleError::ScratchRepo(inner) => inner.into(),
            BundleError::Ref(inner) => inner.into(),
            BundleError::Logs(inner) => inner.into(),
            _ => Self::of("bundle", &error),
        }
    }
}
