//! `git handoff init`

use std::io::{self, BufRead as _, IsTerminal as _};

use git_handoff::model::hints;
use git_handoff::model::protectable::grouped;
use git_handoff::model::protected::pathspec_fault;
use git_handoff::model::quote::quoted;
use git_handoff::repository::Repository;
use git_handoff::repository::config::PRESETS;
use git_handoff::upkeep::setup::{Answers, Line, Offer, Setup, Share};

use super::{Ending, Failure, Output, table};

/// The setting of protected files.
const PROTECT: &str = "handoff.protect";

/// The answer for all files that were listed before the question.
const THESE: &str = "these";

/// The answer for no agent and no check.
const NONE: &str = "none";

/// Configure this repository: agent, check, protected files
///
/// Asks on a terminal which agent works here, which command checks the work, which files workers
/// must not change, and whether `git fetch` brings runs. Shows the lines for `.git/config`, and
/// writes them after a yes. Options answer questions in advance. With --yes nothing is asked, and
/// what has no option stays as it is.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write the lines without asking
    #[arg(long, short)]
    yes: bool,
    /// Register this known agent, or `none`
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Check the work with this command; an empty one removes the check
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// Protect these files from workers; may be given more than once [default with --check: tests
    /// and the files that their runners read by name]
    #[arg(long, value_name = "PATHSPEC")]
    protect: Vec<String>,
    /// Protect no files although there is a check
    #[arg(long, requires = "check", conflicts_with = "protect")]
    no_protect: bool,
    /// Let `git fetch` fetch runs [default: from git's default remote]
    #[arg(long, value_name = "REMOTE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    share: Option<String>,
}

impl Arguments {
    /// Returns the answers that the options give.
    fn answers(&self) -> Answers {
        Answers {
            agent: self.agent.clone().filter(|name| name != NONE),
            check: self.check.clone(),
            protect: Some(self.protect.clone()).filter(|pathspecs| !pathspecs.is_empty()),
            no_protect: self.no_protect,
            share: self.share.as_ref().map(|name| match name.as_str() {
                "" => Share::Default,
                name => Share::From(name.to_owned()),
            }),
        }
    }
}

/// Asks, shows the lines, and writes them.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let can_ask = io::stdin().is_terminal() && Output::can_ask();
    if !arguments.yes && !can_ask {
        let message = "init needs --yes where there is no terminal to ask on; nothing was written".to_owned();
        return Err(Failure::usage(message).hint(hints::configure_yes()));
    }
    let given = arguments.answers();
    if arguments.yes && given == Answers::default() {
        let message = "--yes needs an answer: --agent, --check, --protect or --share; nothing was written".to_owned();
        return Err(Failure::usage(message).hint(hints::configure_yes()));
    }
    // Wrong options are reported before any question.
    repository.compose_setup(&given)?;
    let answers = if arguments.yes { Some(given) } else { Questions { repository, output }.ask(arguments, given)? };
    let Some(answers) = answers else { return Ok(nothing_written(output)) };
    let setup = repository.compose_setup(&answers)?;
    setup.warnings.iter().for_each(|warning| output.warn(warning));
    // A command in a note is pasted.
    setup.notes.iter().for_each(|note| output.unwrapped_note(note));
    if setup.is_done() {
        return Ok(print_done(&setup, repository, output));
    }
    show(&setup, arguments.yes, output);
    if !arguments.yes && !is_confirmed(&repository.setup_file(), output)? {
        return Ok(nothing_written(output));
    }
    let answer = repository.write_setup(&setup)?;
    if output.answers(&answer) {
        return Ok(Ending::Done);
    }
    let changed = table::many(answer.added.len() + answer.removed.len(), "line");
    output.note(&format!("changed {changed} in {}", answer.file));
    output.hint(&answers.agent.map_or_else(hints::write_plan, hints::record_agent));
    Ok(Ending::Done)
}

fn nothing_written(output: &mut Output) -> Ending {
    output.note("nothing was written");
    Ending::Refused
}

fn print_done(setup: &Setup, repository: &Repository, output: &mut Output) -> Ending {
    if output.json {
        output.value(&repository.describe_setup(setup));
    } else {
        output.note(&format!("nothing to change: {} has these lines already", repository.setup_file()));
    }
    Ending::Done
}

/// Shows the lines that are removed, added and kept. JSON and redirected output get the answer
/// alone, so the question has them on standard error.
fn show(setup: &Setup, is_answer: bool, output: &mut Output) {
    if output.json && is_answer {
        return;
    }
    let marked = [("- ", setup.removed()), ("+ ", setup.added()), ("  ", setup.unchanged.clone())];
    for (mark, lines) in marked {
        for line in in_short(&lines) {
            let text = format!("{mark}{line}");
            if is_answer { output.line(&text) } else { output.unwrapped_note(&text) }
        }
    }
}

/// Formats lines of the configuration, those that protect the files of one runner together.
fn in_short(lines: &[Line]) -> Vec<String> {
    let mut texts = Vec::new();
    for chunk in lines.chunk_by(|one, next| one.key == PROTECT && next.key == PROTECT) {
        if chunk[0].key != PROTECT {
            texts.extend(chunk.iter().map(|line| format!("{} = {}", line.key, line.value)));
            continue;
        }
        texts.extend(grouped(chunk.iter().map(|line| line.value.as_str())).iter().map(|group| match group.runner {
            None => format!("{PROTECT} = {}", group.pathspecs[0]),
            Some(runner) => {
                let count = table::many(group.pathspecs.len(), "line");
                format!("{PROTECT} = {count} for {runner}: {}", group.names())
            }
        }));
    }
    texts
}

fn is_confirmed(file: &str, output: &mut Output) -> Result<bool, Failure> {
    output.note(&format!("type yes to make these changes in {file}:"));
    let answer = read_answer()?.unwrap_or_default();
    Ok(matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Reads a line from the terminal, or returns `None` at the end of input.
fn read_answer() -> Result<Option<String>, Failure> {
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    let length = read.map_err(|error| Failure::io("the answer could not be read", &error))?;
    Ok((length > 0).then(|| answer.trim().to_owned()))
}

/// Asks the questions that no option answers.
struct Questions<'a> {
    repository: &'a Repository,
    output: &'a mut Output,
}

impl Questions<'_> {
    /// Returns the answers, or `None` at the end of input.
    fn ask(&mut self, arguments: &Arguments, given: Answers) -> Result<Option<Answers>, Failure> {
        let offer = self.repository.offer_setup()?;
        let mut answers = given;
        self.output.note("Enter takes the answer in brackets.");
        if arguments.agent.is_none() {
            let Some(agent) = self.agent(&offer)? else { return Ok(None) };
            answers.agent = Some(agent).filter(|name| name != NONE);
        }
        if answers.check.is_none() {
            let offered = self.repository.offer_check(answers.agent.as_deref());
            let question = "Which command checks the work?";
            let Some(check) = self.question(question, offered.as_deref().unwrap_or(NONE))? else { return Ok(None) };
            answers.check = Some(if check == NONE { String::new() } else { check });
        }
        let asks = answers.protect.is_none() && !answers.no_protect;
        if asks && answers.check.as_ref().is_some_and(|check| !check.is_empty()) {
            let Some(pathspecs) = self.protect(&offer)? else { return Ok(None) };
            // Without an answer of one's own, the offered files are protected.
            answers.protect = Some(pathspecs).filter(|pathspecs| *pathspecs != offer.protect);
        }
        if answers.share.is_none() && !offer.remotes.is_empty() {
            let Some(share) = self.share(&offer)? else { return Ok(None) };
            answers.share = Some(share);
        }
        Ok(Some(answers))
    }

    /// Asks a question; an empty answer takes the offered one. Returns `None` at the end of input.
    fn question(&mut self, question: &str, offered: &str) -> Result<Option<String>, Failure> {
        self.output.note(&format!("{question} [{offered}]"));
        let answer = read_answer()?;
        Ok(answer.map(|answer| if answer.is_empty() { offered.to_owned() } else { answer }))
    }

    fn agent(&mut self, offer: &Offer) -> Result<Option<String>, Failure> {
        let known = PRESETS.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        let found = if offer.agents.is_empty() { NONE.to_owned() } else { offer.agents.join(", ") };
        self.output.note(&format!("Known agents: {known}. On PATH: {found}."));
        loop {
            let offered = offer.agent.as_deref().unwrap_or(NONE);
            let Some(name) = self.question("Which agent does the work? A name, or none:", offered)? else {
                return Ok(None);
            };
            if name == NONE || PRESETS.contains_key(&name) {
                return Ok(Some(name));
            }
            self.output.warn(&format!("{name:?} is no known agent"));
        }
    }

    fn protect(&mut self, offer: &Offer) -> Result<Option<Vec<String>>, Failure> {
        let offered = self.offered_files(&offer.protect);
        let offered = if offered.is_empty() { NONE } else { &offered };
        loop {
            let question = "Which files must workers not change? Pathspecs, or none:";
            let Some(answer) = self.question(question, offered)? else { return Ok(None) };
            match split(&answer) {
                _ if answer == NONE => return Ok(Some(Vec::new())),
                // Quotes of the offer may be of a form that is not split here.
                _ if answer == offered => return Ok(Some(offer.protect.clone())),
                None => self.output.warn("a quote is not closed"),
                Some(pathspecs) => {
                    let fault = pathspecs.iter().find_map(|it| pathspec_fault(it).map(|fault| (it, fault)));
                    let Some((pathspec, fault)) = fault else { return Ok(Some(pathspecs)) };
                    self.output.warn(&format!("the pathspec {pathspec:?} {fault}"));
                }
            }
        }
    }

    /// Returns the offered pathspecs as words. Lists them before if there are files of a runner.
    fn offered_files(&mut self, pathspecs: &[String]) -> String {
        let groups = grouped(pathspecs.iter().map(String::as_str));
        if groups.iter().all(|group| group.runner.is_none()) {
            return pathspecs.iter().map(|pathspec| quoted(pathspec)).collect::<Vec<_>>().join(" ");
        }
        self.output.note("Files that decide whether work is good:");
        for group in groups {
            let runner = group.runner.map(|runner| format!("{runner}: ")).unwrap_or_default();
            self.output.note(&format!("  {runner}{}", group.names()));
        }
        THESE.to_owned()
    }

    fn share(&mut self, offer: &Offer) -> Result<Option<Share>, Failure> {
        let remotes = offer.remotes.join(", ");
        self.output.note(&format!("Remotes: {remotes}."));
        let offered = offer.shared.as_deref().unwrap_or("no");
        loop {
            let question = "Should git fetch bring runs? yes, no, or a remote:";
            let Some(answer) = self.question(question, offered)? else { return Ok(None) };
            match (answer.as_str(), &offer.remote) {
                (name, _) if offer.remotes.iter().any(|remote| remote == name) => {
                    return Ok(Some(Share::From(name.to_owned())));
                }
                ("n" | "no" | NONE, _) => return Ok(Some(Share::No)),
                ("y" | "yes", Some(_)) => return Ok(Some(Share::Default)),
                ("y" | "yes", None) => self.output.warn("no remote is the default one; name one of them"),
                _ => self.output.warn(&format!("{answer:?} is neither yes nor no nor a remote")),
            }
        }
    }
}

/// Splits words at white space, except inside of quotes. Returns `None` if a quote is not closed.
fn split(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn quotes_keep_white_space_together() {
        let words = |text: &str| split(text).expect("quotes are closed");
        assert_eq!(words("tests  Cargo.toml "), ["tests", "Cargo.toml"]);
        assert_eq!(words(r#"'my tests' "it's" a' 'b"#), ["my tests", "it's", "a b"]);
        assert_eq!(words("''"), [""]);
        assert_eq!(split("'open"), None);
    }
}
