//! The documents as tests: what they show a command to print is what it prints.
//!
//! `HANDOFF_UPDATE_DOCS=1 cargo test docs` writes what commands print now into the documents.

mod agents;
mod answers;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::{Environment, Output};

/// The fence of a block whose commands are run.
const FENCE: &str = "```console";

/// One block of a document: commands, each with what it prints.
struct Block {
    /// The number of the line that opens it.
    line: usize,
    commands: Vec<Shown>,
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
fn the_reference_of_commands_shows_what_happens() {
    let text = check("docs/cli.md");
    let env = Environment::empty();
    let help = env.handoff_in("home", ["help"]).success();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for command in commands.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        assert!(text.contains(&format!("\n## {command}\n")), "docs/cli.md has no section on `{command}`");
        assert!(
            text.contains(&format!("\n$ git handoff help {command}\n")),
            "docs/cli.md lacks the help of `{command}`"
        );
    }
}

#[test]
fn the_page_on_plans_has_every_field_and_an_example_that_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(root.join("docs").join(name)).expect("the document is there");
    let (page, format) = (read("plan.md"), read("format.md"));
    for table in ["| field of a plan |", "| field of an item |"] {
        let rows = format.split_once(table).expect("the format has the table").1;
        for row in rows.lines().skip(2).take_while(|row| row.starts_with('|')) {
            let field = row.split('`').nth(1).expect("a row begins with a field");
            assert!(page.contains(&format!("`{field}`")), "docs/plan.md says nothing of `{field}`");
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
fn the_documents_link_to_what_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs")).expect("there are documents");
    let docs = docs.map(|entry| entry.expect("the folder is readable").path()).filter(|path| path.is_file());
    for path in docs.chain([root.join("README.md"), root.join("CHANGELOG.md")]) {
        let text = fs::read_to_string(&path).expect("a document is text");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().expect("a split has a first part");
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let target = path.parent().expect("a file lies in a folder").join(target);
            assert!(target.exists(), "{} links to {link}, which is not there", path.display());
        }
    }
}

#[test]
fn the_readmes_two_clones_hand_a_thread_over_and_back() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).expect("there is a README");
    let block = text.split("<!-- two clones -->\n```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let env = Environment::empty();
    let prepare = "git init --quiet --bare hub && git clone --quiet hub ada && cd ada && git commit --quiet --allow-empty \
        --message Start && git push --quiet origin main && cd .. && git clone --quiet hub ben && \
        for who in ada ben; do git -C $who config handoff.signingKey ''; done";
    let _ = env.shell("", prepare).exit(0);
    let said = env.shell("", &format!("set -eu\n{}", block.expect("the README has the block"))).exit(0).stdout;
    assert!(said.contains("gathered\n") && said.contains("written\n"), "{said}");
    assert!(said.contains("goes back to 2 threads") && said.matches("✓ INTACT").count() == 2, "{said}");
    assert!(!said.contains("not known to you"), "{said}");
    for file in ["sources.txt", "article.txt"] {
        let read = |who: &str| fs::read(env.path().join(who).join(file)).expect("both have both files");
        assert_eq!(read("ada"), read("ben"));
    }
    let threads = env.git_in("hub", ["for-each-ref", "--format=%(refname)", "refs/handoff/threads"]).success();
    assert_eq!(threads, "refs/handoff/threads/research\nrefs/handoff/threads/writing\n");
}

/// Runs the commands of a document in the repository of the first example, in order; returns the
/// document.
fn check(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let text = fs::read_to_string(&path).expect("the document is there");
    let env = Environment::example("handoff-dag");
    let mut now = text.clone();
    let mut wrong = String::new();
    for block in blocks(&text) {
        for Shown { command, printed } in &block.commands {
            let output = run(&env, command);
            let actual = document_form(&output.stdout);
            if same(&actual, printed) {
                continue;
            }
            wrong = format!("{wrong}{name}:{}: $ {command}\n{actual}{}\n", block.line, output.stderr);
            let shown = format!("$ {command}\n{printed}");
            now = now.replacen(&shown, &format!("$ {command}\n{actual}"), 1);
        }
    }
    if std::env::var_os("HANDOFF_UPDATE_DOCS").is_some() {
        fs::write(&path, &now).expect("the document can be written");
        return now;
    }
    assert!(wrong.is_empty(), "what is printed is not what is shown:\n{wrong}");
    text
}

fn run(env: &Environment, command: &str) -> Output {
    env.shell("repo", command)
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
fn same(actual: &str, shown: &str) -> bool {
    match shown.split_once("…\n") {
        None => actual == shown,
        Some((start, end)) if !end.contains("\n…\n") => {
            actual.len() >= start.len() + end.len() && actual.starts_with(start) && actual.ends_with(end)
        }
        Some(_) => false,
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        if line == FENCE {
            inside = true;
            blocks.push(Block { line: at + 1, commands: Vec::new() });
        } else if line == "```" {
            inside = false;
        } else if inside {
            let commands = &mut blocks.last_mut().expect("the fence opened a block").commands;
            if let Some(command) = line.strip_prefix("$ ") {
                commands.push(Shown { command: command.to_owned(), printed: String::new() });
            } else {
                let shown = commands.last_mut().expect("a block begins with a command");
                shown.printed = format!("{}{line}\n", shown.printed);
            }
        }
    }
    blocks
}
