//! The rules of the source that a compiler does not check: who may import whom, where each kind of
//! effect happens, how long a file may be, and what the verifier alone takes along.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules that each module, or a part of one, may import; `cli` and `mcp` may import all of
/// them through `git_handoff::`.
///
/// Imports go one way: from the operations over the ledger to the edges and the pure middle.
const IMPORTS: &[(&str, &[&str])] = &[
    // Pure: no I/O, no clock, no randomness.
    ("model", &[]),
    ("plan", &["model"]),
    // Edges, each the only place of one kind of effect.
    ("clock", &["model"]),
    ("git", &["model"]),
    ("repository::config", &["git", "model"]),
    // The verifier shares the model, the codec, the tree and the check of a signature with the
    // writer, and nothing else.
    ("ledger::merkle", &["model"]),
    ("ledger::sign", &["model"]),
    ("verify", &["git", "ledger::merkle", "ledger::sign", "model", "plan"]),
    // The one chain. A run that bytes are taken from is one that the verifier let pass.
    ("ledger", &["clock", "git", "ledger::merkle", "ledger::sign", "model"]),
    // The front door: everything that is done with runs, threads and documents starts from it.
    ("repository", &["clock", "git", "ledger", "model", "plan", "repository::config", "verify"]),
    // Only `operate` appends to runs. What a run takes from others is found and verified before.
    ("run", &[]),
    ("run::query", &["git", "ledger", "model", "plan", "repository", "verify"]),
    ("run::import", &["git", "ledger", "model", "repository", "run::query", "verify"]),
    ("run::operate", &["git", "ledger", "model", "plan", "repository", "run::import", "run::query", "verify"]),
    // The parts of an attempt know nothing of chains.
    ("sandbox", &["model"]),
    ("process", &["model", "sandbox"]),
    ("worktree", &["git", "model", "process", "sandbox"]),
    // The driver is the one stage that knows the others.
    (
        "engine",
        &[
            "clock",
            "git",
            "ledger",
            "model",
            "plan",
            "process",
            "repository",
            "run::import",
            "run::operate",
            "run::query",
            "sandbox",
            "worktree",
        ],
    ),
    // Pure but for the facts, which are looked up in the repository and its runs.
    ("thread::packet", &["git", "model", "run::query", "verify"]),
    // A thread is read by the verifier before anything is appended to it or taken from it.
    ("thread", &["git", "ledger", "model", "repository", "run::query", "thread::packet", "verify"]),
    // Operations on runs other than driving.
    ("share", &["git", "ledger", "model", "plan", "repository", "run::operate", "run::query", "thread", "verify"]),
    // Anchors are reached from one place; what they answer is judged by the verifier.
    (
        "share::anchor",
        &["clock", "git", "ledger", "model", "repository", "run::operate", "run::query", "share", "thread", "verify"],
    ),
    ("apply", &["git", "model", "run::query"]),
    // Compares applied commits with the record.
    ("whence", &["apply", "git", "ledger", "model", "repository", "run::query", "share::anchor", "verify"]),
    // Pictures of runs and plans: pure.
    ("report::graph", &["model", "plan", "run::query"]),
    // Pages and other people's formats are filled from verified runs.
    ("report::export", &["git", "ledger", "model", "repository", "run::query", "share::anchor", "verify", "whence"]),
    (
        "report",
        &[
            "git",
            "ledger",
            "model",
            "report::graph",
            "repository",
            "run::query",
            "share",
            "share::anchor",
            "thread",
            "verify",
        ],
    ),
    (
        "upkeep",
        &[
            "clock",
            "engine",
            "git",
            "ledger",
            "model",
            "plan",
            "process",
            "repository",
            "run::operate",
            "run::query",
            "sandbox",
            "verify",
            "worktree",
        ],
    ),
    // Answers that combine several modules, and the list of the types of all.
    (
        "answers",
        &[
            "apply",
            "engine",
            "model",
            "plan",
            "report",
            "report::graph",
            "repository",
            "run::import",
            "run::operate",
            "run::query",
            "share",
            "share::anchor",
            "thread",
            "thread::packet",
            "upkeep",
            "verify",
            "whence",
        ],
    ),
];

/// Effects that only some files may have: a name, the words that reveal it, and the files.
const EFFECTS: &[(&str, &[&str], &[&str])] = &[
    (
        "reading the environment",
        &["std::env", "env::var", "env::current_dir"],
        &["bin/git-handoff-attempt.rs", "cli/context.rs"],
    ),
    // Freshening an object's time in the object database is the one use that decides nothing.
    ("reading the clock", &["SystemTime::now", "Timestamp::now"], &["clock.rs", "git/store.rs"]),
    (
        "starting a program",
        &["Command::new"],
        &[
            "process/agent.rs",
            "process/attendant.rs",
            "sandbox/probe.rs",
            "process/supervisor/confined.rs",
            "process/supervisor/exec_setup.rs",
            "engine/shell_line.rs",
            // The user's pager.
            "output/pager.rs",
            "git/program.rs",
            "git/limits.rs",
            // As the person runs it, hooks and all.
            "git/hook.rs",
            "ledger/sign/program.rs",
            "share/anchor/program.rs",
            // This program itself, in little space.
            "cli/context.rs",
        ],
    ),
    ("moving a ref", &["edit_reference"], &["git/refs.rs"]),
    ("speaking HTTP", &["ureq", "TcpStream"], &[]),
    (
        "printing",
        &["io::stdout()", "io::stderr()", "print!(", "println!(", "eprint!(", "eprintln!("],
        &["bin/git-handoff-attempt.rs", "output/mod.rs", "cli/progress.rs", "cli/silence.rs"],
    ),
    ("leaving the process", &["process::exit"], &["output/mod.rs"]),
    // The manual page lists them.
    ("naming refs", &["\"refs/handoff"], &["model/format.rs", "cli/manual.rs"]),
];

/// Crates that the program alone is for; the library is without them.
const PROGRAM: [&str; 4] = ["clap", "console", "indicatif", "rmcp"];

/// Crates that the verifier alone must not depend on.
const DEAR: [&str; 13] = [
    "aho-corasick",
    "clap",
    "cms",
    "console",
    "indicatif",
    "jsonschema",
    "quick-xml",
    "regex",
    "rmcp",
    "rustls-webpki",
    "schemars",
    "tokio",
    "x509-cert",
];

/// Crates that the program of the examples must not depend on, because they take long to build.
const SLOW: [&str; 6] = ["cms", "jsonschema", "ring", "rmcp", "schemars", "x509-cert"];

/// The most lines of a source file before its tests.
const MAX_LINES: usize = 400;

/// A source file of the package.
pub(crate) struct Source {
    /// Its path below `src`, with slashes.
    pub(crate) path: String,
    /// Its text.
    text: String,
}

impl Source {
    /// Returns the room of the library that the file belongs to, or the part of it that has a row
    /// of its own; none for the program.
    fn module(&self) -> Option<String> {
        let parts: Vec<&str> = self.path.strip_suffix(".rs").expect("it is a source file").split('/').collect();
        (!matches!(parts[0], "main" | "bin" | "lib" | "cli" | "mcp" | "output"))
            .then(|| row(parts[0], parts.get(1).copied()))
    }

    /// Returns the numbered lines before the tests, without comments; a file of tests has none.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let text = if self.path.ends_with("/tests.rs") { "" } else { &self.text };
        let code = text.lines().take_while(|line| *line != "#[cfg(test)]").enumerate();
        code.map(|(at, line)| (at + 1, line.split("//").next().unwrap_or(line)))
    }
}

pub(crate) fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file is readable text");
                let below = path.strip_prefix(&root).expect("it lies in src");
                sources.push(Source { path: below.to_str().expect("our names are text").replace('\\', "/"), text });
            }
        }
    }
    sources
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).expect("the folder is readable");
    read.map(|entry| entry.expect("the folder is readable").path()).collect()
}

/// Returns the modules that a line imports from `prefix`: `crate::git::store` and `crate::{git,
/// model}` alike.
fn imported_names<'a>(line: &'a str, prefix: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (at, _) in line.match_indices(prefix) {
        let rest = &line[at + prefix.len()..];
        let list = rest.strip_prefix('{').unwrap_or(rest);
        // Names in inner braces belong to the module before them.
        let mut depth = 0;
        for part in list.split_inclusive([',', '{', '}', ';']) {
            if depth == 0 {
                let part = part.trim();
                let end = part.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(part.len());
                names.extend((end > 0).then_some(&part[..end]));
            }
            depth += part.matches('{').count();
            if part.ends_with('}') && depth > 0 {
                depth -= 1;
            }
            if !rest.starts_with('{') {
                break;
            }
        }
    }
    names
}

#[test]
fn names_are_found_in_every_form_of_an_import() {
    assert_eq!(imported_names("use crate::git::store::{self, Store};", "crate::"), ["git"]);
    assert_eq!(imported_names("use crate::{chain, git::{refs, store}, model};", "crate::"), ["chain", "git", "model"]);
    assert_eq!(imported_names("let x = crate::plan::parse(&crate::model::y());", "crate::"), ["plan", "model"]);
}

/// Returns what stands in the table for a part of a room: its own row, or the room's.
fn row(room: &str, part: Option<&str>) -> String {
    let own = part.map(|part| format!("{room}::{part}"));
    own.filter(|own| IMPORTS.iter().any(|(name, _)| name == own)).unwrap_or_else(|| room.to_owned())
}

/// Returns the rows that a line names: those of the parts of a room, where it names parts.
fn rows(line: &str) -> BTreeSet<String> {
    let mut rows = BTreeSet::new();
    for room in imported_names(line, "crate::") {
        let parts = imported_names(line, &format!("crate::{room}::"));
        if parts.is_empty() {
            rows.insert(room.to_owned());
        }
        rows.extend(parts.into_iter().map(|part| row(room, Some(part))));
    }
    rows
}

#[test]
fn modules_import_only_what_lies_below_them() {
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(module) = source.module() else { continue };
        let Some((_, allowed)) = IMPORTS.iter().find(|(name, _)| *name == module) else {
            wrong.push(format!("{}: the module `{module}` is not in the table", source.path));
            continue;
        };
        for (number, line) in source.lines() {
            for name in rows(line) {
                // A module that may be imported includes its parts.
                let room = name.split(':').next().expect("a name has a first part");
                if name != module && !allowed.contains(&name.as_str()) && !allowed.contains(&room) {
                    wrong.push(format!("src/{}:{number}: `{module}` may not import `{name}`", source.path));
                }
            }
            // The room around a part is not its to use.
            let is_outward = module.contains("::") && source.path.ends_with("/mod.rs") && line.contains("super::");
            if line.contains("git_handoff::") || line.contains("super::super::") || is_outward {
                wrong.push(format!("src/{}:{number}: go through `crate::`", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names of errors in the program, where they are not after the file.
const ERRORS: &[(&str, &str)] = &[
    ("engine/record/sealed.rs", "SettingsError"),
    ("run/operate/open/error.rs", "operate::Error"),
    ("run/query/view.rs", "query::Error"),
    ("share/anchor/rfc3161/stamps.rs", "StampsError"),
    ("share/anchor/rfc3161/token.rs", "TokenError"),
    ("share/anchor/s3/wire.rs", "S3Error"),
];

/// Returns the enums of a file's tables of errors that state codes.
fn coded_errors(source: &Source) -> Vec<&str> {
    let is_code = |after: &str| after.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()).starts_with(':');
    let states_code = |line: &str| line.contains("#[from \"") || line.split('"').skip(2).step_by(2).any(is_code);
    let tables = source.text.split("\nerrors! {\n").skip(1).filter_map(|rest| Some(rest.split_once("\n}")?.0));
    tables
        .filter_map(|table| {
            let (name, rows) = table.split_once("enum ")?.1.split_once(|c: char| !c.is_alphanumeric())?;
            (rows.starts_with("= ") || rows.lines().skip(1).any(states_code)).then_some(name)
        })
        .collect()
}

#[test]
fn the_program_asks_every_error_that_states_a_code() {
    let sources = sources();
    let failures = sources.iter().filter(|source| source.path.starts_with("output/failure"));
    let lines = failures.flat_map(|source| source.text.lines()).filter(|line| !line.starts_with("use "));
    let lines: Vec<&str> = lines.collect();
    // A function with such an argument may decide for some variants only.
    let is_row = |line: &str, name: &str| {
        line.match_indices(name).any(|(at, _)| {
            let after = &line[at + name.len()..];
            let before = line[..at].trim_end_matches(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
            !before.ends_with('&') && (after.is_empty() || after.starts_with([',', ' ']))
        })
    };
    let (mut stated, mut missing) = (0, Vec::new());
    for source in &sources {
        for name in coded_errors(source) {
            let path = source.path.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches("/error");
            let module = path.rsplit('/').next().expect("a path has a last part");
            let other_name = ERRORS.iter().find(|(file, _)| *file == source.path).map(|(_, label)| (*label).to_owned());
            let after_file = if name == "Error" { format!("{module}::Error") } else { name.to_owned() };
            let second_name = other_name.unwrap_or(after_file);
            stated += 1;
            if !lines.iter().any(|line| is_row(line, &second_name)) {
                missing.push(format!("{}: {second_name}", source.path));
            }
        }
    }
    assert!(stated > 80, "{stated} enums state codes");
    assert!(missing.is_empty(), "a failure with these errors would be called a defect: {}", missing.join(", "));
}

#[test]
fn the_table_of_imports_has_no_circle_and_no_stranger() {
    let mut below = BTreeSet::new();
    for (module, imports) in IMPORTS {
        for import in *imports {
            assert!(
                below.contains(import),
                "`{module}` imports `{import}`, which does not stand above it in the table"
            );
        }
        below.insert(*module);
    }
    let here: BTreeSet<String> = sources().iter().filter_map(Source::module).collect();
    let gone: Vec<_> = below.iter().filter(|module| !here.contains(**module)).collect();
    assert!(gone.is_empty(), "the table names modules that do not exist: {gone:?}");
}

#[test]
fn the_rooms_of_the_program_import_one_way() {
    // `cli` serves `mcp`, and both use `output`, which knows neither.
    let below = |room: &str| match room {
        "cli" => &["crate::mcp::", "crate::output::"][..],
        "mcp" => &["crate::output::"],
        _ => &[],
    };
    let sources = sources();
    for source in sources.iter().filter(|source| source.module().is_none() && source.path != "lib.rs") {
        let room = source.path.split('/').next().expect("a path has a first part");
        for (number, line) in source.lines() {
            let rest = below(room).iter().fold(line.to_owned(), |line, below| line.replace(below, ""));
            assert!(!rest.contains("crate::"), "src/{}:{number}: name siblings through `super::`", source.path);
        }
    }
}

#[test]
fn mcp_takes_from_the_output_only_how_things_end() {
    let ends = ["Ending", "Failure", "Output"];
    for source in sources().iter().filter(|source| source.path.starts_with("mcp/")) {
        for (number, line) in source.lines() {
            let other: Vec<_> =
                imported_names(line, "crate::output::").into_iter().filter(|name| !ends.contains(name)).collect();
            assert!(other.is_empty(), "src/{}:{number}: {other:?} belongs into the library", source.path);
        }
    }
}

#[test]
fn the_library_is_without_the_crates_of_the_program() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| source.module().is_some()) {
        for (number, line) in source.lines() {
            let used = PROGRAM.iter().filter(|name| line.contains(&format!("{name}::")));
            wrong.extend(used.map(|name| format!("src/{}:{number}: {name} belongs into `cli` or `mcp`", source.path)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn without_features_there_is_the_verifier_and_what_it_imports() {
    let (_, imports) = IMPORTS.iter().find(|(name, _)| *name == "verify").expect("the verifier is a module");
    let verifier: BTreeSet<&str> = imports.iter().copied().chain(["verify"]).collect();
    let sources = sources();
    let alone = |path: &str| -> Vec<String> {
        let declaring = sources.iter().find(|source| source.path == path).expect("there is such a file");
        let lines: Vec<&str> = declaring.text.lines().collect();
        let alone = lines.windows(2).filter(|two| two[0] != "#[cfg(feature = \"core\")]");
        alone.filter_map(|two| Some(two[1].strip_prefix("pub mod ")?.strip_suffix(';')?.to_owned())).collect()
    };
    let parts = |room: String| match room.as_str() {
        "ledger" => alone("ledger/mod.rs").iter().map(|part| format!("{room}::{part}")).collect(),
        _ => vec![room],
    };
    let here: BTreeSet<String> = alone("lib.rs").into_iter().flat_map(parts).collect();
    assert_eq!(here.iter().map(String::as_str).collect::<BTreeSet<_>>(), verifier);
}

#[test]
fn smaller_builds_take_no_dear_crate_along() {
    let crates_with = |features: &[&str]| -> BTreeSet<String> {
        let tree = ["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}", "--locked", "--offline"];
        let run =
            Command::new(env!("CARGO")).args(tree).args(features).current_dir(env!("CARGO_MANIFEST_DIR")).output();
        let run = run.expect("cargo can be run");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let lines = String::from_utf8(run.stdout).expect("cargo prints text");
        lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    };
    let all = crates_with(&[]);
    let verifier = crates_with(&["--no-default-features"]);
    for dear in DEAR {
        assert!(all.contains(dear), "the program does without {dear}; so does this list");
        assert!(!verifier.contains(dear), "the verifier takes {dear} along");
    }
    let program = crates_with(&["--no-default-features", "--features", "cli"]);
    for slow in SLOW {
        assert!(all.contains(slow), "the program does without {slow}; so does this list");
        assert!(!program.contains(slow), "the program of the examples takes {slow} along");
    }
}

#[test]
fn the_embedding_example_takes_the_versions_that_are_tested_here() {
    let packages = |path: &str| -> BTreeSet<String> {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("there is a lock file");
        let packages = text.split("[[package]]\n").skip(1).filter(|package| package.contains("\nsource = "));
        packages.map(|package| package.lines().take(2).collect::<Vec<_>>().join(" ")).collect()
    };
    let here = packages("Cargo.lock");
    let there = packages("examples/embed/Cargo.lock");
    let others: Vec<_> = there.difference(&here).collect();
    let mend = "cp Cargo.lock examples/embed/ && cargo update --workspace --manifest-path examples/embed/Cargo.toml";
    assert!(others.is_empty() && !there.is_empty(), "examples/embed/Cargo.lock has {others:?}; mend it with {mend}");
}

#[test]
fn each_kind_of_effect_has_one_place() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (effect, words, places) in EFFECTS {
            if places.contains(&source.path.as_str()) {
                continue;
            }
            for (number, line) in source.lines() {
                if words.iter().any(|word| line.contains(word)) {
                    wrong.push(format!("src/{}:{number}: {effect} belongs into {places:?}", source.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_is_long_and_none_is_unfinished() {
    let unfinished = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["XX", "X"].concat()];
    let mut wrong = Vec::new();
    for source in sources() {
        let lines = source.lines().count();
        if lines > MAX_LINES {
            wrong.push(format!("src/{}: {lines} lines before its tests, more than {MAX_LINES}", source.path));
        }
        for (at, line) in source.text.lines().enumerate() {
            if unfinished.iter().any(|word| line.contains(word)) {
                wrong.push(format!("src/{}:{}: unfinished: {}", source.path, at + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_error_hides_the_one_that_it_wraps() {
    let mut wrong = Vec::new();
    for source in sources() {
        let hiding = source.lines().filter(|(_, line)| line.contains("#[error(transparent)]"));
        wrong.extend(hiding.map(|(number, _)| format!("src/{}:{number}", source.path)));
    }
    let mend = "the rules for failures do not see the source of a transparent error; write #[error(\"{0}\")]";
    assert!(wrong.is_empty(), "{mend}:\n{}", wrong.join("\n"));
}

#[test]
fn every_file_of_tests_is_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let declared = fs::read_to_string(root.join("it.rs")).expect("the integration binary has a root");
    for path in entries(&root) {
        let name = path.file_stem().and_then(|stem| stem.to_str()).expect("our names are text");
        let holds_tests = path.extension().is_some_and(|e| e == "rs") || path.join("mod.rs").exists();
        if holds_tests && name != "it" {
            assert!(declared.contains(&format!("\nmod {name};")), "tests/it.rs does not declare `mod {name};`");
        }
    }
}
