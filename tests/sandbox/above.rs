//! Settings files that tools open where they see them: above the worktree, and in folders that
//! workers are given.

use serde_json::json;

use super::scene::{Layers, Scene, has_bubblewrap};
use crate::common::repo::item;

/// Scenes whose worktrees lie below the home directory, as they do where nothing is set.
fn scenes(what: &str) -> impl Iterator<Item = (Layers, Scene)> {
    let can = |layers: &Layers| *layers != Layers::All || has_bubblewrap(what);
    [Layers::Inner, Layers::All].into_iter().filter(can).map(|layers| {
        let scene = Scene::new(layers);
        let root = scene.repo.path("home/.cache/git-handoff");
        scene.repo.config("handoff.workspace.root", root.to_str().unwrap());
        (layers, scene)
    })
}

/// Opens a file by each of some names in all folders above, as a tool does that takes a missing
/// file for none: prints what it reads, and `refused` for a file that it cannot open.
const LOOK: &str = "d=$PWD; while d=$(dirname \"$d\"); do for n in $NAMES; do \
                    if [ -e \"$d/$n\" ]; then cat \"$d/$n\" 2>/dev/null || echo refused $n; fi; done; [ \"$d\" != / ] || break; done";

#[test]
fn settings_above_a_worktree_are_read_or_not_there() {
    for (layers, scene) in scenes("settings above") {
        for (path, text) in [
            ("home/.npmrc", "fund=false\n"),
            ("home/.prettierrc.json", "{}\n"),
            ("home/package.json", "{\"dependencies\": {\"jsonwebtoken\": \"9.0.2\"}}\n"),
            ("home/.cargo/config.toml", "[net]\n"),
            ("home/notes", "SECRET"),
        ] {
            scene.repo.env.write(path, text);
        }
        let script = format!(
            "NAMES='.npmrc .prettierrc.json package.json .cargo/config.toml notes'; {LOOK}; cat ~/.cargo/config.toml"
        );
        let output = scene.drive("above", &[item("a", &script)]);
        let transcript = scene.handoff(&["cat", "above/a:transcript"]).stdout;
        let there = "fund=false\n{}\n{\"dependencies\": {\"jsonwebtoken\": \"9.0.2\"}}\n";
        let expected = match layers {
            Layers::All => "[net]\n[net]\n".to_owned(),
            _ => format!("{there}[net]\nrefused notes\n[net]\n"),
        };
        assert_eq!((output.status, transcript.as_str()), (Some(0), expected.as_str()), "{layers:?}: {output}");
        let missing =
            "without bubblewrap workers cannot write to /tmp and /var/tmp; TMPDIR names a folder of their own";
        // The scene's programs lie below /tmp, with settings among them that no worker reads.
        let partly = "workers cannot write to /tmp, ";
        let notes = output.stderr.lines().filter(|line| {
            !line.starts_with("warning: workers are confined by less ") && *line != missing && !line.starts_with(partly)
        });
        assert_eq!(
            notes.collect::<Vec<_>>(),
            ["▶ a  attempt 1", "✓ a  done in 0ms, nothing handed over"],
            "{layers:?}"
        );
    }
}

#[test]
fn outer_settings_with_a_credential_are_hidden_with_one_warning() {
    for (layers, scene) in scenes("credentials above") {
        for (path, text) in [
            ("home/.npmrc", "//npm.example.com/:_authToken=SECRET\n"),
            ("home/package.json", "{\"registry\": \"https://ada:SECRET@npm.example.com\"}\n"),
            ("home/.cargo/config.toml", "[registries.own]\ntoken = \"SECRET\"\n"),
            ("home/.cargo/bin/tool", ""),
        ] {
            scene.repo.env.write(path, text);
        }
        let script =
            format!("NAMES='.npmrc package.json .cargo/config.toml'; {LOOK}; cat ~/.cargo/config.toml ~/.npmrc; true");
        let output = scene.drive("kept", &[item("a", &script), item("b", "true")]);
        let transcript = scene.handoff(&["cat", "kept/a:transcript"]).stdout;
        assert!(!transcript.contains("SECRET") && output.status == Some(0), "{layers:?}: {output}{transcript}");
        let at = |path: &str| scene.repo.path("home").join(path).display().to_string();
        let hidden = match layers {
            Layers::All => at(".cargo/config.toml"),
            _ => [".cargo/config.toml", ".npmrc", "package.json"].map(at).join(", "),
        };
        let line = format!(
            "workers cannot read {hidden}, which may hold a credential: tools that read settings in every folder above a \
             worktree fail there; move the credential to another file, or set `handoff.workspace.root` to a folder \
             elsewhere\n"
        );
        assert_eq!(output.stderr.matches(&line).count(), 1, "{layers:?}: {output}");
    }
}

#[test]
fn settings_in_a_folder_that_a_setting_gives_are_read_unless_they_hold_a_credential() {
    for (layers, scene) in scenes("settings in given folders") {
        scene.repo.env.write("home/.cargo/config.toml", "[net]\n");
        scene.repo.env.write("home/.npmrc", "_auth=SECRET\n");
        for (name, setting, value) in [("real", "home", "real"), ("given", "writable", "~/.cargo")] {
            scene.repo.config(&format!("handoff.subagent.{name}.{setting}"), value);
            scene
                .repo
                .config(&format!("handoff.subagent.{name}.command"), "cat ~/.cargo/config.toml; cat ~/.npmrc; true");
            let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": name }, "maxAttempts": 1 });
            scene.drive(name, &[item]).ends(0);
            let transcript = scene.handoff(&["cat", &format!("{name}/a:transcript")]).stdout;
            assert!(
                transcript.starts_with("[net]\n") && !transcript.contains("SECRET"),
                "{layers:?}, {name}: {transcript}"
            );
        }
    }
}

#[test]
fn cargo_settings_follow_cargo_home() {
    for (layers, scene) in scenes("settings of a moved tool") {
        scene.repo.env.write("moved/registry/crate", "crate\n");
        for (run, text, expected) in [("plain", "[net]\n", "[net]\n"), ("token", "token = \"SECRET\"\n", "")] {
            scene.repo.env.write("moved/config.toml", text);
            let moved = scene.repo.path("moved");
            let script =
                format!("cat ~/.cargo/config.toml 2>/dev/null; cat {}/config.toml 2>/dev/null; true", moved.display());
            let plan = scene.repo.plan(run, &[item("a", &script)]);
            let output = scene.handoff_where(&["run", &plan], &[("CARGO_HOME", moved.to_str().unwrap())]);
            let transcript = scene.handoff(&["cat", &format!("{run}/a:transcript")]).stdout;
            assert_eq!((output.status, transcript), (Some(0), expected.repeat(2)), "{layers:?}: {output}");
        }
    }
}
