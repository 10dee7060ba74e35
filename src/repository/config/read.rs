//! Builds the configuration from the output of `git config`.

use std::collections::BTreeMap;

use super::listed::parse_list;
use super::origin::WorkTrees;
use super::trust::{Counts, is_of_reaching};
use super::{Config, Error, Paging, Setting};
use crate::git::store::Store;
use crate::model::name::fold;

impl Config {
    /// Reads the configuration of a repository. Fails on the first invalid setting.
    pub fn read(store: &Store) -> Result<Self, Error> {
        let (config, faults) = Self::read_with_faults(store)?;
        faults.into_iter().next().map_or(Ok(config), Err)
    }

    /// Returns every invalid setting, in git's order. [`read`](Self::read) fails with the first.
    pub fn faults(store: &Store) -> Result<Vec<Error>, Error> {
        Ok(Self::read_with_faults(store)?.1)
    }

    fn read_with_faults(store: &Store) -> Result<(Self, Vec<Error>), Error> {
        let listed = store.git().args(["config", "--list", "-z", "--show-origin", "--includes"]).run();
        let listed = String::from_utf8_lossy(&listed.map_err(Error::Git)?).into_owned();
        let work_trees = WorkTrees::find(store);
        let mut reading = Reading::default();
        let mut files = BTreeMap::new();
        for setting in parse_list(&listed) {
            // Each file is checked once, however many settings it has.
            let tracked = setting
                .origin
                .as_ref()
                .is_some_and(|origin| *files.entry(origin.clone()).or_insert_with(|| work_trees.hold(origin)));
            reading.read(setting, tracked);
        }
        Ok(reading.finish())
    }
}

/// A configuration while its settings are read.
#[derive(Default)]
struct Reading {
    config: Config,
    faults: Vec<Error>,
    user: (Option<String>, Option<String>),
    user_key: Option<String>,
    is_ssh: bool,
    /// Settings in the work tree about reaching remotes, which do not count.
    silenced: Vec<String>,
    /// Settings in the work tree that count only if they are stricter than all others.
    stricter: Vec<Setting>,
}

impl Reading {
    /// Reads one setting; `tracked` means that a file inside the work tree sets it.
    fn read(&mut self, setting: Setting, tracked: bool) {
        let config = &mut self.config;
        config.outside.add(&setting);
        match Counts::for_key(&setting.key) {
            Counts::Outside if tracked => return config.ignore(&setting),
            Counts::WhereStricter if tracked => return self.stricter.push(setting),
            _ => {}
        }
        // git passes settings from its command line to its children by itself.
        if is_of_reaching(&setting.key) && setting.origin.is_some() {
            if tracked {
                self.silenced.push(setting.key.clone());
            } else {
                config.reaching.push((setting.key.clone(), setting.value.clone()));
            }
        }
        match setting.key.as_str() {
            "color.ui" | "color.handoff" | "color.pager" => config.colors.take(&setting.key, &setting.value),
            "pager.handoff" => config.paging = Paging::parse(&setting.value),
            "user.name" => self.user.0 = Some(setting.value),
            "user.email" => self.user.1 = Some(setting.value),
            "gpg.format" => self.is_ssh = setting.value == "ssh",
            "user.signingkey" => self.user_key = Some(setting.value),
            "gpg.ssh.program" => config.signing_program = Some(setting.value.into()),
            "gpg.ssh.allowedsignersfile" => config.allowed_signers = Some(setting.value.into()),
            _ => self.faults.extend(config.take(&setting, tracked).err()),
        }
    }

    /// Applies what depends on several settings.
    fn finish(self) -> (Config, Vec<Error>) {
        let Self { mut config, mut faults, user, user_key, is_ssh, silenced, stricter } = self;
        faults.extend(config.take_stricter(&stricter));
        if fold(&config.inputs) == fold(&config.outputs) {
            faults.push(Error::OneFolder(config.inputs.clone(), config.outputs.clone()));
        }
        if is_ssh && config.signing_key.is_none() {
            config.signing_key = user_key;
        }
        if !config.anchors.is_empty() {
            config.warnings.extend(silenced.iter().map(|key| {
                format!("`{key}` is ignored when an anchor is reached: a file inside the work tree sets it")
            }));
        }
        // An empty value selects the repository's own key, whatever else is configured.
        config.signing_key = config.signing_key.filter(|key| !key.is_empty());
        config.signing_program = config.signing_program.filter(|program| !program.as_os_str().is_empty());
        config.user_name.clone_from(&user.0);
        config.user = user.0.zip(user.1);
        (config, faults)
    }
}
