//! The anchor `git`: the logs, fast-forwarded along first parents into another repository, and compared with what that
//! repository shows now.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use crate::git::apart::Apart;
use crate::git::refs;
use crate::git::remote::{self, Depth, Reach, Remote};
use crate::git::scratch::Scratch;
use crate::model::digest::Oid;
use crate::model::log_name::LogName;
use crate::share::push::{self, Request};
use crate::share::{Kind, Place, Space};
use crate::verify::{Answer, Logs, Question};

use super::{Error, Holdings, Means, Published};

/// Another repository that holds the logs.
pub struct GitPlace {
    url: String,
    space: Space,
    seen: RefCell<Option<Seen>>,
    apart: OnceCell<Arc<Apart>>,
}

/// What was seen of the repository in the life of this program.
struct Seen {
    heads: BTreeMap<LogName, Oid>,
    scratch: Scratch,
    logs: BTreeMap<LogName, Rc<Logs>>,
}

impl GitPlace {
    pub(super) fn new(url: String, space: Space) -> Self {
        Self { url, space, seen: RefCell::new(None), apart: OnceCell::new() }
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

    /// Returns how the repository is reached: by nothing that a file inside the work tree says.
    fn reach(&self, means: &Means) -> Result<Reach, Error> {
        if self.apart.get().is_none() {
            let made = Apart::new(means.store.object_format(), &means.settings)?;
            self.apart.get_or_init(|| Arc::new(made));
        }
        Ok(Reach { apart: self.apart.get().cloned(), ..means.reach.clone() })
    }

    /// Returns the heads of the logs.
    fn heads(&self, means: &Means) -> Result<BTreeMap<LogName, Oid>, Error> {
        let listed = remote::list(&means.store, &self.reach(means)?, &self.url, &self.space.pattern())?;
        let log = |(oid, name): (Oid, String)| {
            let place = Place::parse(name.strip_prefix(self.space.folder())?)?;
            (place.kind == Kind::Log).then_some((LogName::parse(&place.name)?, oid))
        };
        Ok(listed.into_iter().filter_map(log).collect())
    }

    pub(super) fn ask(&self, means: &Means, question: &Question<'_>) -> Result<Answer, Error> {
        let keys = question.keys();
        Ok(Answer::Logs(self.logs(means, question.object_format, &|key| keys.contains(key))?))
    }

    /// Returns what the logs of a key hold, and what is wrong with those that are not sound to their end.
    pub(super) fn holdings(&self, means: &Means, key: &str) -> Result<Holdings, Error> {
        let mut holdings = Holdings::default();
        for logs in self.logs(means, means.store.object_format(), &|of| of == key)? {
            holdings.runs.extend(logs.held(Some(key)).into_keys());
            holdings.complaints.extend(logs.complaints(Some(key)));
        }
        Ok(holdings)
    }

    /// Returns the logs of some keys, each fetched and read once.
    fn logs(&self, means: &Means, format: &str, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Rc<Logs>>, Error> {
        let mut seen = self.seen.borrow_mut();
        let seen = match &mut *seen {
            Some(seen) => seen,
            none => {
                let heads = self.heads(means)?;
                none.insert(Seen { heads, scratch: Scratch::new(format)?, logs: BTreeMap::new() })
            }
        };
        let of_wanted = || seen.heads.iter().filter(|(log, _)| wanted(log.key()));
        let new: Vec<(LogName, Oid)> = of_wanted()
            .filter(|(log, _)| !seen.logs.contains_key(log))
            .map(|(log, head)| (log.clone(), *head))
            .collect();
        if !new.is_empty() {
            let scratch = seen.scratch.store();
            let heads: Vec<Oid> = new.iter().map(|(_, head)| *head).collect();
            let _kept = remote::fetch(scratch, &self.reach(means)?, &self.url, &heads, Depth::History)?;
            for (log, head) in new {
                let name = log.reference();
                refs::create(scratch, &name, head)?;
                seen.logs.insert(log, Rc::new(Logs::elsewhere(scratch, name, head)));
            }
        }
        Ok(of_wanted().filter_map(|(log, _)| seen.logs.get(log).cloned()).collect())
    }

    pub(super) fn publish(&self, means: &Means) -> Result<Vec<Published>, Error> {
        let request = Request {
            remote: Remote { given: self.url.clone(), name: String::new(), configured: false },
            names: Vec::new(),
            transcripts: false,
            space: self.space.clone(),
            dry_run: false,
        };
        let pushed = push::push_logs(&means.store, &self.reach(means)?, &request)?;
        if let Some(rival) = pushed.left_out().next() {
            return Err(push::Error::Blocked(Box::new(rival.clone())).into());
        }
        let published =
            |moved: push::Moved| Published { kind: "log", name: moved.place.name, status: moved.status.word() };
        Ok(pushed.moved.into_iter().map(published).collect())
    }
}
