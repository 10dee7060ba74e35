//! Agents' folders: what a worker writes there reaches no other item and never the user's, except
//! for a login that it renews.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::scene::{Layers, Scene, has_bubblewrap};
use crate::common::repo::{after, item, wait_for};

/// The login in the beginning, and a renewed one.
const OLD: &str = r#"{"claudeAiOauth":{"refreshToken":"old"}}"#;
const NEW: &str = r#"{"claudeAiOauth":{"refreshToken":"new"}}"#;

/// The login of Claude Code, below the home directory.
const LOGIN: &str = "home/.claude/.credentials.json";

/// Returns the layers to test on this machine.
fn layers(what: &str) -> Vec<Layers> {
    let mut layers = vec![Layers::Inner];
    layers.extend(has_bubblewrap(what).then_some(Layers::All));
    layers
}

/// Makes a repository whose workers get Claude Code's folder as `init` writes it.
fn scene(layers: Layers) -> Scene {
    let scene = Scene::new(layers);
    for (path, text) in [
        (LOGIN, OLD),
        ("home/.claude/settings.json", r#"{"model":"opus"}"#),
        ("home/.claude/projects/mine/session.jsonl", "mine"),
        ("home/.claude.json", r#"{"mcpServers":{}}"#),
    ] {
        scene.repo.env.write(path, text);
    }
    give(&scene, "private", &["~/.claude", "~/.claude.json"]);
    scene
}

fn give(scene: &Scene, field: &str, paths: &[&str]) {
    for path in paths {
        scene.repo.env.git(["config", "--add", &format!("handoff.executor.command.{field}"), path]).success();
    }
}

fn read(scene: &Scene, path: &str) -> String {
    fs::read_to_string(scene.repo.path(path)).unwrap()
}

/// Returns the names and contents of the user's folder.
fn own_files(scene: &Scene) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![scene.repo.path("home/.claude")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                found.push((entry.path().display().to_string(), fs::read_to_string(entry.path()).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Runs a script after which the user's login has some text, and returns what the driver printed.
#[track_caller]
fn renews(scene: &Scene, run: &str, script: &str, expected: &str) -> String {
    let output = scene.drive(run, &[item("a", script)]).exit(0);
    assert_eq!(read(scene, LOGIN), expected, "{run}: {output}");
    output.stderr
}

#[test]
fn worker_files_reach_neither_user_nor_other_items() {
    for layers in layers("agents' folders with bubblewrap") {
        let scene = scene(layers);
        let before = own_files(&scene);
        let author = "cd ~/.claude && grep -q opus settings.json && grep -q old .credentials.json && grep -q mcp ~/.claude.json && \
                      test ! -e projects && mkdir -p hooks projects/x && echo evil >hooks/x.sh && echo evil >settings.json && \
                      echo evil >CLAUDE.md && echo evil >projects/x/session && echo evil >~/.claude.json && echo evil >settings.local.json";
        let review = "cd ~/.claude && grep -q opus settings.json && grep -q mcp ~/.claude.json && test ! -e hooks && test ! -e projects && \
                      test ! -e CLAUDE.md && test ! -e settings.local.json";
        scene.drive("r", &[item("author", author), after("review", &["author"], review)]).ends(0);
        assert_eq!(own_files(&scene), before, "{layers:?}");
        assert_eq!(read(&scene, "home/.claude.json"), r#"{"mcpServers":{}}"#);
        // The user's own folder is out of reach by its path too.
        let settings = scene.repo.path("home/.claude/settings.json");
        let out = format!("! cat {0} && ! echo evil >>{0}", settings.display());
        scene.drive("path", &[item("a", &out)]).ends(0);
        assert_eq!(own_files(&scene), before, "{layers:?}");
    }
}

#[test]
fn a_renewed_login_is_the_users_at_once() {
    for layers in layers("a login with bubblewrap") {
        let scene = scene(layers);
        let real = scene.repo.path(LOGIN);
        renews(&scene, "in-place", &format!("echo '{NEW}' >~/.claude/.credentials.json"), &format!("{NEW}\n"));
        fs::write(&real, OLD).unwrap();
        let rename = format!("cd ~/.claude && printf '{NEW}' >new && mv new .credentials.json");
        renews(&scene, "rename", &rename, NEW);
        // While the attempt runs, and more than once.
        fs::write(&real, OLD).unwrap();
        let again = NEW.replace("new", "newer");
        let script = format!("{rename} && sleep 4 && printf '{again}' >new && mv new .credentials.json && sleep 4");
        let plan = scene.repo.plan("during", &[item("a", &script)]);
        std::thread::scope(|scope| {
            let driven = scope.spawn(|| scene.handoff(&["run", &plan]));
            wait_for("the first new login", || read(&scene, LOGIN) == NEW);
            wait_for("the second new login", || read(&scene, LOGIN) == again);
            driven.join().unwrap().ends(0);
        });
        let names: Vec<_> =
            fs::read_dir(scene.repo.path("home/.claude")).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names.len(), 3, "nothing is created in the user's folder: {names:?}");
    }
}

#[test]
fn invalid_login_is_not_copied_back() {
    for layers in layers("planted logins with bubblewrap") {
        let scene = scene(layers);
        scene.repo.env.write("beside/login", OLD);
        let outside_login = scene.repo.path("beside/login");
        let warning =
            |why: &str| format!("a: the login in {} is not renewed: {why}\n", scene.repo.path(LOGIN).display());
        for (run, script, note) in [
            ("link", format!("rm .credentials.json && ln -s {} .credentials.json", outside_login.display()), None),
            ("pipe", "rm .credentials.json && mkfifo .credentials.json".to_owned(), None),
            ("folder", "rm .credentials.json && mkdir .credentials.json".to_owned(), None),
            ("gone", "rm .credentials.json".to_owned(), None),
            ("away", "cd .. && rm -r .claude && ln -s /etc .claude".to_owned(), None),
            ("large", "head -c 2000000 /dev/zero >new && mv new .credentials.json".to_owned(), Some("it is too large")),
            ("text", "echo evil >new && mv new .credentials.json".to_owned(), Some("it is not a login")),
            ("empty", ": >new && mv new .credentials.json".to_owned(), Some("it is not a login")),
        ] {
            let printed = renews(&scene, run, &format!("cd ~/.claude/. && {script}"), OLD);
            assert!(note.is_none_or(|why| printed.contains(&warning(why))), "{run}: {printed}");
            assert_eq!(fs::read_to_string(&outside_login).unwrap(), OLD, "{run}");
        }
    }
}

#[test]
fn a_login_that_changed_meanwhile_stays() {
    for layers in layers("a login that two change, with bubblewrap") {
        let scene = scene(layers);
        let theirs = NEW.replace("new", "theirs");
        let script =
            format!("cd ~/.claude && touch began && sleep 4 && printf '{NEW}' >new && mv new .credentials.json");
        let plan = scene.repo.plan("both", &[item("a", &script)]);
        let output = std::thread::scope(|scope| {
            let driven = scope.spawn(|| scene.handoff(&["run", &plan]));
            let began = || walk(&scene.repo.path("worktrees")).iter().any(|path| path.ends_with(".claude/began"));
            wait_for("the worker", began);
            // As another process of the agent renews it.
            let new = scene.repo.path("home/.claude/theirs");
            fs::write(&new, &theirs).unwrap();
            fs::rename(new, scene.repo.path(LOGIN)).unwrap();
            driven.join().unwrap().exit(0)
        });
        assert_eq!(read(&scene, LOGIN), theirs);
        assert!(output.stderr.contains("is not renewed: yours changed meanwhile\n"), "{output}");
    }
}

#[test]
fn a_killed_driver_costs_no_login() {
    for layers in layers("a killed driver, with bubblewrap") {
        let scene = scene(layers);
        let script = format!(
            "test -e ~/.claude/again || {{ cd ~/.claude && printf '{NEW}' >new && mv new .credentials.json && touch again && sleep 600; }}"
        );
        let plan = scene.repo.plan("killed", &[item("a", &script)]);
        scene.handoff(&["submit", &plan]).ends(0);
        let mut driver = scene.repo.env.command(scene.repo.path("bin/git-handoff"), "repo");
        driver.args(["run", "killed"]).env_remove("GIT_CONFIG_GLOBAL").env("PATH", scene.path());
        let mut driver = driver.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let is_renewed = || walk(&scene.repo.path("worktrees")).iter().any(|path| path.ends_with(".claude/again"));
        wait_for("the worker", is_renewed);
        driver.kill().unwrap();
        driver.wait().unwrap();
        let output = scene.handoff(&["run", "killed"]).exit(0);
        assert_eq!(read(&scene, LOGIN), NEW, "{output}");
    }
}

#[test]
fn data_of_sessions_is_for_the_next_attempt_of_the_same_item_alone() {
    for layers in layers("sessions with bubblewrap") {
        let scene = scene(layers);
        let script = "cd ~/.claude && if test -e projects; then grep -q opus settings.json && test ! -e hooks && cat projects/s; else mkdir projects hooks && \
                      echo first >projects/s && echo evil >settings.json && false; fi";
        let mut tried = item("tried", script);
        tried["maxAttempts"] = json!(2);
        let other = after("other", &["tried"], "test ! -e ~/.claude/projects");
        scene.drive("one", &[tried.clone(), other]).ends(0);
        assert_eq!(scene.handoff(&["cat", "one/tried:transcript"]).stdout, "first\n");
        // An open run keeps neither settings nor the login.
        let failed = scene
            .drive("open", &[item("tried", "mkdir -p ~/.claude/projects && touch ~/.claude/projects/kept && false")]);
        assert_eq!(failed.status, Some(4), "{failed}");
        let saved: Vec<_> =
            walk(&scene.repo.path("worktrees")).into_iter().filter(|path| path.contains("/.claude/")).collect();
        assert!(saved.iter().all(|path| path.contains("/.claude/projects")) && saved.len() == 2, "{saved:?}");
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&fs::metadata(scene.repo.path(LOGIN)).unwrap()), 1);
        scene.handoff(&["delete", "--yes", "open"]).ends(0);
        // Another run begins with nothing, and nothing stays on disk.
        scene.drive("two", &[item("tried", "test ! -e ~/.claude/projects")]).ends(0);
        let left: Vec<_> =
            walk(&scene.repo.path("worktrees")).into_iter().filter(|path| path.contains("projects")).collect();
        assert_eq!(left, Vec::<String>::new());
    }
}

#[test]
fn links_to_settings_are_followed_but_to_no_secret() {
    let scene = scene(Layers::Inner);
    scene.repo.env.write("home/dotfiles/claude.md", "be brief");
    for (target, link) in
        [("../dotfiles/claude.md", "CLAUDE.md"), ("../.ssh", "agents"), ("../.ssh/id_ed25519", "statusline.sh")]
    {
        symlink(target, scene.repo.path("home/.claude").join(link)).unwrap();
    }
    fs::create_dir(scene.repo.path("home/.claude/skills")).unwrap();
    symlink("../../.netrc", scene.repo.path("home/.claude/skills/x")).unwrap();
    let script = "cd ~/.claude && cat CLAUDE.md && ls -A skills && ! test -e agents && ! test -e statusline.sh";
    assert_eq!(scene.run_script("links", script), "be brief");
}

#[test]
fn the_variable_of_an_agent_is_followed_and_of_two_logins_its_wins() {
    for layers in layers("moved folders with bubblewrap") {
        let scene = scene(layers);
        let moved = NEW.replace("new", "work");
        scene.repo.env.write("home/accounts/work/.credentials.json", &moved);
        scene.repo.env.write("home/accounts/work/settings.json", "work");
        scene.repo.env.write("home/accounts/work/.claude.json", "work");
        let place = scene.repo.path("home/accounts/work");
        let place = place.to_str().unwrap();
        let script = format!(
            "cd ~/.claude && grep -q work .credentials.json && grep -q work settings.json && grep -q work ~/.claude.json && \
             ! cat {place}/settings.json && printf '{NEW}' >new && mv new .credentials.json"
        );
        let plan = scene.repo.plan("moved", &[item("a", &script)]);
        scene.handoff_where(&["run", &plan], &[("CLAUDE_CONFIG_DIR", place)]).ends(0);
        assert_eq!(read(&scene, "home/accounts/work/.credentials.json"), NEW);
        assert_eq!(read(&scene, LOGIN), OLD);
        let real = scene.repo.path("home/accounts/work/settings.json");
        scene.repo.config("handoff.executor.command.home", "real");
        let second_script = format!(
            "test $CLAUDE_CONFIG_DIR != {place} && cd $CLAUDE_CONFIG_DIR && grep -q work settings.json && grep -q work .claude.json && \
             echo evil >settings.json && ! echo evil >{}",
            real.display()
        );
        let second_plan = scene.repo.plan("real", &[item("a", &second_script)]);
        scene.handoff_where(&["run", &second_plan], &[("CLAUDE_CONFIG_DIR", place)]).ends(0);
        assert_eq!(fs::read_to_string(real).unwrap(), "work");
    }
}

#[test]
fn without_a_hard_link_a_login_is_a_link() {
    for layers in layers("a login on another file system, with bubblewrap") {
        let scene = scene(layers);
        let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
        scene
            .repo
            .env
            .write("home/.gitconfig", &format!("{}\troot = {}\n", gitconfig(&scene), elsewhere.path().display()));
        renews(&scene, "in-place", &format!("printf '{NEW}' >~/.claude/.credentials.json"), NEW);
        let script = format!("cd ~/.claude && printf '{OLD}' >new && mv new .credentials.json && sleep 3");
        renews(&scene, "rename", &script, OLD);
    }
}

/// Returns the user's settings up to the folder of worktrees.
fn gitconfig(scene: &Scene) -> String {
    let text = read(scene, "home/.gitconfig");
    text.split("\troot = ").next().unwrap().to_owned()
}

#[test]
fn a_login_that_could_run_something_is_checked() {
    let scene = Scene::new(Layers::Inner);
    let place = "home/.local/share/opencode/auth.json";
    let old = r#"{"anthropic":{"type":"oauth","refresh":"old"}}"#;
    scene.repo.env.write(place, old);
    give(&scene, "private", &["~/.local/share/opencode"]);
    let evil = r#"{"anthropic":{"type":"oauth","refresh":"old"},"http://localhost":{"type":"wellknown","key":"A","token":"b"}}"#;
    let script = format!("printf '%s' '{evil}' >~/.local/share/opencode/auth.json");
    let output = scene.drive("evil", &[item("a", &script)]).exit(0);
    assert_eq!(read(&scene, place), old);
    let warning = "is not renewed: it names a server whose settings would be run\n";
    assert!(output.stderr.contains(warning), "{output}");
    let new = old.replace("old", "new");
    let second_script = format!("printf '%s' '{new}' >~/.local/share/opencode/auth.json");
    scene.drive("new", &[item("a", &second_script)]).ends(0);
    assert_eq!(read(&scene, place), new);
}

#[test]
fn any_folder_in_the_home_directory_can_be_private_and_its_login_shared() {
    for layers in layers("other agents with bubblewrap") {
        let scene = Scene::new(layers);
        for (path, text) in [("home/.config/agent/conf", "mine"), ("home/.config/agent/auth", "old")] {
            scene.repo.env.write(path, text);
        }
        give(&scene, "private", &["~/.config/agent"]);
        give(&scene, "login", &["~/.config/agent/auth", "~/.tool/login"]);
        let script = "cd ~/.config/agent && grep -q mine conf && echo evil >conf && printf new >auth && cat ~/.tool/login && printf NEW >~/.tool/login";
        assert_eq!(scene.run_script("own", script), "SECRET");
        let found =
            ["home/.config/agent/conf", "home/.config/agent/auth", "home/.tool/login"].map(|path| read(&scene, path));
        assert_eq!(found, ["mine", "new", "NEW"]);
    }
}

#[test]
fn impossible_copy_is_rejected() {
    let scene = Scene::new(Layers::Inner);
    give(&scene, "private", &["/opt"]);
    let refused = scene.drive("elsewhere", &[item("a", "true")]).exit(1).stderr;
    let message = "error: `private` and `login` name paths below your home directory, which /opt is not\n";
    assert!(refused.starts_with(message), "{refused}");
    scene.repo.env.git(["config", "--unset-all", "handoff.executor.command.private"]).success();
    give(&scene, "private", &["~/.tool"]);
    scene.repo.config("handoff.executor.command.home", "real");
    let second_refused = scene.drive("real", &[item("a", "true")]).exit(1).stderr;
    let place = scene.repo.path("home/.tool");
    let second_message = format!(
        "error: {} cannot be given as a private copy with `home` = `real`, because no variable moves it; use `home` = `private`\n",
        place.display()
    );
    assert!(second_refused.starts_with(&second_message), "{second_refused}");
}

#[test]
fn run_and_doctor_report_a_shared_agent_folder() {
    let scene = scene(Layers::Inner);
    give(&scene, "writable", &["~/.claude"]);
    let output = scene.drive("given", &[item("a", "echo mine >~/.claude/settings.json")]).exit(0);
    assert_eq!(read(&scene, "home/.claude/settings.json"), "mine\n");
    let warning = "workers may write ~/.claude: what they leave there, Claude Code runs later without a sandbox";
    let flat = output.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(warning), "{output}");
    let found: Value = serde_json::from_str(&scene.handoff(&["doctor", "--json"]).stdout).unwrap();
    let codes: Vec<_> = found["findings"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"agent-folder-writable"), "{found}");
}

/// Returns the paths of all files below a folder.
fn walk(folder: &Path) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(directory) = folders.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            found.push(entry.path().display().to_string());
            folders.extend(is_folder.then(|| entry.path()));
        }
    }
    found
}

#[test]
fn permissions_of_a_login_are_restored() {
    use std::os::unix::fs::PermissionsExt as _;
    for layers in layers("permissions of a login with bubblewrap") {
        let scene = scene(layers);
        let real = scene.repo.path(LOGIN);
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        for (run, script) in [
            ("set-id", "cat /usr/bin/id >~/.claude/.credentials.json; chmod 4755 ~/.claude/.credentials.json"),
            ("gone", "chmod 6777 ~/.claude/.credentials.json; rm ~/.claude/.credentials.json"),
        ] {
            scene.drive(run, &[item("a", &format!("{script}; true"))]).ends(0);
            assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o7777, 0o600, "{run}, {layers:?}");
        }
    }
}

#[test]
fn a_link_in_the_data_of_sessions_leads_our_own_links_nowhere() {
    for layers in layers("links of sessions with bubblewrap") {
        let scene = scene(layers);
        scene.repo.env.write("home/.claude/local/bin/tool", "");
        scene.repo.env.write("elsewhere/x", "");
        give(&scene, "readable", &["~/.claude/local/bin"]);
        let script = format!(
            "if test $HANDOFF_ATTEMPT = 1; then rm -rf ~/.claude/local; ln -s {} ~/.claude/local; exit 1; fi; \
             test ! -L ~/.claude/local",
            scene.repo.path("elsewhere").display()
        );
        let mut twice = item("a", &script);
        twice["maxAttempts"] = json!(2);
        scene.drive("r", &[twice]).ends(0);
        let names: Vec<_> =
            fs::read_dir(scene.repo.path("elsewhere")).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, ["x"], "{layers:?}");
    }
}

#[test]
fn preserved_worktree_has_no_link_to_the_login() {
    let scene = scene(Layers::Inner);
    scene.repo.env.git(["config", "handoff.maxProductSize", "1k"]).success();
    let script = "head -c 5000 /dev/zero >big; ln ~/.claude/.credentials.json stolen; exit 3";
    let mut once = item("a", script);
    once["maxAttempts"] = json!(1);
    scene.drive("r", &[once]).ends(4);
    let found =
        scene.repo.env.shell(".", "find . -path '*-unsaved*' -name stolen -o -path '*-unsaved/agent*'").success();
    assert_eq!(found, "");
    let big = scene.repo.env.shell(".", "find . -path '*-unsaved/tree/big'").success();
    assert_eq!(big.lines().count(), 1, "{big}");
}
