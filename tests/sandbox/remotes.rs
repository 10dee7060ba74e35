//! Fetching in a confined worker: local remotes, and nothing else in these repositories.

use super::scene::{Layers, Scene, has_bubblewrap};

const ALL: [Layers; 2] = [Layers::Inner, Layers::All];

/// A scene whose repository has a remote at a path, in which there is a branch that the repository
/// lacks.
fn scene(layers: Layers, clone: &[&str]) -> Scene {
    let scene = Scene::new(layers);
    let env = &scene.repo.env;
    env.git([&["clone", "--quiet"], clone, &[".", "../up"]].concat()).success();
    env.git_in("up", ["branch", "fresh"]).success();
    env.git(["remote", "add", "origin", "../up"]).success();
    scene
}

#[test]
fn a_worker_fetches_from_a_remote_that_is_a_path() {
    for layers in ALL.into_iter().filter(|layers| *layers != Layers::All || has_bubblewrap("fetching from a path")) {
        for clone in [&["--bare"][..], &[]] {
            let scene = scene(layers, clone);
            let git_dir = if clone.is_empty() { "up/.git" } else { "up" };
            for name in ["handoff/key", "hooks/secret", "secret"] {
                scene.repo.env.write(&format!("{git_dir}/{name}"), "SECRET");
            }
            let up = scene.repo.path(git_dir).display().to_string();
            let script = format!(
                "git fetch -q && git rev-parse origin/fresh && echo fetched
                 cat {up}/handoff/* {up}/hooks/* {up}/secret; touch {up}/refs/heads/x {up}/objects/x; git push -q origin HEAD:refs/heads/mine; true"
            );
            let transcript = scene.run_script("fetch", &script);
            assert!(
                transcript.contains("fetched\n") && !transcript.contains("SECRET"),
                "{layers:?} {clone:?}: {transcript}"
            );
            let refs = scene.repo.env.git_in("up", ["for-each-ref"]).success();
            assert!(!refs.contains("mine") && !scene.repo.path(git_dir).join("refs/heads/x").exists(), "{refs}");
        }
    }
}

#[test]
fn a_remote_whose_settings_hold_a_credential_is_not_read() {
    for layers in ALL.into_iter().filter(|layers| *layers != Layers::All || has_bubblewrap("settings of remotes")) {
        let scene = scene(layers, &["--bare"]);
        scene.repo.env.git_in("up", ["config", "remote.web.url", "https://me:SECRET@example.com/a"]).success();
        let up = scene.repo.path("up").display().to_string();
        let transcript =
            scene.run_script("fetch", &format!("git remote; git fetch -q || echo refused; cat {up}/config; true"));
        assert!(
            transcript.contains("origin\n") && transcript.contains("refused\n") && !transcript.contains("SECRET"),
            "{transcript}"
        );
    }
}
