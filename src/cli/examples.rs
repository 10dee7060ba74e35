//! Examples of each command, for its help and its manual page.

use clap::Command;

/// An example: what it does, and its command line.
pub(super) type Example = (&'static str, &'static str);

/// The examples of every command that has no subcommands, in the order of the help.
const EXAMPLES: &[(&str, &[Example])] = &[
    ("plan new", &[("Write an example plan to plan.json", "git handoff plan new")]),
    ("validate", &[("Check a plan before a run", "git handoff validate plan.json")]),
    (
        "submit",
        &[
            ("Create the run of a plan without running it", "git handoff submit plan.json"),
            ("Start from another commit, and run at once", "git handoff submit --base v1.2 --run plan.json"),
        ],
    ),
    (
        "run",
        &[
            ("Run a plan until it settles", "git handoff run plan.json"),
            ("Continue a run that was interrupted", "git handoff run nightly"),
            ("Run the same plan again, as another run", "git handoff run --id nightly-2 plan.json"),
            ("Drive a run together with other machines", "git handoff run --via origin nightly"),
        ],
    ),
    (
        "record",
        &[
            ("Let an agent work in a worktree of its own", "git handoff record --agent claude 'Fix the parser'"),
            ("Check what a command changed", "git handoff record --check 'cargo test' -- cargo update"),
            ("Take three commits that were made before", "git handoff record --adopt HEAD~3..HEAD"),
        ],
    ),
    ("runs", &[("List all runs, also fetched ones", "git handoff runs --all")]),
    (
        "status",
        &[
            ("Show the items of a run", "git handoff status nightly"),
            ("Show what a run waits for", "git handoff status --blocked nightly"),
            ("Show who drives a shared run", "git handoff status --drivers nightly"),
        ],
    ),
    (
        "graph",
        &[
            ("Draw the items of a run", "git handoff graph nightly"),
            ("Draw a plan before it runs", "git handoff graph plan.json"),
        ],
    ),
    ("watch", &[("Follow a run that another process drives", "git handoff watch nightly")]),
    (
        "log",
        &[
            ("Print the entries of a run as they come", "git handoff log --follow nightly"),
            ("Write a trace for Perfetto", "git handoff log --format trace-event nightly > trace.json"),
        ],
    ),
    (
        "show",
        &[
            ("Show everything recorded about an item", "git handoff show nightly/build"),
            ("Read why the check of an item failed", "git handoff show --check nightly/build"),
        ],
    ),
    (
        "cat",
        &[
            ("Print the patch of an item", "git handoff cat nightly/build:patch"),
            ("Save an output of an item", "git handoff cat nightly/build:outputs/app.tar > app.tar"),
        ],
    ),
    (
        "verify",
        &[
            ("Verify a run", "git handoff verify nightly"),
            ("Verify a bundle outside of any repository", "git handoff verify --bundle nightly.bundle"),
            ("Prove where the commits of a branch come from", "git handoff verify --commits main..feature"),
            ("Repeat the checks of a run", "git handoff verify --recheck nightly"),
        ],
    ),
    (
        "whence",
        &[
            ("Find the item that made a commit", "git handoff whence HEAD"),
            ("Find the item that made a line", "git handoff whence src/main.rs:12"),
        ],
    ),
    ("lineage", &[("Show what an output was made from", "git handoff lineage nightly/build:outputs/app.tar")]),
    (
        "prove",
        &[
            ("Write the proof of a product", "git handoff prove nightly/build:patch > proof.json"),
            ("Prove that entries 0 to 7 are unchanged", "git handoff prove --since 7 nightly > proof.json"),
        ],
    ),
    (
        "report",
        &[
            ("Write nightly.html and open it", "git handoff report --open nightly"),
            ("Print a comment for a pull request", "git handoff report --markdown nightly"),
        ],
    ),
    (
        "export",
        &[("Write in-toto statements of a run", "git handoff export --format in-toto nightly > nightly.intoto.jsonl")],
    ),
    (
        "check",
        &[
            ("Ask whether it is safe to resume from a note", "git handoff check packet.json"),
            ("Compare it with your task", "git handoff check --objective 'Fix the parser' packet.json"),
        ],
    ),
    (
        "apply",
        &[
            ("Put a run's changes into the work tree", "git handoff apply nightly"),
            ("Commit them onto a new branch", "git handoff apply --branch nightly-work nightly"),
            ("See what one item would change", "git handoff apply --dry-run nightly/build"),
        ],
    ),
    ("cancel", &[("Cancel an item", "git handoff cancel --reason 'not needed' nightly/build")]),
    ("retry", &[("Give a failed item another attempt", "git handoff retry nightly/build")]),
    ("close", &[("Seal a settled run although an item failed", "git handoff close nightly")]),
    ("abandon", &[("Give up a run that is not needed", "git handoff abandon -m 'wrong base' nightly")]),
    ("lost", &[("Give away what a dead driver holds", "git handoff lost --driver 0413e9fe nightly")]),
    ("adopt-run", &[("Continue a fetched run as your own", "git handoff adopt-run --id nightly-2 origin/nightly")]),
    ("extend", &[("Add items to an open-ended run", "git handoff extend nightly more.json")]),
    ("coordinate", &[("Explain what each rule would create", "git handoff coordinate --explain nightly")]),
    ("doc put", &[("Put a review on a run", "git handoff doc put nightly review review.json")]),
    ("doc get", &[("Save a document", "git handoff doc get nightly review > review.json")]),
    ("doc list", &[("List the documents of a run", "git handoff doc list nightly")]),
    ("doc log", &[("Show who wrote each revision", "git handoff doc log nightly review")]),
    ("doc diff", &[("Compare revisions 1 and 3", "git handoff doc diff nightly review 1 3")]),
    ("waiting", &[("List what waits for your approval", "git handoff waiting")]),
    ("approve", &[("Approve an item", "git handoff approve -m 'reads well' nightly/sign-off")]),
    ("reject", &[("Reject an item", "git handoff reject -m 'no tests' nightly/sign-off")]),
    ("admit", &[("Let a key write documents on a run", "git handoff admit --as document nightly ben.pub")]),
    ("dismiss", &[("Take all roles from a key that was replaced", "git handoff dismiss nightly ben.pub")]),
    (
        "checkpoint",
        &[
            ("Save a state in a thread", "git handoff checkpoint --state state.json research"),
            ("Save the work tree, too", "git handoff checkpoint --state state.json --worktree research"),
            (
                "Attach a packet that says where things stand",
                "git handoff checkpoint --state state.json --packet auto research",
            ),
        ],
    ),
    ("resume", &[("Print the last state and restore its files", "git handoff resume --checkout research")]),
    ("offer", &[("Offer a thread to one agent", "git handoff offer --to writer research > offer.json")]),
    ("adopt", &[("Continue an offered thread", "git handoff adopt --me writer --as writing offer.json")]),
    ("fork", &[("Try something else from checkpoint 2", "git handoff fork --as another-try research:2")]),
    ("rollback", &[("Go back to checkpoint 2", "git handoff rollback research:2")]),
    ("thread list", &[("List all threads", "git handoff thread list")]),
    ("thread show", &[("Show the last checkpoint", "git handoff thread show research")]),
    ("thread log", &[("Draw two threads", "git handoff thread log --graph research writing")]),
    ("thread diff", &[("Show what changed since checkpoint 2", "git handoff thread diff research:2 research")]),
    ("thread cat", &[("Save the state of checkpoint 2", "git handoff thread cat research:2 > state.json")]),
    ("thread verify", &[("Verify every thread", "git handoff thread verify --all")]),
    ("packet new", &[("Write a packet from your answers", "git handoff packet new > packet.json")]),
    ("packet auto", &[("Write a packet about a run", "git handoff packet auto --run nightly > packet.json")]),
    ("packet import", &[("Convert notes", "git handoff packet import -o packet.json notes.md")]),
    (
        "push",
        &[
            ("Push a run", "git handoff push origin nightly"),
            ("Push to a host that accepts branches only", "git handoff push --as-branch handoff origin nightly"),
        ],
    ),
    (
        "fetch",
        &[
            ("Fetch all runs and threads", "git handoff fetch"),
            ("Fetch one run with its transcripts", "git handoff fetch --transcripts origin nightly"),
        ],
    ),
    ("bundle", &[("Write a run to a file", "git handoff bundle -o nightly.bundle nightly")]),
    (
        "anchor add git",
        &[(
            "Hand roots over to another repository",
            "git handoff anchor add vault git ssh://evidence.example.com/vault.git",
        )],
    ),
    (
        "anchor add s3",
        &[("Hand roots over to a bucket", "git handoff anchor add lock s3 evidence --region eu-central-1")],
    ),
    (
        "anchor add rfc3161",
        &[(
            "Have roots time-stamped",
            "git handoff anchor add tsa rfc3161 http://timestamp.example.com/ --ca ~/authorities.pem",
        )],
    ),
    (
        "anchor add program",
        &[("Hand roots over through a program", "git handoff anchor add vault program folder /mnt/write-once")],
    ),
    ("anchor list", &[("List all anchors", "git handoff anchor list")]),
    ("anchor push", &[("Hand over what the anchors lack", "git handoff anchor push")]),
    ("anchor check", &[("Ask one anchor about a run", "git handoff anchor check --anchor vault nightly")]),
    (
        "init",
        &[
            ("Set a repository up by answering questions", "git handoff init"),
            (
                "Set it up without questions",
                "git handoff init --yes --agent claude --check 'cargo test' --protect tests",
            ),
        ],
    ),
    ("key", &[("Save your line for an allowed-signers file", "git handoff key > ada.pub")]),
    ("pipeline validate", &[("Check a pipeline", "git handoff pipeline validate pipeline.json")]),
    ("pipeline add", &[("Let plans use a pipeline", "git handoff pipeline add pipeline.json")]),
    ("pipeline list", &[("List all pipelines", "git handoff pipeline list")]),
    ("pipeline show", &[("Show the blocks of a pipeline", "git handoff pipeline show translate")]),
    ("mcp", &[("Serve an agent, as its client is configured to start it", "git handoff mcp --actor agent:claude")]),
    (
        "doctor",
        &[
            ("Look for what is wrong in a repository", "git handoff doctor"),
            ("Repair what can be repaired without loss", "git handoff doctor --fix"),
        ],
    ),
    (
        "clean",
        &[
            ("List what can be removed", "git handoff clean"),
            ("Remove it, with transcripts", "git handoff clean --force --transcripts"),
            ("Remove the beats of drivers that ended", "git handoff clean --remote --force nightly"),
        ],
    ),
    ("delete", &[("Delete a run without a question", "git handoff delete --yes nightly")]),
    ("archive", &[("Archive runs of more than 90 days ago", "git handoff archive --older-than 90d")]),
    ("unarchive", &[("Bring an archived run back", "git handoff unarchive nightly")]),
    (
        "completions",
        &[(
            "Install them for bash",
            "git handoff completions bash > ~/.local/share/bash-completion/completions/git-handoff",
        )],
    ),
];

/// Returns the examples of a command, or one of each command below it.
pub(super) fn of_command(path: &str) -> Vec<Example> {
    let is_below = |name: &str| name.strip_prefix(path).is_some_and(|rest| rest.starts_with(' '));
    let own = EXAMPLES.iter().filter(|(name, _)| *name == path).flat_map(|(_, examples)| examples.iter());
    let below = EXAMPLES.iter().filter(|(name, _)| is_below(name)).filter_map(|(_, examples)| examples.first());
    own.chain(below).copied().collect()
}

/// Adds their examples to the help of all commands below a command.
pub(super) fn add(command: Command) -> Command {
    add_below(command, "")
}

fn add_below(command: Command, above: &str) -> Command {
    command.mut_subcommands(|below| {
        let path = format!("{above}{}", below.get_name());
        let examples = of_command(&path);
        let below = add_below(below, &format!("{path} "));
        if examples.is_empty() { below } else { below.after_help(render(&examples)) }
    })
}

/// Returns examples as a section of the help.
fn render(examples: &[Example]) -> String {
    let lines = examples.iter().map(|(purpose, line)| format!("\n  {purpose}:\n    {line}"));
    format!("Examples:{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

    use super::super::{Arguments, groups};
    use super::*;

    #[test]
    fn every_command_has_examples_in_its_help() {
        let mut wanted = BTreeSet::new();
        collect(&Arguments::command(), "", &mut wanted);
        let known: BTreeSet<String> = EXAMPLES.iter().map(|(name, _)| (*name).to_owned()).collect();
        let differing: Vec<&String> = wanted.symmetric_difference(&known).collect();
        assert!(differing.is_empty(), "without an example, or without a command: {differing:?}");
        assert_eq!(EXAMPLES.len(), known.len(), "a command is there twice");
        for (name, examples) in EXAMPLES {
            assert!(!examples.is_empty(), "{name} has no example");
        }
        for name in wanted {
            let asked = ["git-handoff"].into_iter().chain(name.split(' ')).chain(["--help"]);
            // A name stands before the kinds of `anchor add`.
            let asked = asked.flat_map(|word| {
                if word == "add" && name.starts_with("anchor add ") { vec![word, "NAME"] } else { vec![word] }
            });
            let help = groups::command().try_get_matches_from(asked).expect_err("it is asked for help").to_string();
            for (purpose, line) in of_command(&name) {
                assert!(
                    help.contains(&format!("  {purpose}:\n    {line}\n")),
                    "the help of {name} lacks {line}:\n{help}"
                );
            }
        }
    }

    #[test]
    fn every_example_is_a_command_line_of_its_command() {
        for (name, examples) in EXAMPLES {
            for (purpose, line) in *examples {
                assert!(line.chars().count() <= 96, "{line} does not fit into a hundred columns");
                assert!(!purpose.contains('`') && !purpose.ends_with(['.', ':']), "{purpose}");
                let words = words(line);
                assert_eq!(words[..2], ["git", "handoff"], "{line}");
                let parsed = groups::command()
                    .try_get_matches_from(std::iter::once("git-handoff").chain(words[2..].iter().map(String::as_str)));
                let matches = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
                assert_eq!(path(&matches), *name, "{line}");
                if let Err(error) = Arguments::from_arg_matches(&matches) {
                    panic!("{line}: {error}");
                }
            }
        }
    }

    #[test]
    fn examples_that_do_not_parse_are_found() {
        for line in ["git handoff run --jobs many plan.json", "git handoff status", "git handoff thread lgo research"] {
            let words = words(line);
            assert!(groups::command().try_get_matches_from(&words[1..]).is_err(), "{line}");
        }
    }

    /// Collects the visible commands that have no subcommands.
    fn collect(command: &Command, above: &str, found: &mut BTreeSet<String>) {
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let path = format!("{above}{}", below.get_name());
            if below.has_subcommands() {
                collect(below, &format!("{path} "), found);
            } else {
                found.insert(path);
            }
        }
    }

    /// Splits a command line as a shell does, up to `>`. It knows single quotes only.
    fn words(line: &str) -> Vec<String> {
        assert!(!line.contains(['"', '\\', '|', '$', ';', '&', '<']), "{line}");
        let command = line.split(" >").next().unwrap_or_default();
        let mut words = Vec::new();
        for (at, part) in command.split('\'').enumerate() {
            if at % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        words
    }

    /// Returns the names of the subcommands that were parsed.
    fn path(matches: &ArgMatches) -> String {
        let mut names = Vec::new();
        let mut matches = matches;
        while let Some((name, below)) = matches.subcommand() {
            names.push(name);
            matches = below;
        }
        names.join(" ")
    }
}
