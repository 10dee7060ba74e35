//! The anchor `git`: the logs, fast-forwarded along first parents into another repository, and compared with what that
//! repository shows now.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use super::{Error, Means, Published};
use crate::git::refs;
use crate::git::remote::{self, Depth, Remote};
use crate::git::scratch::Scratch;
use crate::model::digest::Oid;
use crate::model::log_name::LogName;
use crate::share::push::{self, Request};
use crate::share::{Kind, Place, Space};
use crate::verify::{Answer, Logs, Question};

/// Where our own logs are.
const LOGS: &str = "refs/handoff/logs/";

/// Another repository that holds the logs.
pub struct GitPlace {
    url: String,
    space: Space,
    seen: RefCell<Option<Seen>>,
}

/// What was seen of the repository in the life of this program.
struct Seen {
    heads: BTreeMap<LogName, Oid>,
    scratch: Scratch,
    logs: BTreeMap<LogName, Rc<Logs>>,
}

impl GitPlace {
    pub(super) fn new(url: String, space: Space) -> Self {
        Self { url, space, seen: RefCell::new(None) }
    }

    pub(super) fn shown(&self) -> String {
        remote::without_password(&self.url)
    }

    pub(super) fn probe(&self, means: &Means) -> Result<(), Error> {
        let path = Path::new(self.url.strip_prefix("file://").unwrap_or(&self.url));
        if let Ok(path) = path.canonicalize() {
            let store = &means.store;
            let own = [Some(store.git_dir()), Some(store.common_dir()), store.work_dir()];
            if own.into_iter().flatten().any(|dir| dir.canonicalize().is_ok_and(|dir| dir == path)) {
                return Err(Error::Itself(self.shown()));
            }
        }
        self.heads(means).map(drop)
    }

    /// Returns the heads of the logs.
    fn heads(&self, means: &Means) -> Result<BTreeMap<LogName, Oid>, Error> {
        let listed = remote::list(&means.store, &means.reach, &self.url, &self.space.pattern())?;
        let log = |(oid, name): (Oid, String)| {
            let place = Place::parse(name.strip_prefix(self.space.folder())?)?;
            (place.kind == Kind::Log).then_some((LogName::parse(&place.name)?, oid))
        };
        Ok(listed.into_iter().filter_map(log).collect())
    }

    pub(super) fn ask(&self, means: &Means, question: &Question<'_>) -> Result<Answer, Error> {
        let mut seen = self.seen.borrow_mut();
        let seen = match &mut *seen {
            Some(seen) => seen,
            none => {
                let scratch = Scratch::new(question.object_format)?;
                scratch.borrow_config(&means.store)?;
                none.insert(Seen { heads: self.heads(means)?, scratch, logs: BTreeMap::new() })
            }
        };
        let mut logs = Vec::new();
        for (log, head) in seen.heads.iter().filter(|(log, _)| question.writers.iter().any(|key| key == log.key())) {
            if !seen.logs.contains_key(log) {
                let scratch = seen.scratch.store();
                let _kept = remote::fetch(scratch, &means.reach, &self.url, &[*head], Depth::History)?;
                let name = log.reference();
                refs::create(scratch, &name, *head)?;
                seen.logs.insert(log.clone(), Rc::new(Logs::elsewhere(scratch, name, *head)));
            }
            logs.extend(seen.logs.get(log).cloned());
        }
        Ok(Answer::Logs(logs))
    }

    pub(super) fn publish(&self, means: &Means) -> Result<Vec<Published>, Error> {
        let request = Request {
            remote: Remote { given: self.url.clone(), name: String::new(), configured: false },
            names: Vec::new(),
            transcripts: false,
            space: self.space.clone(),
            dry_run: false,
        };
        // What is there is compared with ours, which it must be here for; nothing else is made of it.
        let own = refs::list(&means.store, LOGS)?;
        let own: BTreeSet<LogName> =
            own.iter().filter_map(|(name, _)| LogName::decode(name.strip_prefix(LOGS)?)).collect();
        let ours = |log: &LogName| own.iter().any(|own| own.key() == log.key());
        let heads = self.heads(means)?.into_iter().filter(|(log, _)| ours(log)).map(|(_, head)| head);
        let absent: Vec<Oid> = heads.filter(|head| !means.store.contains(*head)).collect();
        let fetch = || remote::fetch(&means.store, &means.reach, &self.url, &absent, Depth::History);
        let _kept = (!absent.is_empty()).then(fetch).transpose()?;
        let moved = push::push_logs(&means.store, &means.reach, &request)?;
        let published =
            |moved: push::Moved| Published { kind: "log", name: moved.place.name, status: moved.status.word() };
        Ok(moved.into_iter().map(published).collect())
    }
}
