//! Settings that would give access to more than intended: secrets behind links, and mounts over
//! them.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use super::scene::{Layers, Scene, has_bubblewrap};
use crate::common::repo::item;

/// How workers are confined, and the setting `handoff.sandbox`.
const WAYS: [(Layers, &str); 3] = [(Layers::Inner, "auto"), (Layers::All, "auto"), (Layers::All, "strict")];

/// Makes scenes in which links of the work tree lead somewhere and are linked into worktrees.
fn linked(links: &[(&str, &str)]) -> Vec<Scene> {
    let can = |layers: &Layers| *layers != Layers::All || has_bubblewrap("links to what is secret");
    let scene = |(layers, sandbox): (Layers, &str)| {
        let scene = Scene::new(layers);
        scene.repo.config("handoff.sandbox", sandbox);
        scene.repo.env.write("home/.config/gh/hosts.yml", "SECRET");
        scene.repo.env.write("home/.config/tool/settings", "fine\n");
        for (link, target) in links {
            symlink(scene.repo.path(target), scene.repo.path("repo").join(link)).unwrap();
            scene.repo.env.shell("repo", &format!("echo /{link} >>.git/info/exclude")).success();
            scene.repo.env.git(["config", "--add", "handoff.workspace.link", link]).success();
        }
        scene
    };
    WAYS.into_iter().filter(|(layers, _)| can(layers)).map(scene).collect()
}

#[test]
fn a_link_gives_no_secret_below_what_it_leads_to() {
    for links in [&[("cfg", "home/.config"), ("all", "home")], &[("all", "home"), ("cfg", "home/.config")]] {
        for scene in linked(links) {
            let transcript = scene.run_script(
                "below",
                "cat cfg/tool/settings all/.config/tool/settings; cat cfg/gh/* all/.ssh/* all/.config/gh/* all/.netrc all/.aws/*; \
                 ls all; true",
            );
            assert_eq!(
                (transcript.matches("fine\n").count(), transcript.matches("SECRET").count()),
                (2, 0),
                "{transcript}"
            );
        }
    }
}

#[test]
fn a_link_to_a_secret_itself_is_refused_with_words() {
    for link in [("keys", "home/.ssh"), ("key", "home/.ssh/id_ed25519"), ("hosts", "home/.config/gh/hosts.yml")] {
        for scene in linked(&[link]) {
            let output = scene.drive("itself", &[item("a", &format!("cat {0} {0}/*; true", link.0))]);
            let text = format!("{output}{}", scene.handoff(&["cat", "itself/a:transcript"]));
            let [linked, secret] = [&format!("repo/{}", link.0), link.1].map(|path| format!("$TEST/{path}"));
            let reason = format!(
                "cannot confine it: {linked}, which is linked into worktrees, leads to {secret}, which is secret: only `readable` \
                 gives it, by its name"
            );
            assert_eq!(scene.repo.item("itself", "a").reason, reason);
            assert!(!text.contains("SECRET"), "{text}");
            assert_ne!(output.status, Some(0), "{output}");
        }
    }
}

#[test]
fn explicitly_given_secret_can_be_linked() {
    for scene in linked(&[("keys", "home/.ssh"), ("all", "home")]) {
        scene.repo.config("handoff.subagent.x.readable", "~/.ssh");
        scene.repo.config("handoff.subagent.x.command", "cat keys/id_ed25519; cat all/.netrc; true");
        let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "x" }, "maxAttempts": 1 });
        scene.drive("asked", &[item]).ends(0);
        let transcript = scene.handoff(&["cat", "asked/a:transcript"]).stdout;
        assert_eq!(transcript.matches("SECRET").count(), 1, "{transcript}");
    }
}

#[test]
fn a_folder_over_what_is_made_for_each_worker_is_refused_by_the_name_of_its_setting() {
    if !has_bubblewrap("folders over what it makes") {
        return;
    }
    let is_untouched = || assert!(!Path::new("/run/git-handoff").exists(), "it was made on the machine itself");
    for (setting, folder) in [("readable", "/"), ("readable", "/run"), ("writable", "/"), ("writable", "/run")] {
        let scene = Scene::new(Layers::All);
        scene.repo.config(&format!("handoff.subagent.x.{setting}"), folder);
        scene.repo.config("handoff.subagent.x.command", "true");
        let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "x" }, "maxAttempts": 1 });
        let output = scene.drive("over", &[item]);
        assert!(output.stderr.contains(&format!("`{setting}` gives workers {folder}, ")), "{output}");
        assert_ne!(output.status, Some(0), "{output}");
        is_untouched();
    }
    for folder in ["/", "/run"] {
        let scene = Scene::new(Layers::All);
        symlink(folder, scene.repo.path("repo/over")).unwrap();
        scene.repo.env.shell("repo", "echo /over >>.git/info/exclude").success();
        scene.repo.config("handoff.workspace.link", "over");
        let output = scene.drive("over", &[item("a", "true")]);
        let text = format!("{output}{}", scene.handoff(&["cat", "over/a:transcript"]));
        assert!(
            text.contains(&format!("leads to {folder}, it contains folders that each worker has privately")),
            "{text}"
        );
        is_untouched();
    }
}

#[test]
fn a_tracked_file_gives_no_file_by_naming_it_and_raises_no_limit() {
    for (layers, sandbox) in WAYS {
        if layers == Layers::All && !has_bubblewrap("what a tracked command line names") {
            continue;
        }
        let scene = Scene::new(layers);
        scene.repo.config("handoff.sandbox", sandbox);
        scene.repo.config("handoff.subagent.x.maxFileSize", "1m");
        scene.repo.env.write("mine/diary", "SECRET");
        let line = format!("cat {}; echo; ulimit -f", scene.repo.path("mine/diary").display());
        let item =
            |id: &str| json!({ "id": id, "executor": "dispatch", "inputs": { "subagent": "x" }, "maxAttempts": 1 });
        // An explicit setting of the user applies.
        scene.repo.config("handoff.subagent.x.command", &line);
        scene.drive("own", &[item("a")]).ends(0);
        let transcript = scene.handoff(&["cat", "own/a:transcript"]).stdout;
        assert!(
            transcript.contains("SECRET") && (transcript.contains("\n1024\n") || transcript.contains("\n2048\n")),
            "{transcript}"
        );
        scene.repo.env.git(["config", "--unset", "handoff.subagent.x.command"]).success();
        for (key, value) in
            [("command", line.as_str()), ("maxFileSize", "9g"), ("maxMemory", "900g"), ("maxProcesses", "900000")]
        {
            scene
                .repo
                .env
                .git(["config", "--file", "team.config", &format!("handoff.subagent.x.{key}"), value])
                .success();
        }
        scene.repo.env.git(["config", "include.path", "../team.config"]).success();
        scene.drive("theirs", &[item("a")]).ends(0);
        let cat_transcript = scene.handoff(&["cat", "theirs/a:transcript"]).stdout;
        assert!(
            !cat_transcript.contains("SECRET")
                && (cat_transcript.contains("\n1024\n") || cat_transcript.contains("\n2048\n")),
            "{cat_transcript}"
        );
        // Nor is a link followed that a commit made of a file which is named.
        symlink(scene.repo.path("mine/diary"), scene.repo.path("repo/check")).unwrap();
        let check = format!("cat {}", scene.repo.path("repo/check").display());
        scene.repo.config("handoff.subagent.y.command", &check);
        let item_of_y = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "y" }, "maxAttempts": 1 });
        scene.drive("link", &[item_of_y]).ends(4);
        assert!(!scene.handoff(&["cat", "link/a:transcript"]).stdout.contains("SECRET"));
        // It may ask for less.
        scene.repo.env.git(["config", "--file", "team.config", "handoff.maxFileSize", "512k"]).success();
        scene.drive("less", &[item("a")]).ends(0);
        let limited = scene.handoff(&["cat", "less/a:transcript"]).stdout;
        assert!(limited.contains("\n512\n") || limited.contains("\n1024\n"), "{limited}");
    }
}
