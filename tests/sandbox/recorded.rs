//! The places that workers could reach besides their worktrees, in manifests, `show`, `verify` and
//! the page: never with a path of a person.

use std::fs;

use serde_json::{Value, json};

use super::scene::{Layers, Scene};
use crate::common::repo::item;

/// Makes places to give to workers, and gives them to the executor `command`.
fn given(layers: Layers) -> Scene {
    let scene = Scene::new(layers);
    for folder in ["home/.cache-of-mine", "home/notes", "elsewhere/one", "elsewhere/two", "repo/build"] {
        fs::create_dir_all(scene.repo.path(folder)).unwrap();
    }
    scene.repo.env.write("repo/.env.local", "A=1\n");
    scene.repo.env.shell("repo", "printf '/build\\n/.env.local\\n' >>.git/info/exclude").success();
    let add = |key: &str, value: &str| {
        scene.repo.env.git(["config", "--add", key, value]).success();
    };
    let [one, two] = ["elsewhere/one", "elsewhere/two"].map(|path| scene.repo.path(path).display().to_string());
    add("handoff.executor.command.writable", "~/.cache-of-mine");
    add("handoff.executor.command.writable", &one);
    add("handoff.executor.command.writable", &two);
    add("handoff.executor.command.readable", &scene.repo.path("home/notes").display().to_string());
    add("handoff.workspace.link", "build");
    add("handoff.workspace.copy", ".env.local");
    scene
}

#[test]
fn places_that_settings_give_are_recorded_by_names() {
    let scene = given(Layers::Inner);
    scene.drive("r", &[item("a", "echo x >x.txt"), item("b", "echo y >y.txt")]).ends(0);
    let manifest = scene.manifest("r/a");
    let writable =
        json!(["handoff.executor.command.writable", "handoff.executor.command.writable (2)", "~/.cache-of-mine"]);
    assert_eq!(manifest["claims"]["writable"], writable);
    assert_eq!(manifest["claims"]["readable"], json!(["~/notes"]));
    assert_eq!(
        (&manifest["claims"]["linked"], &manifest["claims"]["copied"]),
        (&json!(["build"]), &json!([".env.local"]))
    );
    assert_eq!(manifest.get("home"), None);
    assert!(!manifest.to_string().contains("elsewhere"), "{manifest}");
    let output = scene.handoff(&["show", "r/a"]);
    let access: Vec<&str> = output.stdout.lines().filter_map(|line| line.trim().strip_prefix("access")).collect();
    let access: Vec<&str> = access.into_iter().map(str::trim).collect();
    assert_eq!(
        access,
        [
            "writable: 3 places: handoff.executor.command.writable, handoff.executor.command.writable (2), ~/.cache-of-mine",
            "readable: 1 place: ~/notes",
            "linked: 1 place: build",
            "copied: 1 place: .env.local",
        ]
    );
    // The places of all attempts together.
    let verified = scene.handoff(&["verify", "r"]);
    let last = verified.stdout.lines().last().unwrap_or_default();
    assert!(last.contains("  writable: 3 places"), "{verified}");
    let report: Value = serde_json::from_str(&scene.handoff(&["verify", "--json", "r"]).stdout).unwrap();
    assert_eq!(report["writable"], writable);
    let page = scene.handoff(&["report", "r", "--output", "-"]).stdout;
    assert!(page.contains("writable: 3 places: handoff.executor.command.writable"), "the page says it");
}

#[test]
fn a_real_home_is_recorded_and_nothing_where_nothing_is_given() {
    let scene = Scene::new(Layers::Inner);
    scene.drive("r", &[item("a", "true")]).ends(0);
    let manifest = scene.manifest("r/a");
    for field in ["home", "readable", "writable", "linked", "copied"] {
        assert_eq!(manifest.get(field), None, "{field}");
    }
    let verified = scene.handoff(&["verify", "r"]);
    assert!(!verified.stdout.contains("writable") && !verified.stdout.contains("home:"), "{verified}");
    scene.repo.config("handoff.executor.command.home", "real");
    scene.drive("s", &[item("a", "true")]).ends(0);
    assert_eq!(scene.manifest("s/a")["claims"]["home"], "real");
    assert!(scene.handoff(&["verify", "s"]).stdout.contains("  home: real"));
}

#[test]
fn an_unconfined_worker_has_only_what_its_worktree_has() {
    let scene = given(Layers::None);
    scene.drive("r", &[item("a", "true")]).ends(0);
    let manifest = scene.manifest("r/a");
    assert_eq!((manifest.get("writable"), manifest.get("readable")), (None, None));
    assert_eq!((&manifest["claims"]["sandbox"], &manifest["claims"]["linked"]), (&json!("none"), &json!(["build"])));
}
