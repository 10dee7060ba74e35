//! Test runners and one added file: with the settings that `init` writes, none makes a check green.
//!
//! `.ci/tools` plays the stories of all runners; here are those whose program is on this machine
//! without an installation.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use git_handoff::model::protectable::{FURTHER, RUNNERS, Runner, runner};
use git_handoff::model::protected::pathspec_fault;
use serde::Deserialize;
use serde_json::json;

use crate::common::repo::{TestRepo, item};
use crate::common::{Environment, Output};

/// Files by their paths.
type Files = BTreeMap<String, String>;

/// A repository whose check fails.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Story {
    runner: String,
    /// The programs that it takes.
    needs: Vec<String>,
    check: String,
    files: Files,
    /// Files, each of which alone makes the check green if nothing is protected.
    bends: Files,
    /// Works whose check passes.
    honest: BTreeMap<String, Files>,
}

fn stories() -> Vec<Story> {
    serde_json::from_str(include_str!("runners.json")).unwrap()
}

/// Plays the stories of a runner. Returns false, and prints why, if a program is missing.
fn play(name: &str) -> bool {
    let stories: Vec<Story> = stories().into_iter().filter(|story| story.runner == name).collect();
    assert!(!stories.is_empty(), "there is no story of {name}");
    stories.iter().all(Story::play)
}

impl Story {
    fn play(&self) -> bool {
        let bare = self.repository(&["--no-protect"]);
        let missing =
            self.needs.iter().find(|name| bare.env.shell(".", &format!("command -v {name}")).status != Some(0));
        if let Some(program) = missing {
            let line = format!("SKIPPED: {}: {program} is not installed\n", self.runner);
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            return false;
        }
        let guarded = self.repository(&[]);
        let mut bends: BTreeMap<String, Files> =
            self.bends.iter().map(|(path, text)| (path.clone(), Files::from([(path.clone(), text.clone())]))).collect();
        let none = || Vec::<String>::new();
        assert_eq!(not_green(&guarded, "bends", &bends), bends.keys().cloned().collect::<Vec<_>>(), "{}", self.runner);
        assert_eq!(not_green(&guarded, "honest", &self.honest), none(), "{}", self.runner);
        // Unprotected, each file bends the check, and the check fails without one.
        bends.insert("no change".to_owned(), Files::new());
        assert_eq!(not_green(&bare, "bends", &bends), ["no change"], "{}", self.runner);
        true
    }

    /// Makes the repository, with the settings of `init`.
    fn repository(&self, options: &[&str]) -> TestRepo {
        let repo = TestRepo { env: Environment::empty() };
        repo.env.git_in(".", ["init", "--quiet", "repo"]).success();
        self.files.iter().for_each(|(path, text)| repo.env.write(&format!("repo/{path}"), text));
        repo.env.git(["add", "--all"]).success();
        repo.env.git(["commit", "--quiet", "--message", "Start"]).success();
        let set = ["init", "--yes", "--check", &self.check].into_iter().chain(options.iter().copied());
        repo.env.handoff(set).success();
        repo.config("handoff.executor.command.onVerifyFail", "keep");
        give_rust(&repo);
        repo
    }
}

/// Links the programs of Rust to where no home directory chooses among toolchains.
fn give_rust(repo: &TestRepo) {
    let Ok(rustc) = Command::new("rustc").args(["--print", "sysroot"]).output() else { return };
    let folder = Path::new(String::from_utf8_lossy(&rustc.stdout).trim()).join("bin");
    fs::create_dir(repo.path("programs")).unwrap();
    for program in ["cargo", "rustc", "rustdoc"] {
        symlink(folder.join(program), repo.path("programs").join(program)).unwrap();
    }
}

/// Runs one item for each work. Returns the names of those that are not green.
fn not_green(repo: &TestRepo, run: &str, works: &BTreeMap<String, Files>) -> Vec<String> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let write = |(path, text): (&String, &String)| {
        let (path, text) = (quoted(path), quoted(text));
        format!("mkdir -p \"$(dirname {path})\" && printf %s {text} >{path}; ")
    };
    let script = |files: &Files| files.iter().map(write).collect::<String>() + "true";
    let items: Vec<_> = works.values().enumerate().map(|(at, files)| item(&format!("i{at}"), &script(files))).collect();
    let ended = repo.drive(run, &items);
    assert!(matches!(ended.status, Some(0 | 4)), "{ended}");
    let status = repo.status(run);
    let is_green = |at: usize| status["items"][at]["status"] == "done" && status["items"][at]["red"] != true;
    works.keys().enumerate().filter(|(at, _)| !is_green(*at)).map(|(_, name)| name.clone()).collect()
}

#[test]
fn no_added_file_bends_make() {
    assert!(play("make"));
}

#[test]
fn no_added_file_bends_cargo() {
    assert!(play("cargo"));
}

#[test]
fn no_added_file_bends_npm() {
    play("npm");
}

#[test]
fn no_added_file_bends_python() {
    for runner in ["python", "pytest", "python -m pytest"] {
        play(runner);
    }
}

#[test]
fn no_added_file_bends_go() {
    play("go");
}

/// Commits files to a new repository and sets it up with a check.
fn set_up(files: &[&str], options: &[&str]) -> (TestRepo, Output) {
    let repo = TestRepo { env: Environment::empty() };
    repo.env.git_in(".", ["init", "--quiet", "repo"]).success();
    files.iter().for_each(|path| repo.env.write(&format!("repo/{path}"), "x\n"));
    repo.env.git(["add", "--all"]).success();
    repo.env.git(["commit", "--quiet", "--message", "Start"]).success();
    let set = ["init", "--yes", "--check", "true"].into_iter().chain(options.iter().copied());
    let output = repo.env.handoff(set).exit(0);
    (repo, output)
}

fn protected(repo: &TestRepo) -> Vec<String> {
    let set = repo.env.git(["config", "--get-all", "handoff.protect"]).stdout;
    set.lines().map(str::to_owned).collect()
}

fn find(name: &str) -> &'static Runner {
    RUNNERS.iter().find(|runner| runner.name == name).unwrap()
}

#[test]
fn a_recognised_runner_protects_names_that_are_not_there_yet() {
    let (repo, output) = set_up(&["Makefile"], &[]);
    assert_eq!(protected(&repo), [&["Makefile"][..], &find("make").files].concat());
    let lines = "+ handoff.executor.command.verify = true\n\
                 + handoff.protect = Makefile\n\
                 + handoff.protect = 3 lines for make: GNUmakefile, makefile, *.mk\n\
                 + handoff.onProtectedChange = judge\n";
    assert_eq!(output.stdout, lines);
    assert_eq!(output.stderr, "changed 6 lines in $TEST/repo/.git/config\nhint: git handoff plan new\n");
    // A name of the list that is missing is no mistake, and a name of one's own is.
    assert_eq!(repo.env.handoff(["validate", &repo.plan("r", &[item("a", "true")])]).exit(0).stderr, "");
    let found = repo.env.handoff(["doctor", "--json"]).success();
    assert!(!found.contains("protects-nothing"), "{found}");
    repo.env.git(["config", "--add", "handoff.protect", "GNUMakefile"]).success();
    let doctor_found = repo.env.handoff(["doctor", "--json"]).success();
    assert!(doctor_found.contains("protects-nothing"), "{doctor_found}");
}

#[test]
fn init_reports_unprotected_manifests() {
    let command = "protect it with git config --add handoff.protect";
    let why = "not protected, since honest work changes it";
    let (repo, output) = set_up(&["package.json"], &[]);
    let note = format!("{why}: package.json; {command} package.json");
    assert_eq!(output.stderr.lines().next(), Some(note.as_str()));
    let set = protected(&repo);
    assert!(!set.iter().any(|it| it.contains("package.json")), "{set:?}");
    assert!(set.contains(&":(glob)**/vite.config.*".to_owned()), "{set:?}");
    // The command protects it for good.
    repo.env.shell("repo", note.split_once("with ").unwrap().1).success();
    repo.drive("r", &[item("a", "echo y >package.json")]).ends(0);
    assert_eq!(repo.status("r")["items"][0]["judged"], true);
    // One that several folders have, and one in a folder.
    let (_, folders_output) = set_up(&["a/Cargo.toml", "b/Cargo.toml", "web/package.json"], &[]);
    let notes = [
        format!("{why}: Cargo.toml; {command} ':(glob)**/Cargo.toml'"),
        format!("{why}: web/package.json; {command} web/package.json"),
    ];
    assert_eq!(folders_output.stderr.lines().take(2).collect::<Vec<_>>(), notes);
    let (_, json_output) = set_up(&["pyproject.toml"], &["--json"]);
    let answer: serde_json::Value = serde_json::from_str(&json_output.stdout).unwrap();
    assert_eq!(answer["notes"], json!([format!("{why}: pyproject.toml; {command} pyproject.toml")]));
    // Files of one's own choice, or none, leave nothing out.
    for options in [&["--protect", "package.json"][..], &["--no-protect"]] {
        let (_, options_output) = set_up(&["package.json"], options);
        assert!(!options_output.stderr.contains("not protected"), "{options_output}");
    }
}

#[test]
fn code_of_others_and_samples_are_no_sign_of_a_runner() {
    let (repo, _) = set_up(&["vendor/a/Cargo.toml", "fixtures/package.json", "a.txt"], &[]);
    assert_eq!(protected(&repo), Vec::<String>::new());
    let (second_repo, output) = set_up(&["go.mod", "vendor/modules.txt", "vendor/a/Makefile"], &[]);
    assert_eq!(protected(&second_repo), find("Go").files);
    assert!(output.stderr.contains("changes it: vendor/modules.txt; "), "{output}");
}

#[test]
fn each_known_pathspec_can_protect_and_belongs_to_one_runner() {
    let mut known: Vec<&str> = FURTHER.to_vec();
    for one in RUNNERS.iter() {
        for pathspec in one.files.iter().chain(&one.manifests).chain(&one.built) {
            assert_eq!(pathspec_fault(pathspec), None, "{pathspec}");
            let owner = (!one.built.contains(pathspec)).then_some(one.name);
            assert_eq!(runner(pathspec).map(|runner| runner.name), owner, "{pathspec}");
            known.push(pathspec);
        }
    }
    let all = known.len();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len(), all);
}

#[test]
fn files_of_setup_survive_the_check() {
    let signs = [
        "Cargo.toml",
        "docs/Makefile",
        "package.json",
        "setup.py",
        "go.work",
        "settings.gradle.kts",
        "pom.xml",
        "app.sln",
        "phpunit.xml",
        "Rakefile",
    ];
    let (repo, _) = set_up(&signs, &[]);
    let installed = [
        ".venv/lib/python3.12/site-packages/jax/test_util.py",
        ".venv/lib/python3.12/site-packages/twisted/trial/unittest.py",
        ".venv/lib/python3.12/site-packages/pluggy/__init__.py",
        "node_modules/@react-native/gradle-plugin/settings.gradle.kts",
        "node_modules/react-native/ReactAndroid/build.gradle.kts",
        "node_modules/react-native/Libraries/Core/__mocks__/ErrorUtils.js",
        "vendor/twig/twig/src/TwigTest.php",
        "vendor/bundle/ruby/3.1.0/specifications/rspec-3.12.0.gemspec",
        "vendor/bundle/ruby/3.1.0/gems/minitest-5.0.0/lib/minitest/spec.rb",
        "Makefile",
        "build/Makefile",
        "obj/app.csproj.nuget.g.props",
        "target/debug/build.rs",
    ];
    installed.iter().for_each(|path| repo.env.write(&format!("repo/{path}"), "x\n"));
    let listed = |pathspecs: &[String]| {
        let options = ["ls-files", "--others", "--"].map(str::to_owned);
        repo.env.git([&options, pathspecs].concat()).success()
    };
    assert_eq!(listed(&[]).lines().count(), installed.len());
    assert_eq!(listed(&protected(&repo)), "");
}

/// .NET is on few machines. `MSBuild`, `NuGet` and the test platform read these files by name.
#[test]
fn the_files_of_dotnet_are_selected() {
    let read = [
        "Directory.Build.props",
        "Directory.Build.rsp",
        "Directory.Build.targets",
        "Directory.Solution.props",
        "before.App.sln.targets",
        "after.App.sln.targets",
        "src/App/App.csproj.user",
        "src/global.json",
        "nuget.config",
        "NuGet.Config",
        "ci/default.runsettings",
        ".runsettings",
        "tests/xunit.runner.json",
        "tests/App.testconfig.json",
        ".config/dotnet-tools.json",
        "test-app/AppTests.cs",
    ];
    let (repo, output) = set_up(&["src/App/App.csproj", "Directory.Packages.props", "src/App/App.cs"], &[]);
    for name in ["src/App/App.csproj", "Directory.Packages.props"] {
        assert!(output.stderr.contains(&format!("changes it: {name}; ")), "{output}");
    }
    let adds: Vec<_> = read
        .iter()
        .enumerate()
        .map(|(at, path)| item(&format!("i{at}"), &format!("mkdir -p \"$(dirname {path})\"; echo x >{path}")))
        .collect();
    repo.config("handoff.onProtectedChange", "red");
    repo.drive("adds", &adds).ends(4);
    let status = repo.status("adds");
    for (at, path) in read.iter().enumerate() {
        assert_eq!(status["items"][at]["protected"], json!([{"path": path, "change": "added"}]), "{path}");
    }
    let works = ["src/App/App.csproj", "Directory.Packages.props", "src/App/App.cs"];
    let works: Vec<_> =
        works.iter().enumerate().map(|(at, path)| item(&format!("i{at}"), &format!("echo y >{path}"))).collect();
    repo.drive("works", &works).ends(0);
}
