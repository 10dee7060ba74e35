//! Attacks on caches, by planted files and by a worker that may write around them: none reveals
//! secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::scene::{Layers, Scene, has_bubblewrap};
use crate::common::repo::item;

/// How workers are confined.
fn ways(what: &str) -> impl Iterator<Item = Layers> {
    let can = |layers: &Layers| *layers != Layers::All || has_bubblewrap(what);
    [Layers::Inner, Layers::All].into_iter().filter(can)
}

/// An item of a subagent.
fn dispatch(id: &str, subagent: &str) -> Value {
    json!({ "id": id, "executor": "dispatch", "inputs": { "subagent": subagent }, "maxAttempts": 1 })
}

/// An item that runs after another one.
fn after(first: &str, mut second: Value) -> Value {
    second["depends_on"] = json!([first]);
    second
}

fn transcript(scene: &Scene, piece: &str) -> String {
    scene.handoff(&["cat", &format!("{piece}:transcript")]).stdout
}

/// A folder that an executor may write, a cache in it, and a file of that cache.
const CACHES: [(&str, &str, &str); 3] = [
    ("go", "go/pkg", "mod/m@v1/m.go"),
    (".cargo", ".cargo/registry", "crate"),
    (".local/share/pnpm", ".local/share/pnpm/store", "v3/files/a"),
];

/// Makes a scene with a cache, and a link to the user's keys that can be put in its place.
fn with_cache(layers: Layers, (_, cache, file): (&str, &str, &str)) -> Scene {
    let scene = Scene::new(layers);
    scene.repo.env.write(&format!("home/{cache}/{file}"), "cached\n");
    scene
}

/// A worker with a different cache tries to read and write the user's keys, in both homes.
fn tries(scene: &Scene, cache: &str, file: &str) -> String {
    let real = scene.repo.path("home").join(cache);
    format!(
        "for d in ~/{cache} {}; do cat $d/{file} $d/id_ed25519 $d/*/id_ed25519; echo evil >>$d/authorized_keys; mkdir $d/made; \
         done 2>/dev/null; true",
        real.display()
    )
}

/// Fails if the transcript has a key, or a file was added next to the keys.
#[track_caller]
fn is_kept(scene: &Scene, transcript: &str, case: &str) {
    assert!(!transcript.contains("SECRET"), "{case}: {transcript}");
    let names = fs::read_dir(scene.repo.path("home/.ssh")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["id_ed25519"], "{case}");
}

#[test]
fn a_link_that_another_worker_puts_in_the_place_of_a_cache_gives_nothing() {
    for layers in ways("links in the place of caches") {
        for known in CACHES {
            for target in ["up/.ssh", "/home/.ssh"] {
                let (folder, cache, file) = known;
                let scene = with_cache(layers, known);
                let home = scene.repo.path("home");
                let up = vec![".."; Path::new(cache).components().count() - 1].join("/");
                let target = target.replace("up", &up).replace("/home", home.to_str().unwrap());
                let cache_there = home.join(cache);
                let plants = format!("mv {0} {0}.was && ln -s {target} {0}", cache_there.display());
                scene.repo.config("handoff.subagent.x.writable", home.join(folder).to_str().unwrap());
                scene.repo.config("handoff.subagent.x.command", &plants);
                let led = item("led", &tries(&scene, cache, file));
                let output = scene.drive("links", &[dispatch("plants", "x"), after("plants", led)]);
                let text = transcript(&scene, "links/led");
                let case = format!("{layers:?}, {cache} -> {target}: {output}{text}");
                assert!(cache_there.is_symlink() && output.status == Some(0), "{case}");
                is_kept(&scene, &text, &case);
            }
        }
    }
}

#[test]
fn a_link_in_a_cache_stays_a_link() {
    for layers in ways("links in caches") {
        let scene = with_cache(layers, CACHES[0]);
        scene.repo.config("handoff.subagent.x.writable", "~/go");
        let plants = "cd ~/go/pkg && mv mod was && ln -s ../../.ssh mod && ln -s ~/go/../.ssh/id_ed25519 id_ed25519";
        scene.repo.config("handoff.subagent.x.command", plants);
        let script = format!("readlink ~/go/pkg/mod; {}", tries(&scene, "go/pkg", "was/m@v1/m.go"));
        let output = scene.drive("links", &[dispatch("plants", "x"), after("plants", item("led", &script))]);
        let text = transcript(&scene, "links/led");
        assert!(output.status == Some(0) && text.starts_with("../../.ssh\ncached\n"), "{layers:?}: {output}{text}");
        is_kept(&scene, &text, &format!("{layers:?}"));
    }
}

#[test]
fn a_link_that_comes_when_the_mounts_are_made_leads_nowhere() {
    if !has_bubblewrap("links that come while the mounts are made") {
        return;
    }
    for known in CACHES {
        for target in ["{up}/.ssh", "{home}/.ssh", "/oldroot{home}/.ssh"] {
            let (_, cache, file) = known;
            let scene = with_cache(Layers::All, known);
            let home = scene.repo.path("home");
            let up = vec![".."; Path::new(cache).components().count() - 1].join("/");
            let target = target.replace("{up}", &up).replace("{home}", home.to_str().unwrap());
            // Another worker is never as quick as this, which replaces the cache when bubblewrap is
            // about to look for it.
            let place = home.join(cache);
            let bwrap = format!(
                "#!/bin/sh\ncase \"$*\" in *confine-attempt*) mv {0} {0}.was && ln -s {target} {0};; esac\nPATH={1}\nexec bwrap \"$@\"\n",
                place.display(),
                scene.path()
            );
            scene.repo.env.write("quick/bwrap", &bwrap);
            fs::set_permissions(scene.repo.path("quick/bwrap"), fs::Permissions::from_mode(0o755)).unwrap();
            let path = format!("{}:{}", scene.repo.path("quick").display(), scene.path());
            let plan = scene.repo.plan("quick", &[item("a", &tries(&scene, cache, file))]);
            let output = scene.handoff_where(&["run", &plan], &[("PATH", &path)]);
            let text = transcript(&scene, "quick/a");
            let case = format!("{cache} -> {target}: {output}{text}");
            assert!(place.is_symlink(), "{case}");
            is_kept(&scene, &text, &case);
            // No other part of its folder is given, so that nothing but the link itself is in the
            // way.
            if cache == "go/pkg" {
                assert!(output.status == Some(0) && text.starts_with("cached\ncached\n"), "{case}");
            }
        }
    }
}

#[test]
fn secrets_are_in_no_cache() {
    for layers in ways("secrets in caches") {
        let scene = with_cache(layers, CACHES[0]);
        let env = &scene.repo.env;
        env.write("home/.npm/_cacache/index", "index\n");
        env.git(["worktree", "add", "-q", scene.repo.path("home/.npm/deep/tree").to_str().unwrap()]).success();
        env.write("home/.npm/deep/tree/untracked", "SECRET");
        env.write("home/.npm/deep/beside", "beside\n");
        fs::copy(scene.repo.path("home/signing_key"), scene.repo.path("home/.npm/key")).unwrap();
        let key = scene.repo.path("home/.npm/key");
        scene.repo.config("handoff.signingKey", key.to_str().unwrap());
        let script = "cd ~/.npm && ls . deep && cat _cacache/index deep/beside && cat key deep/tree/untracked; ls deep/tree; \
                      echo own >key && mkdir deep/tree && cat key && ls deep/tree && rm -r deep && mkdir deep && ls deep";
        for run in ["first", "second"] {
            let transcript = scene.run_script(run, &format!("exec 2>/dev/null; {script}"));
            let expected = ".:\n_cacache\ndeep\n\ndeep:\nbeside\nindex\nbeside\nown\n";
            assert_eq!(transcript, expected, "{layers:?}");
        }
        assert!(scene.repo.path("home/.npm/deep/tree/untracked").exists() && fs::metadata(&key).unwrap().len() > 50);
    }
}

#[test]
fn a_cache_in_a_cache_is_written_as_a_part_of_it() {
    for layers in ways("caches in caches") {
        let scene = with_cache(layers, CACHES[0]);
        let script = "cd ~/go/pkg/mod && cat m@v1/m.go && mkdir -p cache/download && touch m@v1/new && rm m@v1/m.go && ls . m@v1";
        for run in ["first", "second"] {
            assert_eq!(scene.run_script(run, script), "cached\n.:\ncache\nm@v1\n\nm@v1:\nnew\n", "{layers:?}");
        }
    }
}

#[test]
fn caches_in_a_real_home_are_the_users_own() {
    for layers in ways("caches in a real home") {
        let scene = with_cache(layers, CACHES[0]);
        scene.repo.config("handoff.subagent.x.home", "real");
        scene.repo.config("handoff.subagent.x.command", "echo own >~/go/pkg/mod/own && cat ~/.cache/pip/cached");
        let output = scene.drive("real", &[dispatch("a", "x")]);
        let text = transcript(&scene, "real/a");
        assert_eq!((output.status, &*text), (Some(0), "mine"), "{layers:?}: {output}");
        assert_eq!(fs::read_to_string(scene.repo.path("home/go/pkg/mod/own")).unwrap(), "own\n", "{layers:?}");
    }
}

#[test]
fn a_cache_that_grows_while_a_run_is_driven_is_not_copied() {
    let scene = with_cache(Layers::Inner, CACHES[0]);
    scene.repo.env.write("home/.npm/_cacache/index", "index\n");
    scene.repo.config("handoff.subagent.x.writable", "~/go");
    scene.repo.config("handoff.subagent.x.command", "truncate -s 3G ~/go/pkg/big");
    let led = item("led", "ls -A ~/go/pkg && touch ~/go/pkg/own && cat ~/.npm/_cacache/index");
    let output = scene.drive("grown", &[dispatch("grows", "x"), after("grows", led)]);
    let expected = format!(
        "git-handoff: this attempt begins with an empty cache in the place of {}, which has grown since the run began: copies \
         have at most 1 GiB and 100000 files\nindex\n",
        scene.repo.path("home/go/pkg").display()
    );
    assert_eq!((output.status, transcript(&scene, "grown/led")), (Some(0), expected), "{output}");
}

/// Files of running servers, and one beside each that workers may read.
const SERVERS: [(&str, Option<&str>); 6] = [
    (".gradle/daemon/8.7/registry.bin", Some(".gradle/caches/modules")),
    (".sbt/1.0/server/0123/token", Some(".sbt/1.0/plugins/plugin")),
    (".cache/bazel/_bazel_ada/0123/server/request_cookie", None),
    (".m2/mvnd/registry/registry.bin", Some(".m2/repository/module")),
    (".kotlin/daemon/run", None),
    (".local/share/kotlin/daemon/run", None),
];

#[test]
fn no_worker_learns_how_a_running_server_is_reached() {
    for layers in ways("running servers") {
        let scene = Scene::new(layers);
        for (server, sibling) in SERVERS {
            scene.repo.env.write(&format!("home/{server}"), "SECRET");
            if let Some(sibling) = sibling {
                scene.repo.env.write(&format!("home/{sibling}"), "beside\n");
            }
        }
        let home = scene.repo.path("home");
        let files = |names: Vec<&str>| names.iter().map(|name| format!("$h/{name}")).collect::<Vec<_>>().join(" ");
        let servers = files(SERVERS.iter().map(|(server, _)| *server).collect());
        let siblings: Vec<&str> = SERVERS.iter().filter_map(|(_, sibling)| *sibling).collect();
        let script = |own: &str| {
            format!(
                "h={own}; cat {}; for h in ~ {}; do cat {servers} 2>/dev/null; done; env | grep ^GRADLE_OPTS=.*registry.base; true",
                files(siblings.clone()),
                home.display()
            )
        };
        let own = "mkdir -p ~/.gradle/daemon ~/.sbt/1.0/server && touch ~/.gradle/daemon/own ~/.sbt/1.0/server/own";
        assert_eq!(scene.run_script("usual", &format!("{}; {own}", script("~"))), "beside\n".repeat(3), "{layers:?}");
        for (name, setting, value) in [
            ("readable", "readable", "~/.gradle"),
            ("itself", "readable", "~/.gradle/daemon"),
            ("writable", "writable", "~/.gradle"),
            ("all", "readable", home.to_str().unwrap()),
            ("real", "home", "real"),
        ] {
            scene.repo.config(&format!("handoff.subagent.{name}.{setting}"), value);
            scene.repo.config(&format!("handoff.subagent.{name}.command"), &script(home.to_str().unwrap()));
            let output = scene.drive(name, &[dispatch("a", name)]);
            let text = transcript(&scene, &format!("{name}/a"));
            let case = format!("{layers:?}, {name}: {output}{text}");
            assert!(output.status == Some(0) && text.starts_with(&"beside\n".repeat(3)), "{case}");
            assert!(!text.contains("SECRET"), "{case}");
        }
    }
}

#[test]
fn gradle_registers_daemons_elsewhere_where_its_folder_is_hidden() {
    for layers in ways("another registry of daemons") {
        let scene = Scene::new(layers);
        scene.repo.env.write("home/.gradle/daemon/8.7/registry.bin", "SECRET");
        scene.repo.env.write("java/gradle", "#!/bin/sh\necho $GRADLE_OPTS\n");
        let program = scene.repo.path("java/gradle");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", program.parent().unwrap().display(), scene.path());
        scene.repo.config("handoff.subagent.own.command", "gradle");
        scene.repo.config("handoff.subagent.given.writable", "~/.gradle");
        scene.repo.config("handoff.subagent.real.home", "real");
        for name in ["given", "real"] {
            let looks = "gradle; mkdir $TMPDIR/gradle-daemons; touch ~/.gradle/new || echo not written";
            scene.repo.config(&format!("handoff.subagent.{name}.command"), looks);
        }
        for (name, has_other) in [("own", false), ("given", true), ("real", true)] {
            let plan = scene.repo.plan(name, &[dispatch("a", name)]);
            let output = scene.handoff_where(&["run", &plan], &[("PATH", &path)]);
            let text = transcript(&scene, &format!("{name}/a"));
            let case = format!("{layers:?}, {name}: {output}{text}");
            assert_eq!(output.status, Some(0), "{case}");
            assert_eq!(text.contains("-Dorg.gradle.daemon.registry.base=/"), has_other, "{case}");
        }
    }
}
