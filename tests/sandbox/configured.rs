//! No worker writes a file that git or this program reads or runs outside by the user's
//! configuration.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::scene::{Layers, Scene};

/// Files below the home directory that the configuration names, each in a folder that the worker
/// may write.
const NAMED: [&str; 6] = [
    "dotfiles/included",
    "dotfiles/deep/included",
    "dotfiles/ignored",
    "dotfiles/attributes",
    "dotfiles/hooks/post-commit",
    "dotfiles/scripts/key.sh",
];

#[test]
fn files_of_the_configuration_stay_as_they_are() {
    for layers in [Layers::Inner, Layers::All] {
        for writable in ["~/dotfiles", "real"] {
            let scene = Scene::new(layers);
            let home = scene.repo.path("home").to_str().unwrap().to_owned();
            for path in NAMED {
                scene.repo.env.write(&format!("home/{path}"), "#!/bin/sh\n");
                fs::set_permissions(scene.repo.path("home").join(path), fs::Permissions::from_mode(0o755)).unwrap();
            }
            for path in ["dotfiles/included", "dotfiles/deep/included", "dotfiles/ignored", "dotfiles/attributes"] {
                scene.repo.env.write(&format!("home/{path}"), "# as it was\n");
            }
            scene.repo.env.write("home/dotfiles/free/note", "before\n");
            scene.repo.config("include.path", &format!("{home}/dotfiles/included"));
            scene.repo.env.write("home/dotfiles/included", "[include]\n\tpath = deep/included\n");
            scene.repo.config("core.excludesFile", &format!("{home}/dotfiles/ignored"));
            scene.repo.config("core.attributesFile", &format!("{home}/dotfiles/attributes"));
            scene.repo.config("core.hooksPath", &format!("{home}/dotfiles/hooks"));
            scene.repo.config("filter.f.smudge", &format!("{home}/dotfiles/scripts/key.sh"));
            if writable == "real" {
                scene.repo.config("handoff.subagent.x.home", "real");
            } else {
                scene.repo.config("handoff.subagent.x.writable", &format!("{home}/dotfiles"));
            }
            let before: Vec<_> = NAMED.map(|path| fs::read(scene.repo.path("home").join(path)).unwrap()).to_vec();
            let script = format!(
                "cd {home}/dotfiles; for f in included deep/included ignored attributes hooks/post-commit scripts/key.sh; do \
                 echo evil >>$f; rm -f $f; ln -sf {home}/.ssh/id_ed25519 $f; mv $f $f.old; echo evil >$f; done; \
                 mv deep deeper; mv hooks hook; mv scripts script; echo evil >hooks/pre-push; echo after >free/note; true"
            );
            scene.repo.config("handoff.subagent.x.command", &script);
            let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "x" }, "maxAttempts": 1 });
            scene.drive("plant", &[item]).ends(0);
            for (path, earlier) in NAMED.iter().zip(before) {
                let place = scene.repo.path("home").join(path);
                assert!(!place.is_symlink(), "{layers:?} {writable}: {path}");
                assert_eq!(fs::read(place).unwrap(), earlier, "{layers:?} {writable}: {path}");
            }
            assert!(!scene.repo.path("home/dotfiles/hooks/pre-push").exists(), "{layers:?} {writable}");
            assert_eq!(
                fs::read_to_string(scene.repo.path("home/dotfiles/free/note")).unwrap(),
                "after\n",
                "{layers:?} {writable}"
            );
        }
    }
}

#[test]
fn a_file_that_is_configured_and_not_there_cannot_be_made() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        let home = scene.repo.path("home").to_str().unwrap().to_owned();
        fs::create_dir(scene.repo.path("home/dotfiles")).unwrap();
        scene.repo.config("core.excludesFile", &format!("{home}/dotfiles/ignored"));
        scene.repo.config("handoff.subagent.x.writable", &format!("{home}/dotfiles"));
        let script = format!("ln -s {home}/.ssh/id_ed25519 {home}/dotfiles/ignored; true");
        scene.repo.config("handoff.subagent.x.command", &script);
        let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "x" }, "maxAttempts": 1 });
        scene.drive("plant", &[item]).ends(0);
        assert!(!scene.repo.path("home/dotfiles/ignored").is_symlink(), "{layers:?}");
        assert!(!scene.run_script("next", "cat .git/info/* 2>&1; true").contains("SECRET"), "{layers:?}");
    }
}

#[test]
fn worktrees_of_other_repositories_are_out_of_reach() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        let mut folder = scene.repo.path("home/.cache/git-handoff");
        scene.repo.config("handoff.workspace.root", folder.to_str().unwrap());
        folder.push("0123456789abcdef/r1/i0.1/tree");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("file"), "SECRET").unwrap();
        scene.repo.config("handoff.subagent.x.home", "real");
        let script = format!("cat {0}/file; echo evil >{0}/file; true", folder.display());
        scene.repo.config("handoff.subagent.x.command", &script);
        let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "x" }, "maxAttempts": 1 });
        scene.drive("other", &[item]).ends(0);
        assert!(!scene.handoff(&["cat", "other/a:transcript"]).stdout.contains("SECRET"), "{layers:?}");
        assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "SECRET", "{layers:?}");
    }
}
