//! The built-in executors. All that sets one apart from an executor that settings register is here,
//! except for the driver's code of `dispatch`, `approval` and `claimed`.

use serde_json::Value;

use super::{AGENT, APPROVERS, CHECK, COMMAND, COMMIT, DIRECTORY, ENV, STDIN};
use crate::model::words::words;

words! {
    name
    /// A built-in executor.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BuiltIn {
        /// Runs `inputs.command`.
        Command = "command",
        /// Runs the subagent that `inputs.subagent` names.
        Dispatch = "dispatch",
        /// Runs nothing: a person decides.
        Approval = "approval",
        /// Runs nothing: takes the changes of commits that were made before. No plan that a person
        /// submits may name it.
        Claimed = "claimed",
    }
}

/// The properties of a built-in executor.
struct Properties {
    /// The work, for the table of `docs/reference/workers.md`; `None` if no plan that a person
    /// submits may name the executor.
    runs: Option<&'static str>,
    /// The input that is its command. Agents may not name such an executor unless settings say so.
    line: Option<Line>,
    /// The further keys of `inputs` that it reads.
    reads: &'static [&'static str],
    /// The settings that it cannot have.
    refuses: Refused,
}

/// The command of an item: a program, with an input as its last argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The key of the input.
    pub key: &'static str,
    /// The program with its first arguments.
    program: [&'static str; 2],
    /// Whether the input may also be an array: another program with its arguments.
    takes_array: bool,
}

/// The settings that a built-in executor cannot have, with the reason.
enum Refused {
    All(&'static str),
    Command(&'static str),
}

impl BuiltIn {
    const fn properties(self) -> Properties {
        match self {
            Self::Command => Properties {
                runs: Some("the command in `inputs.command`, a shell line or an argument list"),
                line: Some(Line { key: COMMAND, program: ["sh", "-c"], takes_array: true }),
                reads: &[ENV, CHECK, STDIN, DIRECTORY, AGENT],
                refuses: Refused::Command(
                    "an item of the built-in executor `command` says in `inputs.command` what it runs",
                ),
            },
            Self::Dispatch => Properties {
                runs: Some(
                    "the subagent that `inputs.subagent` names. \
                     Without a name: the only one that is registered, or the one called `default`",
                ),
                line: None,
                reads: &["subagent", "workerInput"],
                refuses: Refused::Command(
                    "the built-in executor `dispatch` runs the subagent that an item names: \
                     set `handoff.subagent.<name>.command`",
                ),
            },
            Self::Approval => Properties {
                runs: Some("nothing; a person [decides](../how-to/approve-work.md)"),
                line: None,
                reads: &[APPROVERS],
                refuses: Refused::All(
                    "people decide about an item of the built-in executor `approval`, and nothing runs",
                ),
            },
            Self::Claimed => Properties {
                runs: None,
                line: Some(Line { key: COMMIT, program: ["git", "show"], takes_array: false }),
                reads: &[],
                refuses: Refused::All(
                    "an item of the built-in executor `claimed` takes a commit that was made before, and nothing runs",
                ),
            },
        }
    }

    /// Returns the executors that any plan may name.
    pub fn in_plans() -> impl Iterator<Item = Self> + Clone {
        Self::ALL.into_iter().filter(|executor| executor.runs().is_some())
    }

    /// Returns the built-in executor of this name, or `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|executor| executor.name() == name)
    }

    /// Returns what it runs, in Markdown, or `None` if no plan that a person submits may name it.
    pub fn runs(self) -> Option<&'static str> {
        self.properties().runs
    }

    /// Returns the input that is its command, or `None` if its items have no command of their own.
    pub fn line(self) -> Option<Line> {
        self.properties().line
    }

    /// Returns the keys of `inputs` that it reads.
    pub fn reads(self) -> impl Iterator<Item = &'static str> {
        let Properties { line, reads, .. } = self.properties();
        line.map(|line| line.key).into_iter().chain(reads.iter().copied())
    }

    /// Returns why it cannot have a setting, or `None` if it can.
    pub fn refusal(self, is_command: bool) -> Option<&'static str> {
        match self.properties().refuses {
            Refused::All(why) => Some(why),
            Refused::Command(why) => is_command.then_some(why),
        }
    }
}

/// Returns true if a shell can run a text: it is not empty and has no NUL.
pub fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('\0')
}

impl Line {
    /// Returns the command that an input makes, or `None` if the input has another form.
    pub fn argv(self, input: &Value) -> Option<Vec<String>> {
        let argv = match input {
            Value::String(text) if is_line(text) => {
                self.program.into_iter().chain([text.as_str()]).map(str::to_owned).collect()
            }
            Value::Array(words) if self.takes_array => {
                words.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()?
            }
            _ => return None,
        };
        let is_command = argv.first().is_some_and(|program| !program.is_empty());
        (is_command && argv.iter().all(|word| !word.contains('\0'))).then_some(argv)
    }

    /// Returns the form of the input, for messages.
    pub fn expected(self) -> String {
        let text = format!("one string for `{}`", self.program.join(" "));
        let form =
            if self.takes_array { format!("an array of strings (program and arguments) or {text}") } else { text };
        format!("a command: {form}, not empty and without NUL")
    }
}
