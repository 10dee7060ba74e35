//! The documents as tests: what they show a command to print is what it prints.
//!
//! `HANDOFF_UPDATE_DOCS=1 cargo test docs` writes what commands print now into the documents.
//!
//! Commands of `console` blocks run one after the other in the repository of the first example, or,
//! for the tutorial, in an empty folder. `cd` changes the folder for the commands that follow. A
//! line `<!-- before: COMMAND -->` runs a command that the page does not show, and
//! `<!-- file: NAME -->` writes the block that follows to a file.

mod agents;
mod answers;
mod commands;
mod pages;
mod schemas;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Environment, Output};

/// The fence of a block whose commands are run.
const FENCE: &str = "```console";

/// One step that a document gives the test.
enum Step {
    /// Runs commands and compares what they print; with the number of the line above them.
    Commands(usize, Vec<Shown>),
    /// Runs a command that must succeed.
    Before(String),
    /// Writes a file: its name and its text.
    File(String, String),
}

/// A command and what a document shows it to print.
struct Shown {
    command: String,
    printed: String,
}

#[test]
fn the_readme_shows_what_happens() {
    check("README.md");
}

#[test]
fn the_tutorial_shows_what_happens() {
    let env = Environment::empty();
    // As in a new installation of git.
    env.git_in("home", ["config", "--file=gitconfig", "init.defaultBranch", "master"]).success();
    check_in("docs/tutorial.md", &env, ".");
}

#[test]
fn the_how_to_pages_show_what_happens() {
    let pages = pages::below("docs/how-to");
    let command_pages: Vec<&String> = pages.iter().filter(|page| pages::text(page).contains(FENCE)).collect();
    for page in &command_pages {
        check(page);
    }
    assert!(command_pages.len() > 10, "only {} pages have commands", command_pages.len());
}

#[test]
fn the_reference_of_commands_shows_what_happens() {
    let text = check_in("docs/reference/cli.md", &Environment::example("handoff-dag"), "repo");
    let readme = pages::text("README.md");
    let env = Environment::empty();
    let completions = env.handoff_in("home", ["complete", "--", ""]).success();
    let commands: Vec<&str> = completions.lines().filter(|name| *name != "help").collect();
    assert!(commands.len() > 40, "{completions}");
    for command in commands {
        assert!(text.contains(&format!("\n## {command}\n")), "docs/reference/cli.md has no section on `{command}`");
        assert!(
            text.contains(&format!("\n$ git handoff help {command}\n")),
            "docs/reference/cli.md lacks the help of `{command}`"
        );
        assert!(readme.contains(&format!("`{command}")), "README.md does not list `{command}`");
    }
}

#[test]
fn the_page_on_plans_has_every_field_and_an_example_that_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(root.join("docs/reference").join(name)).expect("the document is there");
    let (page, format) = (read("plan.md"), read("format.md"));
    for table in ["| field of a plan |", "| field of an item |"] {
        let rows = format.split_once(table).expect("the format has the table").1;
        for row in rows.lines().skip(2).take_while(|row| row.starts_with('|')) {
            let field = row.split('`').nth(1).expect("a row begins with a field");
            assert!(page.contains(&format!("`{field}`")), "docs/reference/plan.md does not have `{field}`");
        }
    }
    let env = Environment::example("handoff-dag");
    let example =
        page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("there is an example");
    env.write("repo/docs/spec.md", "# Spec\n");
    env.write("repo/example.json", example);
    assert_eq!(env.handoff(["validate", "example.json"]).success(), "valid: 2 items\n");
}

#[test]
fn the_page_on_python_shows_what_its_program_prints() {
    let page = pages::text("docs/how-to/use-python.md");
    let block = |kind: &str| page.split(kind).nth(1).and_then(|rest| rest.split("```").next()).expect("it has one");
    let env = Environment::example_with("handoff-dag", &["--initial-branch=master"]);
    env.write("handoff.py", block("```python\n"));
    assert_eq!(env.shell("repo", "python3 ../handoff.py").success(), block("```text\n"));
}

#[test]
fn two_clones_hand_a_thread_over_and_back() {
    let text = pages::text("docs/how-to/hand-over-a-thread.md");
    let block = text.split("<!-- two clones -->\n```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let env = Environment::empty();
    let prepare = "git init --quiet --bare hub && git clone --quiet hub ada && cd ada && git commit --quiet --allow-empty \
        --message Start && git push --quiet origin main && cd .. && git clone --quiet hub ben && \
        for who in ada ben; do git -C $who config handoff.signingKey ''; done";
    let _ = env.shell("", prepare).exit(0);
    let stdout = env.shell("", &format!("set -eu\n{}", block.expect("the page has the block"))).exit(0).stdout;
    assert!(stdout.contains("gathered\n") && stdout.contains("written\n"), "{stdout}");
    let begin = |content: &str| stdout.lines().filter(|line| line.starts_with(content)).collect::<Vec<_>>();
    assert!(
        begin("git handoff thread verify · ").iter().all(|line| line.ends_with("  ✓ INTACT  clock pinned")),
        "{stdout}"
    );
    assert_eq!(begin("✓ lineage "), ["✓ lineage    goes back to 2 threads", "✓ lineage    goes back to 1 thread"]);
    let signed = begin("✓ signature ").into_iter().filter_map(|line| line.split(" · ").nth(1));
    assert_eq!(signed.collect::<Vec<_>>(), ["trusted as ada", "trusted as ben"]);
    for file in ["sources.txt", "article.txt"] {
        let read = |who: &str| fs::read(env.path().join(who).join(file)).expect("both have both files");
        assert_eq!(read("ada"), read("ben"));
    }
    let threads = env.git_in("hub", ["for-each-ref", "--format=%(refname)", "refs/handoff/threads"]).success();
    assert_eq!(threads, "refs/handoff/threads/research\nrefs/handoff/threads/writing\n");
}

/// Runs the commands of a document in the repository of the first example, with the branch name of
/// a new installation of git; returns the document.
fn check(name: &str) -> String {
    check_in(name, &Environment::example_with("handoff-dag", &["--initial-branch=master"]), "repo")
}

/// Runs the commands of a document, in its order, from a folder on; returns the document.
fn check_in(name: &str, env: &Environment, folder: &str) -> String {
    let text = pages::text(name);
    let (mut now, mut wrong, mut folder) = (text.clone(), String::new(), folder.to_owned());
    for step in steps(&text) {
        match step {
            Step::File(file, content) => env.write(&format!("{folder}/{file}"), &content),
            Step::Before(command) => drop(env.shell(&folder, &command).exit(0)),
            Step::Commands(line, commands) => {
                for Shown { command, printed } in commands {
                    if let Some(below) = command.strip_prefix("cd ").filter(|below| !below.contains(' ')) {
                        folder = format!("{folder}/{below}");
                        continue;
                    }
                    let output = run(env, &folder, &command);
                    let actual = document_form(&output.stdout);
                    if same(&actual, &printed) {
                        continue;
                    }
                    wrong = format!("{wrong}{name}:{line}: $ {command}\n{actual}{}\n", output.stderr);
                    let expected = format!("$ {command}\n{printed}");
                    now = now.replacen(&expected, &format!("$ {command}\n{actual}"), 1);
                }
            }
        }
    }
    if std::env::var_os("HANDOFF_UPDATE_DOCS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        fs::write(&path, &now).expect("the document can be written");
        return now;
    }
    assert!(wrong.is_empty(), "what is printed is not what is shown:\n{wrong}");
    text
}

fn run(env: &Environment, folder: &str, command: &str) -> Output {
    env.shell(folder, command)
}

/// Formats a command's output as documents show it: JSON on several lines, without notes about the
/// pinned clock.
fn document_form(printed: &str) -> String {
    let printed = printed.replace("  clock pinned\n", "\n").replace(",\"clock\":\"pinned\"", "");
    match serde_json::from_str::<Value>(&printed) {
        Ok(value) if value.is_object() && printed.starts_with("{\"") => {
            format!("{}\n", serde_json::to_string_pretty(&value).expect("a value is written"))
        }
        _ => printed,
    }
}

/// Returns true if a document shows the same; a line `…` matches any number of lines.
fn same(actual: &str, expected: &str) -> bool {
    match expected.split_once("…\n") {
        None => actual == expected,
        Some((start, end)) if !end.contains("\n…\n") => {
            actual.len() >= start.len() + end.len() && actual.starts_with(start) && actual.ends_with(end)
        }
        Some(_) => false,
    }
}

/// Returns the steps of a document, in order.
fn steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut file = None;
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if let Some(command) = between(line, "<!-- before: ", " -->") {
            steps.push(Step::Before(command.to_owned()));
        } else if let Some(name) = between(line, "<!-- file: ", " -->") {
            file = Some(name.to_owned());
        } else if line.starts_with("```") {
            let block: String = lines
                .by_ref()
                .map(|(_, row)| row)
                .take_while(|shell_line| *shell_line != "```")
                .flat_map(|joined| [joined, "\n"])
                .collect();
            match file.take() {
                Some(name) => steps.push(Step::File(name, block)),
                None if line == FENCE => steps.push(Step::Commands(at + 1, parse_commands(&block))),
                None => {}
            }
        }
    }
    steps
}

/// Returns the commands of a block, each with what stands below it.
fn parse_commands(block: &str) -> Vec<Shown> {
    let mut commands: Vec<Shown> = Vec::new();
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push(Shown { command: command.to_owned(), printed: String::new() });
        } else {
            let last = commands.last_mut().expect("a block begins with a command");
            last.printed = format!("{}{line}\n", last.printed);
        }
    }
    commands
}

/// Returns what a line has between a beginning and an end.
fn between<'a>(line: &'a str, start: &str, end: &str) -> Option<&'a str> {
    line.strip_prefix(start)?.strip_suffix(end)
}
