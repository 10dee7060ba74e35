//! Access to files at unusual places, and to files that change during the run.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use git_handoff::process::disk::size;
use rustix::fs::{CWD, RenameFlags};
use serde_json::json;

use super::scene::{Layers, Scene, skipped};
use crate::common::repo::item;
use crate::common::report::find_line;

/// Tries to read a file for a while; says so where it can.
fn watches(path: &str) -> String {
    format!(
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do cat {path} 2>/dev/null && echo open; sleep 0.1; done; true"
    )
}

#[test]
fn a_secret_that_comes_later_or_is_replaced_stays_hidden() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        scene.repo.env.write("home/.cargo/credentials.toml", "SECRET-OLD");
        scene.repo.env.write("home/.cargo/bin/tool", "");
        scene.repo.env.write("home/.npm/_cacache/x", "fine");
        let home = scene.repo.path("home");
        let changes = {
            let home = home.clone();
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(1200));
                fs::write(home.join(".cargo/new"), "SECRET-NEW").unwrap();
                fs::rename(home.join(".cargo/new"), home.join(".cargo/credentials.toml")).unwrap();
                fs::write(home.join(".cargo/credentials"), "SECRET-LATE").unwrap();
            })
        };
        let transcript = scene.run_script(
            "later",
            &watches(&format!("{0}/.cargo/credentials.toml {0}/.cargo/credentials", home.display())),
        );
        changes.join().unwrap();
        assert!(!transcript.contains("SECRET") && !transcript.contains("open"), "{layers:?}: {transcript}");
        assert_eq!(scene.run_script("cache", &format!("cat {}/.npm/_cacache/x", home.display())), "fine");
    }
}

#[test]
fn a_link_left_by_a_worker_is_not_followed() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        scene.repo.env.write("home/.gradle/wrapper/x", "");
        let (home, outside) = (scene.repo.path("home"), scene.repo.path("beside"));
        scene.repo.config("handoff.subagent.w.writable", "~/.gradle");
        scene.repo.config(
            "handoff.subagent.w.command",
            &format!("ln -s {} ~/.gradle/caches; ln -s / ~/.gradle/other", outside.display()),
        );
        let first = json!({ "id": "w", "executor": "dispatch", "inputs": { "subagent": "w" }, "maxAttempts": 1 });
        scene.drive("first", &[first]).ends(0);
        assert!(fs::read_link(home.join(".gradle/caches")).is_ok());
        for target in [outside.as_path(), "/".as_ref()] {
            fs::remove_file(home.join(".gradle/caches")).unwrap();
            symlink(target, home.join(".gradle/caches")).unwrap();
            let run = format!("second{}", target.components().count());
            let transcript = scene.run_script(
                &run,
                &format!("cat {}/file 2>&1; cat {}/.netrc 2>&1; true", outside.display(), home.display()),
            );
            assert!(!transcript.contains("SECRET"), "{layers:?}: {transcript}");
            let expected = if layers == Layers::All { "bwrap" } else { "seccomp" };
            assert!(scene.manifest(&format!("{run}/a"))["claims"]["sandbox"].as_str().unwrap().contains(expected));
        }
    }
}

#[test]
fn programs_in_a_home_give_no_more_than_programs() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        for (path, text) in [
            ("other/.ssh/id", "SECRET"),
            ("other/docs/d", "SECRET"),
            ("other/bin/hello", "#!/bin/sh\necho hello\n"),
            ("tool/bin/there", "#!/bin/sh\ncat $(dirname $0)/../lib/text\n"),
            ("tool/lib/text", "found\n"),
            ("tool/.npmrc", "SECRET"),
        ] {
            scene.repo.env.write(path, text);
        }
        let place = |name: &str| scene.repo.path(name).to_str().unwrap().to_owned();
        for program in ["other/bin/hello", "tool/bin/there"] {
            scene.repo.env.shell("", &format!("chmod +x {program}")).success();
        }
        let plan = scene.repo.plan(
            "path",
            &[item(
                "a",
                "hello && there && cat $OTHER/.ssh/id $OTHER/docs/d $TOOL/.npmrc; true"
                    .replace("$OTHER", &place("other"))
                    .replace("$TOOL", &place("tool"))
                    .as_str(),
            )],
        );
        let path = [&place("other/bin"), &place("tool/bin"), scene.path()].join(":");
        let output = scene.handoff_where(&["run", &plan], &[("PATH", &path)]);
        assert_eq!(output.status, Some(0), "{output}");
        let transcript = scene.handoff(&["cat", "path/a:transcript"]).stdout;
        assert!(transcript.contains("hello\n") && transcript.contains("found\n"), "{layers:?}: {transcript}");
        assert!(!transcript.contains("SECRET"), "{layers:?}: {transcript}");
    }
}

#[test]
fn a_real_home_keeps_what_starts_with_its_owner() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        scene.repo.env.write("home/notes/n", "");
        scene.repo.config("handoff.subagent.x.home", "real");
        let command =
            "echo evil >>~/.bashrc; echo evil >~/.bash_profile; cat ~/.ssh/id_ed25519; echo mine >~/notes/new";
        scene.repo.config("handoff.subagent.x.command", command);
        let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "x" }, "maxAttempts": 1 });
        scene.drive("real", &[item]).ends(0);
        assert!(!scene.handoff(&["cat", "real/a:transcript"]).stdout.contains("SECRET"));
        assert_eq!(fs::read_to_string(scene.repo.path("home/.bashrc")).unwrap(), "# nothing\n");
        assert!(!scene.repo.path("home/.bash_profile").exists());
        assert_eq!(fs::read_to_string(scene.repo.path("home/notes/new")).unwrap(), "mine\n");
    }
}

#[test]
fn a_foreign_folder_with_our_temporary_name_stops_nothing() {
    if !rustix::process::geteuid().is_root() {
        return skipped("a folder of another user", "only root can make one");
    }
    let scene = Scene::new(Layers::All);
    // So deep that private files do not lie beside the worktrees.
    let deep = scene.repo.path("worktrees").join("0123456789/0123456789/0123456789/0123456789");
    scene.repo.config("handoff.workspace.root", deep.to_str().unwrap());
    for kind in ["a folder", "a file"] {
        let folder = scene.repo.path("t");
        let name = folder.join("git-handoff-0");
        fs::create_dir(&folder).unwrap();
        if kind == "a file" {
            fs::write(&name, "").unwrap();
        } else {
            fs::create_dir(&name).unwrap();
            std::os::unix::fs::chown(&name, Some(65_534), None).unwrap();
        }
        let plan = scene.repo.plan(&kind.replace(' ', "-"), &[item("a", "echo fine >$TMPDIR/x && cat $TMPDIR/x")]);
        let output = scene.handoff_where(&["run", &plan], &[("TMPDIR", folder.to_str().unwrap())]);
        assert_eq!(output.status, Some(0), "{kind}: {output}");
        fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn link_target_counts_as_no_explicit_secret() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        scene.repo.env.write("home/.tool/settings", "fine");
        scene.repo.config("handoff.subagent.first.writable", "~/.tool");
        scene.repo.config("handoff.subagent.first.command", "ln -s ../.ssh ~/.tool/x");
        scene.repo.config("handoff.subagent.second.readable", "~/.tool/x");
        scene.repo.config("handoff.subagent.second.command", "cat ~/.tool/x/id_ed25519 ~/.tool/x/* ~/.ssh/*; true");
        let item =
            |id: &str| json!({ "id": id, "executor": "dispatch", "inputs": { "subagent": id }, "maxAttempts": 1 });
        scene.drive("one", &[item("first")]).ends(0);
        assert!(fs::read_link(scene.repo.path("home/.tool/x")).is_ok());
        let output = scene.drive("two", &[item("second")]);
        let link = scene.repo.path("home/.tool/x");
        assert_eq!(
            find_line(&output.stderr, "error: "),
            format!(
                "error: {0} is to be reached by workers and leads through {0}, a link in what workers may write, which one of them \
                 may have put there",
                link.display()
            ),
            "{layers:?}"
        );
        assert_ne!(scene.handoff(&["cat", "two/second:transcript"]).status, Some(0));
    }
}

#[test]
fn a_repository_that_ours_borrows_from_names_no_other_folders() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        scene.repo.env.shell("", "git clone -q --bare repo other.git && git clone -q -s other.git third.git").success();
        let place = |name: &str| scene.repo.path(name).to_str().unwrap().to_owned();
        let folders = [place("other.git/objects"), place("home/.ssh"), place("home"), "/".to_owned()];
        fs::write(scene.repo.path("repo/.git/objects/info/alternates"), folders.join("\n") + "\n").unwrap();
        let script = format!(
            "cat {0}/.ssh/id_ed25519 {0}/.netrc {1}/file {2}/config; ls {2}/objects/pack {2}/objects/info && git log --oneline",
            place("home"),
            place("beside"),
            place("other.git"),
        );
        let transcript = scene.run_script("borrowed", &script);
        assert!(!transcript.contains("SECRET") && !transcript.contains("[core]"), "{layers:?}: {transcript}");
        let expected = if layers == Layers::All { "bwrap" } else { "seccomp" };
        assert!(scene.manifest("borrowed/a")["claims"]["sandbox"].as_str().unwrap().contains(expected));
    }
}

#[test]
fn a_command_line_may_name_what_the_kernel_makes_up() {
    let scene = Scene::new(Layers::All);
    scene.repo.config("handoff.subagent.w.command", "grep Seccomp: /proc/self/status");
    let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "w" }, "maxAttempts": 1 });
    scene.drive("status", &[item]).ends(0);
}

#[test]
fn a_link_that_takes_a_folders_place_while_that_is_measured_leads_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    let [folders, links] =
        ["q", "l"].map(|kind| (0..50).map(|at| place(&format!("in/{kind}{at}"))).collect::<Vec<_>>());
    fs::create_dir_all(place("outside")).unwrap();
    fs::write(place("outside/big"), vec![1; 32 << 20]).unwrap();
    for (folder, link) in folders.iter().zip(&links) {
        fs::create_dir_all(folder).unwrap();
        symlink(place("outside"), link).unwrap();
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for (folder, link) in folders.iter().zip(&links) {
                    rustix::fs::renameat_with(CWD, folder, CWD, link, RenameFlags::EXCHANGE).unwrap();
                }
            }
        });
        let until = Instant::now() + Duration::from_secs(5);
        let mut most = 0;
        while Instant::now() < until {
            most = most.max(size(&place("in"), 0));
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(most > 0 && most < 32 << 20, "{most}");
    });
}
