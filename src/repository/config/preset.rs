//! The agents of `agents.toml`: what each needs and leaves behind.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

/// The settings of an agent that this program knows, as `agents.toml` describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Preset {
    /// Its name for people.
    pub title: String,
    /// A remark for docs/how-to/configure-an-agent.md.
    pub note: String,
    /// The line that registers it as a subagent. The task is the JSON on standard input, or the
    /// file `$HANDOFF_TASK`. One argument has at most 128 KiB: a line that puts the task into one
    /// names the file instead if the task is larger.
    pub command: String,
    /// The line that prints its version.
    #[serde(rename = "versionCommand")]
    pub version_command: Option<String>,
    /// Variables with a key or a token of its own.
    pub keys: Vec<String>,
    /// Variables of other programs that it takes for a login. A worker gets the first that is set,
    /// if the agent has neither a key of its own nor a login.
    pub borrowed: Vec<String>,
    /// True if a key counts more than a login in a file.
    pub wins: bool,
    /// Further variables that a worker gets.
    pub pass: Vec<String>,
    /// Variables that are set for it.
    pub env: BTreeMap<String, String>,
    /// Variables that are set for it if something confines it.
    pub confined: BTreeMap<String, String>,
    /// Additional readable paths.
    pub readable: Vec<PathBuf>,
    /// Its folders and files in the home directory, of which each attempt gets a private copy.
    pub folders: Vec<AgentFolder>,
    /// Other services that give it its login.
    pub services: Vec<Service>,
    /// Paths that it leaves in a worktree, from its top, with `*` for any part of a name. No patch
    /// takes them or what is below them.
    pub exclude: Vec<String>,
    /// How to read the JSON objects that it prints. Each fitting rule applies, in order.
    pub messages: Vec<MessageRule>,
    /// True if it prints what it used in lines for people, as aider does.
    #[serde(rename = "printsText")]
    pub prints_text: bool,
    /// Remarks on command lines that people write for it.
    pub line: Vec<LineRule>,
    /// Texts of a failure that may pass.
    pub later: Vec<String>,
    /// Texts of a failure that stays until a person acts. The last text in the error that the agent
    /// reports decides, or else in the end of its output.
    pub never: Vec<String>,
}

/// A folder of an agent in the home directory, or a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentFolder {
    /// Its usual place, which begins with `~/`.
    pub path: PathBuf,
    /// The variable that names another place: `VARIABLE` or `VARIABLE/SUB`.
    pub moved: Option<String>,
    /// Files in it that the agent renews. They are the person's own, not a copy.
    pub login: Vec<PathBuf>,
    /// Such files in which a worker could also name programs to run: a copy, of which new bytes go
    /// back unless they add an entry of the type `wellknown`.
    pub checked: Vec<PathBuf>,
    /// Files with its settings and a login that is not renewed; they are copied too.
    pub shared: Vec<PathBuf>,
    /// The names that are copied. Everything else counts as data of sessions and begins empty.
    pub settings: BTreeSet<PathBuf>,
}

/// A service that gives an agent its login in the place of the agent's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Service {
    /// The variable that chooses it.
    pub variable: String,
    /// Its name for people.
    pub title: String,
    /// Variables with a key or a token.
    pub keys: Vec<String>,
    /// Further variables that a worker gets.
    pub pass: Vec<String>,
    /// Variables that name a file which a worker may read.
    pub files: Vec<String>,
    /// Paths that a worker may read if no key and no file is set.
    pub readable: Vec<PathBuf>,
}

/// A remark on a command line of an agent, with the words that call for it.
///
/// In two words with a space between them, the second is the value of the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LineRule {
    /// The rule is about lines with one of these words; about all lines if this is empty.
    pub with: Vec<String>,
    /// The rule is not about lines with one of these words.
    pub without: Vec<String>,
    /// The remark, as a part of a sentence.
    #[serde(rename = "says")]
    pub remark: String,
}

/// A rule for a JSON object that an agent prints. Places are JSON pointers into the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessageRule {
    /// The values by place: a text, the start of one with `*`, or empty for an absent value.
    pub when: BTreeMap<String, String>,
    /// The place of the model's name.
    pub model: Option<String>,
    /// The place of the session's name, instead of that of an earlier message.
    pub session: Option<String>,
    /// The tokens of the whole session, by the first rule whose object is there.
    pub usage: Vec<TokenRule>,
    /// The place of the price in dollars.
    pub cost: Option<String>,
    /// The place of the list of denied actions.
    pub denials: Option<String>,
    /// The places of the text of the error that such a message is.
    pub error: Vec<String>,
}

/// The places of numbers of tokens, of which those of one kind are added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenRule {
    /// The object with the numbers.
    pub at: String,
    /// True if the object has one object for each model, by its name.
    pub each: bool,
    /// True if these names replace that of an earlier message.
    pub names: bool,
    /// Tokens of the input, with those from a cache.
    pub input: Vec<String>,
    /// Tokens of the output.
    pub output: Vec<String>,
    /// Tokens of the input from a cache.
    pub cached: Vec<String>,
}

/// The known agents by name, which is also the name of the program.
pub static PRESETS: LazyLock<BTreeMap<String, Preset>> =
    LazyLock::new(|| basic_toml::from_str(include_str!("agents.toml")).expect("agents.toml is a table of presets"));

impl Preset {
    /// Returns the remarks on the arguments of a command line.
    pub fn remarks(&self, arguments: &[String]) -> Vec<&str> {
        let options: Vec<&str> = arguments.iter().map(String::as_str).take_while(|word| *word != "--").collect();
        let rules = self.line.iter().filter(|rule| rule.is_about(&options));
        rules.map(|rule| rule.remark.as_str()).collect()
    }

    /// Returns the preset of a program by its file name.
    pub fn of_program(program: &str) -> Option<(&'static str, &'static Self)> {
        let name = Path::new(program).file_name()?.to_str()?;
        PRESETS.get_key_value(name).map(|(name, preset)| (name.as_str(), preset))
    }
}

impl AgentFolder {
    /// Returns the folder of a known agent at a path that begins with `~/`.
    pub fn at(path: &Path) -> Option<&'static Self> {
        PRESETS.values().flat_map(|preset| &preset.folders).find(|folder| folder.path == path)
    }

    /// Returns the variable that moves it, and the path below the folder that this names.
    pub fn variable(&self) -> Option<(&str, &str)> {
        let moved = self.moved.as_deref()?;
        Some(moved.split_once('/').unwrap_or((moved, "")))
    }

    /// Returns the place that a variable gives it, or `None` if the variable is not set to an
    /// absolute path.
    pub fn moved_to(&self, value: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let (name, below) = self.variable()?;
        let folder = value(name).map(PathBuf::from).filter(|folder| folder.is_absolute())?;
        Some(if below.is_empty() { folder } else { folder.join(below) })
    }

    /// Returns the parts that a private copy has.
    pub fn parts(&self) -> impl Iterator<Item = &PathBuf> {
        self.settings.iter().chain(&self.shared)
    }
}

impl LineRule {
    fn is_about(&self, options: &[&str]) -> bool {
        let has = |word: &String| has_word(options, word);
        (self.with.is_empty() || self.with.iter().any(has)) && !self.without.iter().any(has)
    }
}

/// Returns true if options contain a word, or an option with a value as one word or as two.
fn has_word(options: &[&str], word: &str) -> bool {
    match word.split_once(' ') {
        Some((option, value)) => is_set_to(option, value, options),
        None => options
            .iter()
            .any(|found| found.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))),
    }
}

fn is_set_to(option: &str, value: &str, options: &[&str]) -> bool {
    let joined =
        options.iter().any(|found| found.strip_prefix(option).and_then(|rest| rest.strip_prefix('=')) == Some(value));
    joined || options.windows(2).any(|pair| pair == [option, value])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remarks(line: &str) -> usize {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let (_, preset) = Preset::of_program(&words[0]).expect("it is a known agent");
        preset.remarks(&words[1..]).len()
    }

    #[test]
    fn the_line_of_a_preset_lacks_nothing() {
        for (name, preset) in PRESETS.iter() {
            let words: Vec<String> = preset.command.split_whitespace().map(str::to_owned).collect();
            assert_eq!(preset.remarks(&words[1..]), Vec::<&str>::new(), "{name}");
        }
    }

    #[test]
    fn a_plain_line_lacks_permissions_and_a_report() {
        for line in ["claude -p x", "codex exec x", "gemini -p x", "qwen -p x"] {
            assert_eq!(remarks(line), 2, "{line}");
        }
        assert_eq!((remarks("copilot -p x"), remarks("aider -m x"), remarks("opencode run x")), (1, 1, 0));
        assert_eq!(remarks("claude -p --dangerously-skip-permissions --output-format=json x"), 0);
        assert_eq!(remarks("claude --continue -p --permission-mode acceptEdits --output-format json x"), 1);
        assert_eq!(remarks("codex exec --json --sandbox danger-full-access x"), 0);
        assert_eq!(remarks("codex exec --json -s workspace-write x"), 1);
        assert_eq!(remarks("claude -p --permission-mode plan --output-format json x"), 1);
        // The words of a prompt are no options.
        assert_eq!(remarks("claude -p -- --permission-mode acceptEdits --output-format json"), 2);
    }
}
