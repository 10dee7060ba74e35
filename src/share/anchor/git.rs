//! The anchor `git`: logs, fast-forwarded into another repository, and compared with that
//! repository's present refs.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::git::isolated_config::IsolatedConfig;
use crate::git::refs;
use crate::git::remote::{self, Depth, Reach, Remote, Remotes};
use crate::git::scratch_repo::ScratchRepo;
use crate::model::any_error::AnyError;
use crate::model::credential::gate::Gate;
use crate::model::digest::Oid;
use crate::model::entry::Subject;
use crate::model::log_name::LogName;
use crate::repository::Repository;
use crate::share::push::{self, Request, Selection};
use crate::share::{Kind, Place, Space};
use crate::verify::{Answer, Guarantee, Logs, Question, ThreadAnswer, ThreadQuestion};

use super::kind::{AnchorAnswer, AnchorKind, Evidence, Holdings, Published, Sealing, Unsure};
use super::settings::{SettingError, Settings};
use super::{Error, Means};

/// A repository with logs.
pub(super) struct GitPlace {
    url: String,
    space: Space,
    cache: RefCell<Option<Seen>>,
    isolated_config: OnceCell<Arc<IsolatedConfig>>,
}

/// The refs and logs read so far.
struct Seen {
    heads: BTreeMap<LogName, Oid>,
    scratch: ScratchRepo,
    logs: BTreeMap<LogName, Rc<Logs>>,
}

impl GitPlace {
    /// Parses the settings.
    pub(super) fn read(settings: &mut Settings<'_>) -> Result<Self, SettingError> {
        let url = settings.required("url")?.to_owned();
        let space = Space::new(settings.take("branches"))
            .ok_or_else(|| settings.bad("branches", "cannot begin the name of a branch"))?;
        Ok(Self { url, space, cache: RefCell::new(None), isolated_config: OnceCell::new() })
    }

    /// Replaces the name of a remote, which may later mean another place, by its URL; ignores files
    /// inside the work tree.
    pub(super) fn settle(repository: &Repository, settings: &mut BTreeMap<String, String>) -> Result<(), AnyError> {
        let Some(url) = settings.get_mut("url") else { return Ok(()) };
        let store = &repository.store;
        let config = IsolatedConfig::new(store.object_format(), &repository.config.reaching)?;
        let remote = Remotes::read_isolated(store, &config)?.find(url)?;
        *url = remote::push_destination(store, &config, &remote)?;
        Ok(())
    }
}

impl AnchorKind for GitPlace {
    fn kind(&self) -> &'static str {
        "git"
    }

    fn address(&self) -> String {
        remote::without_password(&self.url)
    }

    /// Only the verifier can know whether the host prevents rewriting.
    fn claims(&self) -> Option<Guarantee> {
        Some(Guarantee::External)
    }

    fn ask(&self, means: &Means, within: Duration, question: &Question<'_>) -> Result<AnchorAnswer, AnyError> {
        let keys = question.keys();
        Ok(Answer::Logs(self.logs(means, within, question.object_format, &|key| keys.contains(key))?).into())
    }

    fn ask_thread(
        &self,
        means: &Means,
        within: Duration,
        question: &ThreadQuestion<'_>,
    ) -> Result<ThreadAnswer, AnyError> {
        let mut answer = ThreadAnswer::default();
        for logs in self.logs(means, within, question.store.object_format(), &|key| key == question.owner)? {
            let ThreadAnswer { statements, complaints, .. } = logs.statements(question.thread, question.owner);
            answer.statements.extend(statements);
            answer.complaints.extend(complaints);
        }
        Ok(answer)
    }

    /// Returns the runs and threads in the logs of a key, and complaints about invalid logs.
    fn holdings(&self, means: &Means, within: Duration, key: &str) -> Result<Holdings, AnyError> {
        let mut holdings = Holdings::default();
        for logs in self.logs(means, within, means.store.object_format(), &|of| of == key)? {
            holdings.runs.extend(logs.recorded_runs(Some(key)).into_keys());
            holdings.threads.extend(logs.threads_of(key).into_keys());
            holdings.complaints.extend(logs.complaints(Some(key)));
        }
        Ok(holdings)
    }

    fn probe(&self, means: &Means, within: Duration) -> Result<(), AnyError> {
        let path = Path::new(self.url.strip_prefix("file://").unwrap_or(&self.url));
        if let Ok(path) = path.canonicalize() {
            let store = &means.store;
            let own = [Some(store.git_dir()), Some(store.common_dir()), store.work_dir()];
            if own.into_iter().flatten().any(|dir| dir.canonicalize().is_ok_and(|dir| dir == path)) {
                return Err(Error::Itself(self.address()).into());
            }
        }
        self.heads(means, within).map(drop)
    }

    fn publish(
        &self,
        means: &Means,
        within: Duration,
        evidence: &Evidence,
        _: Unsure<'_>,
    ) -> Result<Vec<Published>, AnyError> {
        let Evidence { sealings, threads } = evidence;
        self.refuse_others(means, within, sealings)?;
        let request = Request {
            remote: Remote { given: self.url.clone(), name: String::new(), configured: false },
            selection: Selection::Named(Vec::new()),
            threads_only: false,
            transcripts: false,
            space: self.space.clone(),
            dry_run: false,
            // A log has no free text.
            gate: Gate::default(),
        };
        let runs = sealings.iter().map(|sealing| Subject::Run(sealing.run.clone()));
        let subjects = runs.chain(threads.iter().map(|tip| Subject::Thread(tip.thread.clone()))).collect();
        let reach = self.reach(means, within)?;
        let pushed =
            push::push_logs(&means.store, &reach, &request, means.writer.as_ref(), subjects).map_err(Error::Push)?;
        // Forgets the earlier refs.
        self.cache.take();
        if let Some(rival) = pushed.left_out().next() {
            return Err(Error::Push(push::Error::Blocked(Box::new(rival.clone())).into()).into());
        }
        let published =
            |moved: push::Moved| Published { kind: "log", name: moved.place.name, status: moved.status.word() };
        Ok(pushed.moved.into_iter().map(published).collect())
    }
}

impl GitPlace {
    /// Returns how to reach the repository: without settings from the work tree, and without
    /// prompts.
    fn reach(&self, means: &Means, within: Duration) -> Result<Reach, AnyError> {
        if self.isolated_config.get().is_none() {
            let config = IsolatedConfig::new(means.store.object_format(), &means.settings)?;
            self.isolated_config.get_or_init(|| Arc::new(config));
        }
        let isolated_config = self.isolated_config.get().cloned();
        Ok(Reach { isolated_config, within: Some(within), prompt: false, ..means.reach.clone() })
    }

    /// Fails if a log of the same key at the anchor has another seal of a run.
    ///
    /// Logs have distinct names, so the two would otherwise coexist.
    fn refuse_others(&self, means: &Means, within: Duration, sealings: &[Sealing]) -> Result<(), AnyError> {
        let is_of_key = |key: &str| sealings.iter().any(|sealing| sealing.fingerprint == key);
        let there = match self.logs(means, within, means.store.object_format(), &is_of_key) {
            // An invalid log states nothing.
            Err(error) if matches!(error.downcast_ref(), Some(remote::Error::Unsound(..))) => Vec::new(),
            logs => logs?,
        };
        for Sealing { run, seal, .. } in sealings {
            let mut roots = there.iter().flat_map(|logs| logs.roots(run));
            if let Some(stored) = roots.find(|root| *root != seal.root) {
                return Err(Error::Differs { run: run.clone(), stored, ours: seal.root }.into());
            }
        }
        Ok(())
    }

    /// Returns the heads of the logs.
    fn heads(&self, means: &Means, within: Duration) -> Result<BTreeMap<LogName, Oid>, AnyError> {
        let listed = remote::list(&means.store, &self.reach(means, within)?, &self.url, &self.space.pattern())?;
        Ok(listed
            .into_iter()
            .filter_map(|(oid, name)| {
                let place = Place::parse(name.strip_prefix(self.space.folder())?)?;
                (place.kind == Kind::Log).then_some((LogName::parse(&place.name)?, oid))
            })
            .collect())
    }

    /// Returns the logs of some keys, each fetched and read once.
    fn logs(
        &self,
        means: &Means,
        within: Duration,
        format: &str,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Rc<Logs>>, AnyError> {
        let mut slot = self.cache.borrow_mut();
        let cache = match &mut *slot {
            Some(cache) => cache,
            none => {
                let heads = self.heads(means, within)?;
                none.insert(Seen { heads, scratch: ScratchRepo::new(format)?, logs: BTreeMap::new() })
            }
        };
        let of_wanted = || cache.heads.iter().filter(|(log, _)| is_wanted(log.key()));
        let new: Vec<(LogName, Oid)> = of_wanted()
            .filter(|(log, _)| !cache.logs.contains_key(log))
            .map(|(log, head)| (log.clone(), *head))
            .collect();
        if !new.is_empty() {
            let scratch = cache.scratch.store();
            let heads: Vec<Oid> = new.iter().map(|(_, head)| *head).collect();
            let _kept = remote::fetch(scratch, &self.reach(means, within)?, &self.url, &heads, Depth::History)?;
            for (log, head) in new {
                let name = log.reference();
                refs::create(scratch, &name, head)?;
                cache.logs.insert(log, Rc::new(Logs::elsewhere(scratch, name, head)));
            }
        }
        Ok(of_wanted().filter_map(|(log, _)| cache.logs.get(log).cloned()).collect())
    }
}
