//! The needs of a known agent on this machine: its login by variables, files or another service.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::Environment;
use super::config::{AgentFolder, Executor, PRESETS, Preset, Service};

/// The variables of the XDG base directories, each with its default below the home directory.
pub const XDG: [(&str, &str); 4] = [
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// The most bytes of a file that is searched for a login.
const MOST_SEARCHED: u64 = 1 << 20;

/// Words of a file with settings and a login, in lower case, that tell of a login.
const LOGIN_WORDS: [&str; 3] = ["token", "logged", "login"];

/// The needs of an agent on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentNeeds {
    /// Variables with a key or a token, all of them set.
    pub keys: Vec<String>,
    /// Further variables.
    pub pass: Vec<String>,
    /// Readable paths.
    pub readable: Vec<PathBuf>,
    /// Folders and files of which it gets a private copy.
    pub private: Vec<PathBuf>,
    /// Files with its login that exist.
    pub logins: Vec<PathBuf>,
    /// Remarks for people about which of several logins counts.
    pub remarks: Vec<String>,
}

impl AgentNeeds {
    /// Returns true if the agent can log in.
    pub fn has_login(&self) -> bool {
        !self.keys.is_empty() || !self.logins.is_empty() || !self.readable.is_empty()
    }

    /// Names what the agent gets of a login.
    pub fn given(&self) -> String {
        let logins = self.logins.iter().map(|path| path.display().to_string());
        self.keys.iter().cloned().chain(logins).collect::<Vec<_>>().join(", ")
    }
}

/// A folder of an agent that the settings of an executor let workers write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFolder {
    /// The agent.
    pub agent: &'static str,
    /// The agent's name for people.
    pub title: &'static str,
    /// The folder's usual place.
    pub path: &'static Path,
}

impl fmt::Display for OpenFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(
            f,
            "workers may write {path}: what they leave there, {} runs later without a sandbox; `private = {path}` in \
             the place of `writable = {path}` gives them a copy",
            self.title
        )
    }
}

impl Environment {
    /// Returns the folders of known agents that an executor's settings let workers write.
    pub fn open_agent_folders(&self, settings: &Executor) -> impl Iterator<Item = OpenFolder> {
        let written: Vec<PathBuf> = settings.writable.iter().map(|path| self.expand(path)).collect();
        let all = PRESETS.iter().flat_map(|(agent, preset)| preset.folders.iter().map(move |it| (agent, preset, it)));
        // A folder around it does not give it: it is secret.
        let is_open = move |folder: &AgentFolder| {
            let place = self.place_of(folder);
            written.iter().any(|path| path.starts_with(&place))
        };
        all.filter(move |(.., folder)| is_open(folder)).map(|(agent, preset, folder)| OpenFolder {
            agent,
            title: &preset.title,
            path: &folder.path,
        })
    }

    /// Returns the place of an agent's folder: where its own variable or an XDG variable puts it,
    /// else the usual one.
    pub fn place_of(&self, folder: &AgentFolder) -> PathBuf {
        let own = folder.moved_to(|name| self.variable(name).map(Into::into));
        own.or_else(|| self.moved_by_xdg(&folder.path)).unwrap_or_else(|| self.expand(&folder.path))
    }

    /// Returns the place to which an XDG variable moves a path that begins with `~/`.
    fn moved_by_xdg(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix("~").ok()?;
        XDG.iter().find_map(|(name, usual)| {
            let folder = self.variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute())?;
            Some(folder.join(below.strip_prefix(usual).ok()?))
        })
    }

    /// Finds what an agent needs here, and which of several logins counts.
    pub fn agent_needs(&self, preset: &Preset) -> AgentNeeds {
        let private = preset.folders.iter().filter(|folder| self.place_of(folder).exists());
        let mut needs = AgentNeeds {
            pass: preset.pass.clone(),
            readable: preset.readable.iter().filter(|path| self.expand(path).exists()).cloned().collect(),
            private: private.map(|folder| folder.path.clone()).collect(),
            ..AgentNeeds::default()
        };
        if let Some(service) = preset.services.iter().find(|service| self.is_chosen(&service.variable)) {
            self.add_service(preset, service, &mut needs);
            return needs;
        }
        needs.logins = preset.folders.iter().flat_map(|folder| logins_in(folder, &self.place_of(folder))).collect();
        needs.keys = preset.keys.iter().filter(|key| self.variable(key).is_some()).cloned().collect();
        if needs.keys.is_empty() && needs.logins.is_empty() {
            needs.keys.extend(preset.borrowed.iter().find(|key| self.variable(key).is_some()).cloned());
        }
        self.compare(preset, &mut needs);
        needs
    }

    /// Adds remarks about logins that do not count.
    fn compare(&self, preset: &Preset, needs: &mut AgentNeeds) {
        for folder in &preset.folders {
            let (place, usual) = (self.place_of(folder), self.expand(&folder.path));
            let Some((name, _)) = folder.variable().filter(|_| place != usual) else { continue };
            if !logins_in(folder, &usual).is_empty() {
                needs.remarks.push(format!(
                    "{name} is set: {} uses the login in {}, not the one in {}",
                    preset.title,
                    place.display(),
                    usual.display()
                ));
            }
        }
        if let (Some(key), Some(login), true) = (needs.keys.first(), needs.logins.first(), preset.wins) {
            needs.remarks.push(format!("{key} is set: {} uses it, not the login in {}", preset.title, login.display()));
        }
    }

    /// Adds the login of another service in the place of the agent's own.
    fn add_service(&self, preset: &Preset, service: &Service, needs: &mut AgentNeeds) {
        let is_set = |name: &&String| self.variable(name).is_some();
        needs.keys = service.keys.iter().filter(is_set).cloned().collect();
        needs.pass.push(service.variable.clone());
        needs.pass.extend(service.pass.iter().chain(&service.files).filter(is_set).cloned());
        let files: Vec<PathBuf> =
            service.files.iter().filter_map(|name| self.variable(name)).map(PathBuf::from).collect();
        let has_none = needs.keys.is_empty() && files.is_empty();
        let usual = service.readable.iter().filter(|path| has_none && self.expand(path).exists());
        let readable: Vec<PathBuf> = files.into_iter().filter(|path| path.exists()).chain(usual.cloned()).collect();
        needs.logins.clone_from(&readable);
        needs.readable.extend(readable);
        let own: Vec<PathBuf> = preset.folders.iter().flat_map(|it| logins_in(it, &self.place_of(it))).collect();
        let own = preset.keys.iter().filter(is_set).cloned().chain(own.iter().map(|path| path.display().to_string()));
        let own: Vec<String> = own.filter(|name| !needs.keys.contains(name)).collect();
        if !own.is_empty() {
            needs.remarks.push(format!(
                "{} is set: {} logs in to {}, not with {}",
                service.variable,
                preset.title,
                service.title,
                own.join(" or ")
            ));
        }
    }

    /// Returns true if a variable that switches something on does so.
    fn is_chosen(&self, variable: &str) -> bool {
        self.variable(variable)
            .is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "0" | "false" | "no"))
    }
}

/// Returns the files with a login in an agent's folder at a place.
fn logins_in(folder: &AgentFolder, place: &Path) -> Vec<PathBuf> {
    let own = folder.login.iter().chain(&folder.checked).map(|file| place.join(file)).filter(|file| file.is_file());
    let shared = folder.shared.iter().map(|file| place.join(file)).filter(|file| tells_of_login(file));
    own.chain(shared).collect()
}

/// Returns true if a file with settings seems to hold a login too.
fn tells_of_login(file: &Path) -> bool {
    let text = fs::metadata(file).ok().filter(|meta| meta.is_file() && meta.len() <= MOST_SEARCHED);
    let text = text.and_then(|_| fs::read_to_string(file).ok()).unwrap_or_default().to_ascii_lowercase();
    LOGIN_WORDS.iter().any(|word| text.contains(word))
}
