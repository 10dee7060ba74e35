//! The commands of shell blocks that are not run: each is one that the program accepts.

use super::pages;
use crate::common::Environment;

/// The signs that end a command within a line.
const ENDS: &[&str] = &[" #", " -- ", " |", " >", " <", ")", "&&", ";", "`"];

#[test]
fn the_program_accepts_every_command_of_shell_blocks() {
    let env = Environment::example("handoff-dag");
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for (page, line) in lines("```sh") {
        // A comment is prose.
        let line = line.split(" #").next().unwrap_or_default();
        for (at, _) in line.match_indices("git handoff ") {
            let command = &line[at..];
            let end = ENDS.iter().filter_map(|end| command.find(end)).min().unwrap_or(command.len());
            let command = &command[..end];
            if ["$(", "[", "…"].iter().any(|sign| command.contains(sign)) {
                continue;
            }
            // Help is printed once all options before it were parsed.
            let help = env.shell("repo", &format!("{command} -h"));
            tried += 1;
            if help.status != Some(0) {
                wrong.push(format!("{page}: {command}\n{help}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 100, "only {tried} commands were tried");
}

#[test]
fn the_program_accepts_every_setting_of_the_pages() {
    let env = Environment::example("handoff-dag");
    let mut tried = 0;
    for (page, line) in lines("```sh") {
        let command = line.split(" #").next().unwrap_or_default().replace("--global ", "");
        if command.starts_with("git config ") && command.contains("handoff.") && !command.contains('<') {
            tried += 1;
            assert_eq!(env.shell("repo", &command).status, Some(0), "{page}: {command}");
        }
    }
    let blocks = ["```ini", "```gitconfig"].into_iter().flat_map(lines);
    let text: String = blocks.map(|(_, line)| line + "\n").collect();
    env.write("home/shown.config", &text);
    env.git(["config", "include.path", "../../home/shown.config"]).success();
    assert!(tried > 20, "only {tried} settings were tried");
    // An unknown setting, or a value that makes no sense, is refused by every command.
    env.handoff(["runs"]).success();
}

/// Returns the lines of blocks of a kind, continued lines as one, each with the name of its page.
fn lines(fence: &str) -> Vec<(String, String)> {
    let lines_of = |page: String| {
        let (text, start) = (pages::text(&page), format!("\n{fence}\n"));
        let blocks = text.split(&start).skip(1).filter_map(|rest| rest.split("\n```").next());
        let joined: String = blocks.flat_map(|block| [block, "\n"]).collect::<String>().replace("\\\n", " ");
        joined.lines().map(|line| (page.clone(), line.to_owned())).collect::<Vec<_>>()
    };
    pages::pages().into_iter().flat_map(lines_of).collect()
}
