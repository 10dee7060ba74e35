//! Which of the repository's filters may run over what a worker left.
//!
//! git runs a filter in the folder of the worktree. One whose command is found there, such as `sh tools/clean.sh`, would run
//! what a worker made of it. This is for where nothing confines the worker, who could do the same itself: it spares people a
//! surprise and keeps nobody out, for many programs take from that folder what they do, whatever words call them. Where something
//! confines it, filters run confined by the same ([`Filters`](crate::worker::filters::Filters)), and nothing depends on this.

/// Programs that run a file, or another program, which their arguments name.
const INTERPRETERS: [&str; 19] = [
    "sh", "bash", "dash", "ksh", "zsh", "python", "python2", "python3", "perl", "ruby", "node", "env", "source", ".",
    "exec", "command", "nice", "timeout", "xargs",
];

/// Ways to say where the worktree is; with one of these an absolute path is none.
const WORKTREE: [&str; 5] = ["git rev-parse", "$PWD", "${PWD}", "`pwd`", "$(pwd)"];

/// Returns the part of a filter's command that would be looked for in the worktree; none where there is no such part.
///
/// That is a relative path where a program stands, and what an interpreter, or the option `-f`, is given as its file. A name
/// without a slash is a program of `PATH`. A command that hides better than this is its author's doing: he who wrote it into
/// the configuration is trusted, whoever wrote the file that it names need not be.
pub(super) fn from_worktree(command: &str) -> Option<&str> {
    if let Some(found) = WORKTREE.into_iter().find(|way| command.contains(way)) {
        return Some(found);
    }
    let mut shell = false;
    for part in command.split([';', '&', '|', '(', ')', '`', '\n']) {
        let mut expected = Expected::Program;
        // Quotes hide nothing: what stands in them is looked at like the rest.
        for word in part.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).filter(|word| !word.is_empty()) {
            let value = word.split_once('=').map_or(word, |(_, value)| value);
            let elsewhere = ["/", "~/", "$HOME/", "${HOME}/"].iter().any(|start| value.starts_with(start));
            let named = match expected {
                Expected::Program => value.contains('/') && !elsewhere,
                Expected::File => {
                    !elsewhere && !word.contains('=') && !word.starts_with(['-', '%']) && !is_interpreter(word)
                }
                Expected::Nothing => word.starts_with("--file=") && !elsewhere,
            };
            if named {
                return Some(word);
            }
            expected = match word {
                "-c" if shell => Expected::Program,
                // What follows is a program, or the name of a module, which old Pythons look for in the worktree as well.
                "-c" | "-e" | "-m" => Expected::Nothing,
                "-f" => Expected::File,
                _ if word.starts_with('-') || (word.contains('=') && expected != Expected::Nothing) => expected,
                _ if is_interpreter(word) && expected != Expected::Nothing => {
                    shell = word.ends_with("sh");
                    Expected::File
                }
                _ => Expected::Nothing,
            };
        }
    }
    None
}

/// What the next word of a command is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Program,
    File,
    Nothing,
}

fn is_interpreter(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&bare)
}

#[cfg(test)]
mod tests {
    use super::from_worktree;

    #[test]
    fn commands_of_the_worktree_are_found() {
        for (command, found) in [
            ("sh tools/clean.sh", "tools/clean.sh"),
            ("sh clean.sh %f", "clean.sh"),
            ("./clean %f", "./clean"),
            ("tools/clean", "tools/clean"),
            ("cat | '../clean'", "../clean"),
            ("cd tools && bash -eu clean.sh", "clean.sh"),
            ("python3.11 strip.py", "strip.py"),
            ("/usr/bin/env python strip.py", "strip.py"),
            ("sh -c 'exec tools/clean \"$1\"'", "tools/clean"),
            ("$(git rev-parse --show-toplevel)/tools/x", "git rev-parse"),
            ("\"$PWD\"/x", "$PWD"),
            ("node_modules/.bin/format --stdin", "node_modules/.bin/format"),
            ("sed -f tools/strip.sed", "tools/strip.sed"),
            ("cat | sed --file=strip.sed", "--file=strip.sed"),
        ] {
            assert_eq!(from_worktree(command), Some(found), "{command}");
        }
    }

    #[test]
    fn commands_of_the_system_are_left_alone() {
        for command in [
            "git-lfs clean -- %f",
            "git-lfs filter-process",
            "sed 's,a,b,'",
            "sed s/a/b/",
            "sed -e 's/a/b/' -e 's/c/d/'",
            "tr a/b c/d",
            "cat",
            "\"/usr/bin/python3\" -m nbstripout",
            "python3 -c 'import sys; sys.stdout.write(sys.stdin.read())'",
            "sh /opt/filters/clean.sh %f",
            "~/bin/clean",
            "$HOME/bin/clean %f",
            "age -R https://example.com/keys",
            "/opt/x --config=/etc/x",
            "touch $CANARY; cat",
        ] {
            assert_eq!(from_worktree(command), None, "{command}");
        }
    }
}
