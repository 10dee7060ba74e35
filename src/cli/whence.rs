//! `git handoff whence`

use git_handoff::model::entry::{Verified, VerifiedBy};
use git_handoff::model::hints;
use git_handoff::model::printable::{self, Color, Painted};
use git_handoff::model::quote::quoted_words;
use git_handoff::repository::Repository;
use git_handoff::share::anchor::verification::VerifyRequest;
use git_handoff::whence::answer::{CommitShown, ItemShown, LinesBy, LinesShown, Made, Named, Whence};
use git_handoff::whence::{Standing, Verdict};

use super::{Ending, Failure, Output, status, table};

/// Show which item of which run made a commit, a line or a range of commits, with proof
///
/// The commit message is only a hint. A commit is an item's if the recorded patch of a verified
/// run, applied to the commit's parent, makes exactly its tree, or has the same patch id and lines.
/// So this works after a rebase, a squash or a cherry-pick. Anything else is unknown. Fetched runs
/// are searched as well. Fetches and writes nothing.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A commit, a file, PATH:LINE in the work tree, REV:PATH:LINE, or a range of commits
    #[arg(value_name = "COMMIT|PATH[:LINE]|A..B")]
    asked: String,
}

/// Prints the result.
pub(crate) fn run(arguments: &Arguments, repository: &Repository, output: &mut Output) -> Result<Ending, Failure> {
    let with = repository.verification(VerifyRequest::default(), &mut |text| output.warn(text))?;
    let found = repository.whence(&arguments.asked, &with, &mut |text| output.warn(text))?;
    if !output.answers(&found) {
        print(&found, output);
    }
    Ok(match found.proven {
        true => Ending::Done,
        false if found.commits.iter().any(|commit| is_contradicted(&found, commit)) => Ending::CheckFailed,
        false => Ending::Refused,
    })
}

/// Returns true if a commit's claim is false, or the origin of lines is unknown.
fn is_contradicted(found: &Whence, commit: &CommitShown) -> bool {
    matches!(commit.verdict, Verdict::Unproven | Verdict::Changed)
        && found.lines.as_ref().is_none_or(|lines| {
            let mut brought = lines.iter().filter(|line| line.commit == Some(commit.commit));
            brought.any(|line| !line.proven && line.by != Some(LinesBy::Person))
        })
}

fn print(found: &Whence, output: &mut Output) {
    let Some(lines) = &found.lines else {
        for (at, commit) in found.commits.iter().enumerate() {
            if at > 0 {
                output.line("");
            }
            print_commit(commit, None, output);
        }
        if found.commits.is_empty() {
            output.note("there are no commits in this range");
        }
        return;
    };
    for (at, origin) in origins(lines).iter().enumerate() {
        if at > 0 {
            output.line("");
        }
        let numbers: Vec<String> = origin.iter().map(|line| numbers(line)).collect();
        output.line(format!("{}:{}", origin[0].path, numbers.join(",")).as_str());
        match found.commits.iter().find(|commit| Some(commit.commit) == origin[0].commit) {
            Some(commit) => print_commit(commit, Some(origin[0]), output),
            None => output.line(Painted::default().painted("?", color(output, Color::Dim)).words(" not committed yet")),
        }
    }
}

/// Groups lines by origin, in order of appearance.
fn origins(lines: &[LinesShown]) -> Vec<Vec<&LinesShown>> {
    let mut origins: Vec<Vec<&LinesShown>> = Vec::new();
    for line in lines {
        let origin = (line.commit, line.by, &line.items, line.passed_over);
        let is_same = |first: &LinesShown| (first.commit, first.by, &first.items, first.passed_over) == origin;
        match origins.iter_mut().find(|group| is_same(group[0])) {
            Some(group) => group.push(line),
            None => origins.push(vec![line]),
        }
    }
    origins
}

fn numbers(line: &LinesShown) -> String {
    if line.from == line.to { line.from.to_string() } else { format!("{}-{}", line.from, line.to) }
}

/// Prints a commit with its items; for lines, also the lines that each item made.
fn print_commit(commit: &CommitShown, lines: Option<&LinesShown>, output: &mut Output) {
    let short: String = commit.commit.to_string().chars().take(12).collect();
    // Distinguishes lines that a person added to an item's commit.
    let blamed = lines.filter(|lines| lines.by.is_some() && commit.verdict != Verdict::Unproven);
    let of_person = blamed.is_some_and(|origin| origin.mixed && origin.by == Some(LinesBy::Person));
    let is_proven = blamed.is_some_and(|origin| origin.proven);
    let sign = match (is_proven, of_person) {
        (true, _) if commit.verdict != Verdict::Product => Painted::default().painted("✓", color(output, Color::Green)),
        (_, true) => Painted::default().painted("·", color(output, Color::Dim)),
        _ => mark(commit, output),
    };
    output.line(sign.words(&format!(" {short}  {}", commit.subject)));
    let word = match commit.verdict {
        _ if of_person => "a person's",
        _ if is_proven => "proven",
        _ if blamed.is_some_and(|origin| origin.by == Some(LinesBy::Item)) => "not proven",
        Verdict::Product => "proven",
        Verdict::Unproven => "not proven",
        Verdict::Changed => "changed",
        Verdict::UnknownRun | Verdict::Person | Verdict::Unclear => "unknown",
    };
    let detail = blamed.map_or(&commit.detail, |origin| &origin.detail);
    output.line(format!("  {word}: {detail}").as_str());
    // A false claim does not attribute lines.
    let made = is_proven || matches!(commit.verdict, Verdict::Product | Verdict::Unproven);
    if !made || commit.items.is_empty() {
        output.line(format!("  author   {}", commit.author).as_str());
    }
    for item in commit.items.iter().filter(|_| made).filter(|item| lines.is_none_or(|lines| lines.by_item(item))) {
        table::lines(&rows(item)).iter().for_each(|line| output.line(line));
    }
    if let Some(lines) = lines.filter(|lines| lines.items.is_empty() && commit.verdict == Verdict::Product) {
        output.line(format!("  none of its items made line {}", numbers(lines)).as_str());
    }
    for Named { run, item, .. } in &commit.others {
        output.line(format!("  {run}/{item} handed over the same").as_str());
    }
    let barred = commit.items.iter().find(|item| !matches!(item.standing, Standing::Proven));
    if let Some(item) = barred.filter(|_| commit.verdict == Verdict::Unproven) {
        output.hint(&hints::verify(item.item_ref.place()));
    }
}

/// Formats a commit of a range: mark, name, item or author, and reason.
pub(super) fn row(commit: &CommitShown, output: &Output) -> Painted {
    let short: String = commit.commit.to_string().chars().take(12).collect();
    let items: Vec<String> = commit
        .items
        .iter()
        .map(|item| {
            let weaker = match (item.is_red(), item.is_claimed()) {
                (true, _) => ", red",
                (false, true) => ", claimed",
                (false, false) => "",
            };
            format!("{}/{}{weaker}", item.item_ref.run, item.item_ref.item)
        })
        .collect();
    let who = match commit.verdict {
        Verdict::Product | Verdict::Unproven if !items.is_empty() => items.join(" + "),
        _ => commit.author.clone(),
    };
    let what = match commit.verdict {
        Verdict::Person => "a person's".to_owned(),
        verdict => verdict.as_str().replace('-', " "),
    };
    let why = match commit.verdict {
        Verdict::Product | Verdict::Person => String::new(),
        _ => format!(": {}", commit.detail),
    };
    let (sign, of) = match commit.verdict {
        Verdict::Product if commit.is_red() => ("!", Color::Red),
        Verdict::Product => ("✓", Color::Green),
        Verdict::Person => ("·", Color::Dim),
        _ => ("✗", Color::Red),
    };
    Painted::default().painted(sign, color(output, of)).words(&format!(" {short}  {what}  {who}{why}"))
}

fn mark(commit: &CommitShown, output: &Output) -> Painted {
    let (sign, of) = match commit.verdict {
        Verdict::Product if commit.is_red() => ("!", Color::Red),
        Verdict::Product => ("✓", Color::Green),
        Verdict::Unproven | Verdict::Changed => ("✗", Color::Red),
        Verdict::UnknownRun | Verdict::Person | Verdict::Unclear => ("?", Color::Yellow),
    };
    Painted::default().painted(sign, color(output, of))
}

fn color(output: &Output, color: Color) -> Option<Color> {
    Some(color).filter(|_| output.color)
}

fn rows(item: &ItemShown) -> Vec<Vec<String>> {
    let Named { run, reference, item: id } = &item.item_ref;
    let Some(made) = &item.made else {
        return vec![
            table::field("run", format!("{run}  {reference}")),
            table::field("item", id.to_string()),
            table::field("product", item.product.to_string()),
        ];
    };
    let state = if made.sealed { "sealed" } else { "open" };
    let mut rows = vec![table::field("run", format!("{run}, {state}  {reference}"))];
    let done = match (item.is_red(), item.is_claimed()) {
        (true, _) => status::RED,
        (false, true) => status::CLAIMED,
        (false, false) => "done",
    };
    let when = format!("{id}, attempt {}, {done} {}, by {}", made.attempt, made.at, made.actor);
    rows.push(table::field("item", when));
    rows.extend(made.superseded_by.as_ref().map(|by| table::field("superseded", format!("by {by}"))));
    rows.extend(made.reused.as_ref().map(|from| table::field("reused", format!("from {from}: nothing was run here"))));
    rows.push(table::field("agent", agent(made)));
    if let Some(claims) = &made.claims {
        rows.extend(claims.model.as_ref().map(|model| claim_row("model", model)));
        rows.extend(claims.session.as_ref().map(|session| claim_row("session", session)));
    }
    rows.push(table::field("prompt", format!("{}  {}", made.prompt.text, made.prompt.digest)));
    rows.push(table::field("check", check(made.check)));
    rows.push(table::field("product", item.product.to_string()));
    rows
}

fn claim_row(name: &str, text: &str) -> Vec<String> {
    table::field(name, format!("{}, as the worker says", printable::line(text)))
}

fn agent(made: &Made) -> String {
    let who =
        made.subagent.as_ref().map_or_else(|| made.executor.clone(), |name| format!("{name} ({})", made.executor));
    match &made.argv {
        Some(argv) => format!("{who}: {}", quoted_words(argv)),
        None => who,
    }
}

fn check(check: Option<Verified>) -> String {
    let Some(check) = check else { return "none".to_owned() };
    let by = match check.by {
        VerifiedBy::Command => "the verify command",
        VerifiedBy::Itself => "the item's own word",
    };
    format!("{}, by {by}", if check.passed { "passed" } else { "did not pass" })
}
