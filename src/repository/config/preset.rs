//! The agents of `agents.toml`: what each needs and leaves behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

/// The settings of an agent that this program knows, as `agents.toml` describes them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Its name for people.
    pub title: String,
    /// A remark for the page about agents.
    #[serde(default)]
    pub note: String,
    /// The line that registers it as a subagent.
    pub command: String,
    /// Variables with a key or a token.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Further variables that a worker gets.
    #[serde(default)]
    pub pass: Vec<String>,
    /// Variables that are set for it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Variables that are set for it if something confines it.
    #[serde(default)]
    pub confined: BTreeMap<String, String>,
    /// Additional readable paths.
    #[serde(default)]
    pub readable: Vec<PathBuf>,
    /// Additional writable paths.
    #[serde(default)]
    pub writable: Vec<PathBuf>,
    /// Paths that it leaves in a worktree, from its top, with `*` for any part of a name.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// The form in which it prints what it used.
    pub usage: Option<UsageForm>,
    /// Texts of a failure that may pass.
    #[serde(default)]
    pub later: Vec<String>,
    /// Texts of a failure that stays until a person acts.
    #[serde(default)]
    pub never: Vec<String>,
}

/// The form in which an agent prints what it used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsageForm {
    /// Claude Code's `--output-format json` and `stream-json`.
    Claude,
    /// Codex's `--json`.
    Codex,
    /// Gemini CLI's `--output-format stream-json` and `json`.
    Gemini,
    /// aider's lines for people.
    Aider,
    /// Qwen Code's `--output-format json` and `stream-json`.
    Qwen,
}

/// The known agents by name, which is also the name of the program.
pub static PRESETS: LazyLock<BTreeMap<String, Preset>> =
    LazyLock::new(|| basic_toml::from_str(include_str!("agents.toml")).expect("agents.toml is a table of presets"));

impl Preset {
    /// Returns the preset of a program by its file name.
    pub fn of_program(program: &str) -> Option<(&'static str, &'static Self)> {
        let name = Path::new(program).file_name()?.to_str()?;
        PRESETS.get_key_value(name).map(|(name, preset)| (name.as_str(), preset))
    }
}
