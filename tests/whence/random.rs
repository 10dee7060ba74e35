//! Plans, bases and changes at random: whatever `apply` makes is known again, and nothing else is.

use super::{verdict_of, verified};
use crate::chaos::dice::Dice;
use crate::common::clone::TestClone;

/// Returns a command that changes something.
fn edit(dice: &mut Dice, item: u64) -> String {
    let line = dice.roll(1..61);
    match dice.roll(0..6) {
        0 | 1 => format!("sed -i '{line}s/$/ by {item}/' main.txt"),
        2 | 3 => format!("sed -i '{line}i new of {item}' main.txt"),
        4 => format!("sed -i '{line}d' main.txt"),
        _ => format!("echo {item} > file{item}"),
    }
}

/// Returns a text with one line more, less or other.
fn change(dice: &mut Dice, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = dice.index(lines.len());
    match dice.roll(0..4) {
        0 => lines[at].push_str(" changed"),
        1 => lines.insert(at, "changed".to_owned()),
        2 => lines[at].insert(0, ' '),
        _ => drop(lines.remove(at)),
    }
    lines.join("\n") + "\n"
}

/// Runs a plan at random over a file of 60 lines; returns whether it could be applied to what
/// `main` has become.
fn applies(clone: &TestClone, dice: &mut Dice) -> bool {
    let lines: Vec<String> = (0..60).map(|line| line.to_string()).collect();
    clone.write("main.txt", &(lines.join("\n") + "\n"));
    clone.git(&["commit", "--quiet", "-am", "Lines"]);
    let mut items: Vec<(String, String, Option<String>)> = Vec::new();
    for item in 0..dice.roll(2..5) {
        let edits: Vec<String> = (0..dice.roll(1..3)).map(|_| edit(dice, item)).collect();
        let from = (item > 0 && dice.once_in(2)).then(|| format!("i{}", dice.roll(0..item)));
        let first = from.as_ref().map(|_| "git apply --index inputs/patch".to_owned());
        items.push((format!("i{item}"), first.into_iter().chain(edits).collect::<Vec<_>>().join(" && "), from));
    }
    let items: Vec<_> = items.iter().map(|(id, run, from)| (id.as_str(), run.as_str(), from.as_deref())).collect();
    clone.done("r", &items);
    if !dice.once_in(3) {
        clone.write("main.txt", &change(dice, &clone.read("main.txt")));
        clone.git(&["commit", "--quiet", "-am", "Go on"]);
    }
    clone.handoff(&["apply", "r", "--commit"]).0 == 0
}

#[test]
fn whence_recognises_only_applied_commits() {
    let (mut round, mut done) = (0, 0);
    while done < 5 {
        let dice = &mut Dice::new(0, round);
        round += 1;
        let clone = TestClone::new();
        if !applies(&clone, dice) {
            continue;
        }
        done += 1;
        let before = clone.git(&["rev-list", "-1", "--invert-grep", "--grep=Handoff-Run", "HEAD"]);
        let before = before.trim();
        let (code, all) = verified(&clone, &format!("{before}..HEAD"));
        assert!(code == 0 && all.iter().all(|(verdict, _)| verdict == "product"), "{all:?}");
        // As one commit, whose message says nothing.
        let one = clone.git(&["commit-tree", "-p", before, "-m", "One", "HEAD^{tree}"]);
        let (second_code, commits) = verified(&clone, &format!("{before}..{}", one.trim()));
        assert!(second_code == 0 && commits.iter().all(|(verdict, _)| verdict == "product"), "{commits:?}");
        // With a change, whether the message stays or not.
        for (message, verdict) in [(&["--no-edit"][..], "changed"), (&["-m", "Mine"], "person")] {
            let tip = clone.git(&["rev-parse", "HEAD"]);
            clone.write("main.txt", &change(dice, &clone.read("main.txt")));
            clone.git(&[&["commit", "--quiet", "-a", "--amend"], message].concat());
            let (_, answer) = clone.answer(&["whence", "HEAD"]);
            assert_eq!(told_of(&answer), verdict, "{answer}");
            clone.git(&["reset", "--quiet", "--hard", tip.trim()]);
        }
    }
}

fn told_of(answer: &serde_json::Value) -> String {
    verdict_of(&answer["commits"][0]).0
}
