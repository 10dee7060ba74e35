//! Symbolic links planted by a worker in paths that other settings use: they lead nowhere. Each
//! works without confinement; `docs/reference/sandbox.md` lists them among the attacks.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::scene::{Layers, Scene, has_bubblewrap, skipped};

/// A setting that leads through what a worker of `a` may write, and what that one does there.
struct Way {
    name: &'static str,
    what: &'static str,
    /// The setting through which another worker is led, and its value.
    setting: (&'static str, &'static str),
    /// A path that another worker may write.
    writable: &'static str,
    /// Its command.
    plants: &'static str,
    /// The other worker's command, in a worktree.
    reads: &'static str,
}

const WAYS: &[Way] = &[
    Way {
        name: "link-writable",
        what: "lead another executor's worker through a link where that may write",
        setting: ("handoff.subagent.b.writable", "{shared}/out"),
        writable: "{shared}",
        plants: "cd {shared} && mv out was && ln -s {to} out",
        reads: "cd {shared}/out && cat *; touch planted; true",
    },
    Way {
        name: "link-readable",
        what: "lead another executor's worker through a link where that may read",
        setting: ("handoff.subagent.b.readable", "{shared}/out"),
        writable: "{shared}",
        plants: "cd {shared} && mv out was && ln -s {to} out",
        reads: "cd {shared}/out && cat *; true",
    },
    Way {
        name: "link-above",
        what: "lead it there by a link in a folder above",
        setting: ("handoff.subagent.b.readable", "{shared}/deep/in"),
        writable: "{shared}",
        plants: "cd {shared} && mv deep was && mkdir deep && ln -s {to} deep/in",
        reads: "cd {shared}/deep/in && cat *; true",
    },
    Way {
        name: "link-named",
        what: "lead it to a file by a link that its command line names",
        setting: ("handoff.subagent.b.readable", "{shared}/out"),
        writable: "{shared}",
        plants: "cd {shared} && rm -r out && mkdir out && ln -s {to}/secret out/file",
        reads: "cat {shared}/out/file; true",
    },
    Way {
        name: "link-linked",
        what: "lead every worker through a link in a folder that is linked into worktrees",
        setting: ("handoff.workspace.link", "web/sub/modules"),
        writable: "{repo}/web",
        plants: "cd {repo}/web && mv sub was && mkdir sub && ln -s {to} sub/modules",
        reads: "cat web/sub/modules/*; true",
    },
    Way {
        name: "link-copied",
        what: "have another user's file copied into worktrees through a link in a folder above",
        setting: ("handoff.workspace.copy", "web/sub/secret"),
        writable: "{repo}/web",
        plants: "cd {repo}/web && mv sub was && ln -s {to} sub",
        reads: "cat web/sub/secret; true",
    },
    Way {
        name: "link-copied-below",
        what: "have another user's folder copied into worktrees through a link in its place",
        setting: ("handoff.workspace.copy", "web/sub/*"),
        writable: "{repo}/web",
        plants: "cd {repo}/web && mv sub was && ln -s {to} sub",
        reads: "cat web/sub/secret; true",
    },
];

/// The targets of the links: secrets, ungranted files, and foreign data.
const TARGETS: [&str; 3] = ["home/.ssh", "beside/private", "repo/.git/handoff"];

/// Returns the rows of the table of attacks.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    WAYS.iter().map(|way| (way.name, way.what))
}

#[test]
fn each_leads_there_where_nothing_confines_the_workers() {
    // Copying happens outside a worker, and follows no link of a confined one.
    let ways = WAYS.iter().filter(|way| way.setting.0 != "handoff.workspace.copy");
    for together in scenes(ways.map(|way| (way, TARGETS[1]))) {
        for (tried, (way, _)) in try_all(Layers::None, None, &together).iter().zip(&together) {
            let Tried { transcript, output, .. } = tried;
            assert!(
                transcript.contains("SECRET"),
                "{} does not work anywhere, and so shows nothing: {transcript}{output}",
                way.name
            );
        }
    }
}

#[test]
fn the_kernel_alone_lets_none_lead_anywhere() {
    none_leads_anywhere(Layers::Inner, None);
}

#[test]
fn with_all_layers_none_leads_anywhere() {
    if has_bubblewrap("links in the place of what is bound") {
        none_leads_anywhere(Layers::All, None);
    }
}

#[test]
fn links_lead_another_user_nowhere() {
    if !rustix::process::geteuid().is_root() {
        skipped("links that workers of another user leave", "only root can become another user");
    } else if has_bubblewrap("links that workers of another user leave") {
        none_leads_anywhere(Layers::All, Some(65_534));
    }
}

#[test]
fn a_link_that_comes_and_goes_is_not_followed() {
    for layers in [Layers::Inner, Layers::All] {
        if layers == Layers::All && !has_bubblewrap("a link that comes and goes") {
            continue;
        }
        let scene = Scene::new(layers);
        let shared = scene.repo.path("shared");
        scene.repo.env.write("shared/out/file", "fine");
        scene.repo.env.write("beside/private/secret", "SECRET");
        let turn = format!(
            "import os, time\nos.chdir('{}')\nend = time.time() + 8\nwhile time.time() < end:\n os.rename('out', 'was'); \
             os.symlink('{}', 'out'); time.sleep(0.001); os.unlink('out'); os.rename('was', 'out'); time.sleep(0.001)\n",
            shared.display(),
            scene.repo.path("beside/private").display(),
        );
        scene.repo.config("handoff.subagent.a.writable", shared.to_str().unwrap());
        scene.repo.config("handoff.subagent.a.command", &format!("python3 -c \"{turn}\""));
        scene.repo.config("handoff.subagent.b.writable", &format!("{}/out", shared.display()));
        scene.repo.config("handoff.subagent.b.command", &format!("cd {}/out && cat *; true", shared.display()));
        let mut items = vec![dispatch("a", "a", &[])];
        items.extend((0..25).map(|at| dispatch(&format!("b{at}"), "b", &[])));
        let output = scene.drive("race", &items);
        assert!(matches!(output.status, Some(0 | 4)), "{layers:?}: {output}");
        let transcript_of = |at: usize| scene.handoff(&["cat", &format!("race/b{at}:transcript")]).stdout;
        let transcripts: Vec<String> = (0..25).map(transcript_of).collect();
        assert!(transcripts.iter().all(|transcript| !transcript.contains("SECRET")), "{layers:?}: {transcripts:?}");
        assert_eq!(scene.repo.item("race", "a").status, "done");
    }
}

#[test]
fn a_link_of_the_users_own_is_followed() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        scene.repo.env.write("elsewhere/file", "fine\n");
        scene.repo.env.write("modules/file", "linked\n");
        for (to, at) in [("elsewhere", "home/work"), ("modules", "repo/modules")] {
            std::os::unix::fs::symlink(scene.repo.path(to), scene.repo.path(at)).unwrap();
        }
        scene.repo.env.write("repo/.git/info/exclude", "/modules\n");
        scene.repo.config("handoff.workspace.link", "modules");
        scene.repo.config("handoff.subagent.b.writable", "~/work");
        scene.repo.config(
            "handoff.subagent.b.command",
            &format!(
                "cd {}/home/work; cat file; echo new >made; cat $OLDPWD/modules/file",
                scene.repo.path("").display()
            ),
        );
        scene.drive("own", &[dispatch("b", "b", &[])]).ends(0);
        assert_eq!(scene.handoff(&["cat", "own/b:transcript"]).stdout, "fine\nlinked\n");
        assert!(scene.repo.path("elsewhere/made").exists());
    }
}

fn none_leads_anywhere(layers: Layers, user: Option<u32>) {
    let tries = WAYS.iter().enumerate().flat_map(|(at, way)| {
        // Similar ones lead to different targets.
        let targets = if at < 2 { &TARGETS[..] } else { &TARGETS[at % TARGETS.len()..][..1] };
        targets.iter().map(move |target| (way, *target))
    });
    for together in scenes(tries) {
        for (tried, (way, target)) in try_all(layers, user, &together).iter().zip(&together) {
            let Tried { transcript, output, was_written } = tried;
            assert!(!transcript.contains("SECRET"), "{layers:?}: {} to {target}: {transcript}", way.name);
            assert!(!output.contains("SECRET"), "{layers:?}: {} to {target} or another: {output}", way.name);
            assert!(!was_written, "{layers:?}: {} to {target} was written to", way.name);
        }
    }
}

/// Divides the tries into scenes: those of executors of their own share one, and those that lead
/// every worker have one each.
fn scenes<'a>(tries: impl Iterator<Item = (&'a Way, &'a str)>) -> Vec<Vec<(&'a Way, &'a str)>> {
    let leads_all = |(way, _): &(&Way, &str)| way.setting.0.starts_with("handoff.workspace.");
    let (alone, together): (Vec<_>, Vec<_>) = tries.partition(leads_all);
    let scenes: Vec<Vec<_>> = alone.into_iter().map(|one| vec![one]).chain([together]).collect();
    assert!(scenes.iter().all(|scene| !scene.is_empty()));
    scenes
}

/// The result of one path.
struct Tried {
    /// The output of the misled workers, in the same and in another driver.
    transcript: String,
    /// The messages of the drivers, which are about all paths of the scene.
    output: String,
    was_written: bool,
}

/// Tries some paths in one scene, each with executors and folders of its own.
fn try_all(layers: Layers, user: Option<u32>, tries: &[(&Way, &str)]) -> Vec<Tried> {
    let scene = Scene::for_user(layers, user);
    for (_, target) in tries {
        let _ = fs::remove_dir_all(scene.repo.path(target));
    }
    for (at, (way, target)) in tries.iter().enumerate() {
        for (file, text) in [
            (&*format!("{target}/secret"), "SECRET"),
            (&*format!("shared{at}/out/file"), "fine"),
            (&*format!("shared{at}/deep/in/file"), "fine"),
            ("repo/web/sub/modules/file", "fine"),
            ("repo/web/sub/secret", "fine"),
            ("repo/.git/info/exclude", "/web\n"),
        ] {
            scene.repo.env.write(file, text);
        }
        let place = |name: &str| scene.repo.path(name).to_str().unwrap().to_owned();
        let fill = |text: &str| {
            text.replace("{shared}", &place(&format!("shared{at}")))
                .replace("{repo}", &place("repo"))
                .replace("{to}", &place(target))
        };
        let key = |name: &str| {
            name.replace(".subagent.a.", &format!(".subagent.a{at}."))
                .replace(".subagent.b.", &format!(".subagent.b{at}."))
        };
        for (name, value) in [
            way.setting,
            ("handoff.subagent.a.writable", way.writable),
            ("handoff.subagent.a.command", way.plants),
            ("handoff.subagent.b.command", way.reads),
        ] {
            scene.repo.config(&key(name), &fill(value));
        }
    }
    if let Some(user) = user {
        own(&scene.repo.path(""), user);
    }
    let names = |at: usize| ["before", "plants", "led"].map(|name| format!("{name}{at}"));
    let plan = |at: usize| {
        let [before, plants, led] = names(at);
        let (a, b) = (format!("a{at}"), format!("b{at}"));
        // The misled worker was checked before, too.
        [dispatch(&before, &b, &[]), dispatch(&plants, &a, &[&before]), dispatch(&led, &b, &[&plants])]
    };
    let items: Vec<Value> = (0..tries.len()).flat_map(plan).collect();
    let mut output = scene.drive("one", &items).to_string();
    let one = scene.repo.items("one");
    for (at, (way, _)) in tries.iter().enumerate() {
        let [_, plants, _] = names(at);
        assert_eq!(one[&plants].status, "done", "{}: {output}", way.name);
    }
    let again: Vec<Value> = (0..tries.len()).map(|at| dispatch(&names(at)[2], &format!("b{at}"), &[])).collect();
    output.push_str(&scene.drive("two", &again).to_string());
    let transcript_of = |at: usize| {
        let [.., led] = names(at);
        ["one", "two"].map(|run| scene.handoff(&["cat", &format!("{run}/{led}:transcript")]).stdout).concat()
    };
    let was_written = |target: &str| scene.repo.path(target).join("planted").exists() && layers != Layers::None;
    let tried = tries.iter().enumerate().map(|(at, (_, target))| Tried {
        transcript: transcript_of(at),
        output: output.clone(),
        was_written: was_written(target),
    });
    tried.collect()
}

fn own(folder: &Path, user: u32) {
    let owner = format!("{user}:{user}");
    assert!(std::process::Command::new("chown").args(["-R", &owner]).arg(folder).status().unwrap().success());
}

fn dispatch(id: &str, subagent: &str, after: &[&str]) -> Value {
    json!({ "id": id, "executor": "dispatch", "inputs": { "subagent": subagent }, "maxAttempts": 1, "depends_on": after })
}
