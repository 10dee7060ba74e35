//! Access through a file descriptor that an earlier worker passed on.

use std::fs;
use std::path::Path;

use super::filters;
use super::scene::{Layers, Scene, is_ext4, skipped};
use super::stories::dispatch;

/// Takes a file, waits for its time, and writes into it.
const TAKES: &str = "import os, socket, sys, time
folder = sys.argv[1]
listener = socket.socket(socket.AF_UNIX)
listener.bind(folder + '/new')
listener.listen(1)
listener.settimeout(30)
os.rename(folder + '/new', folder + '/socket')
_, files, _, _ = socket.recv_fds(listener.accept()[0], 1, 1)
until = time.time() + 10
while not os.path.exists(folder + '/now') and time.time() < until:
    time.sleep(0.02)
os.ftruncate(files[0], 0)
os.pwrite(files[0], b'EVIL' + bytes([10]), 0)
open(folder + '/done', 'w').close()
";

/// Passes a file of its worktree on.
const PASSES: &str = "import os, socket, sys, time
folder = sys.argv[1]
until = time.time() + 10
while not os.path.exists(folder + '/socket') and time.time() < until:
    time.sleep(0.02)
to = socket.socket(socket.AF_UNIX)
to.connect(folder + '/socket')
socket.send_fds(to, [b'x'], [os.open('a.txt', os.O_RDWR)])
";

/// The same from where nothing may be made or listened to: asks for the file, waits for its time,
/// and writes into it.
const ASKS: &str = "import os, socket, sys, time
folder = sys.argv[1]
sys.stdin.buffer.read()
until = time.time() + 15
while not os.path.exists(folder + '/socket') and time.time() < until:
    time.sleep(0.02)
to = socket.socket(socket.AF_UNIX)
to.connect(folder + '/socket')
_, files, _, _ = socket.recv_fds(to, 1, 1)
while not os.path.exists(folder + '/now') and time.time() < until:
    time.sleep(0.02)
os.ftruncate(files[0], 0)
os.pwrite(files[0], b'EVIL' + bytes([10]), 0)
";

/// Passes a file of its worktree to who asks.
const HANDS: &str = "import os, socket, sys
folder = sys.argv[1]
listener = socket.socket(socket.AF_UNIX)
listener.bind(folder + '/new')
listener.listen(1)
listener.settimeout(15)
os.rename(folder + '/new', folder + '/socket')
socket.send_fds(listener.accept()[0], [b'x'], [os.open('a.txt', os.O_RDWR)])
";

/// Prepares executors that may all write one folder, of which `takes` takes a file; returns how to
/// say that its time has come, and wait for it.
fn prepare(scene: &Scene, names: &[&str]) -> String {
    let shared = scene.ground.path("shared");
    fs::create_dir(&shared).unwrap();
    scene.ground.env.write("repo/takes.py", TAKES);
    scene.ground.env.write("repo/passes.py", PASSES);
    scene.ground.env.write("repo/asks.py", ASKS);
    scene.ground.env.write("repo/hands.py", HANDS);
    scene.ground.env.git(["add", "."]).success();
    scene.ground.env.git(["commit", "-qm", "programs"]).success();
    for name in names {
        scene.ground.config(&format!("handoff.subagent.{name}.writable"), shared.to_str().unwrap());
    }
    let shared = shared.display();
    scene.ground.config("handoff.subagent.takes.command", &format!("python3 takes.py {shared}"));
    scene.ground.config("handoff.subagent.passes.command", &format!("python3 passes.py {shared}"));
    format!(
        "touch {shared}/now; n=0; while [ ! -e {shared}/done ] && [ $n -lt 200 ]; do sleep 0.05; n=$((n + 1)); done"
    )
}

/// The file is one of a worktree that the next attempt could get.
pub(super) fn reach_the_next(scene: &Scene) -> Option<bool> {
    let works = reach_the_next_by(scene, ["python3 takes.py", "python3 passes.py"], "");
    assert!(works.is_none() || scene.ground.path("shared/done").exists());
    works
}

/// The same, where it is taken when all that the worker started is gone: by a filter that runs over
/// what it left.
pub(super) fn reach_the_next_by_a_filter(scene: &Scene) -> Option<bool> {
    filters::set_up(scene);
    let shared = scene.ground.path("shared");
    let left = format!("echo 'python3 asks.py {}' >tidy.conf; echo text >a.tidy; true", shared.display());
    reach_the_next_by(scene, [&left, "python3 hands.py"], "; sleep 1")
}

/// `by` is how the file is taken and passed on, with the shared folder as the last word, and `more`
/// what the next worker does before it looks.
fn reach_the_next_by(scene: &Scene, by: [&str; 2], more: &str) -> Option<bool> {
    if !is_ext4(Path::new("/tmp")) {
        skipped("what is written into worktrees that are used again", "/tmp lies on another file system than ext4");
        return None;
    }
    let shared = scene.ground.path("shared").display().to_string();
    let ends = format!("while [ ! -e {shared}/socket ]; do sleep 0.05; done; sleep 2");
    let wait = prepare(scene, &["takes", "passes", "pause", "one", "two"]);
    scene.ground.config("handoff.queue.default.concurrency", "3");
    scene.ground.config("handoff.subagent.pause.command", &ends);
    for (name, command) in ["takes", "passes"].into_iter().zip(by) {
        scene.ground.config(&format!("handoff.subagent.{name}.command"), &format!("{command} {shared}"));
    }
    let mut items = vec![dispatch("takes", &[]), dispatch("passes", &[]), dispatch("pause", &[])];
    // The spent worktree is ready by then, and of two that are taken it is one, whatever else is
    // ready.
    for (name, other) in [("one", "two"), ("two", "one")] {
        let command = format!(
            "touch {shared}/{name}; until [ -e {shared}/{other} ]; do sleep 0.05; done; {wait}{more}; cat a.txt"
        );
        scene.ground.config(&format!("handoff.subagent.{name}.command"), &command);
        items.push(dispatch(name, &["passes", "pause"]));
    }
    filters::drive(scene, "handles", &items).ends(0);
    let said = ["one", "two"].map(|name| scene.handoff(&["cat", &format!("handles/{name}:transcript")]).stdout);
    Some(said.concat().contains("EVIL"))
}

/// The file is one of a worktree that is just checked.
#[expect(clippy::unnecessary_wraps, reason = "other stories cannot be told everywhere")]
pub(super) fn change_what_is_checked(scene: &Scene) -> Option<bool> {
    let wait = prepare(scene, &["takes", "passes"]);
    let shared = scene.ground.path("shared");
    let command = format!("echo good >a.txt; python3 passes.py {}", shared.display());
    scene.ground.config("handoff.subagent.passes.command", &command);
    scene.ground.config("handoff.subagent.passes.verify", &format!("grep -q good a.txt && {{ {wait}; }}"));
    let mut passes = dispatch("passes", &[]);
    passes["maxAttempts"] = 1.into();
    let output = scene.drive("unseen", &[dispatch("takes", &[]), passes]);
    let patch = scene.handoff(&["cat", "unseen/passes:patch"]).stdout;
    let item = scene.ground.item("unseen", "passes");
    let works = item.status == "done" && patch.contains("EVIL");
    assert!(works || item.reason.starts_with("still-open: a.txt is still open"), "{output}{}", item.reason);
    Some(works)
}

#[test]
fn workers_that_meet_nobody_have_their_worktrees_used_again_and_nothing_more_looked_at() {
    if !is_ext4(Path::new("/tmp")) || !super::scene::has_bubblewrap("worktrees of workers that are kept apart") {
        return;
    }
    let scene = Scene::new(Layers::All);
    scene.ground.config("handoff.queue.default.concurrency", "4");
    let looks = "stat -c %i a.txt";
    for (name, command) in [("long", "sleep 8"), ("pause", "sleep 3"), ("first", looks), ("one", looks), ("two", looks)]
    {
        scene.ground.config(&format!("handoff.subagent.{name}.command"), command);
    }
    let [one, two] = ["one", "two"].map(|name| dispatch(name, &["first", "pause"]));
    let items = [dispatch("long", &[]), dispatch("pause", &[]), dispatch("first", &[]), one, two];
    scene.drive("apart", &items).ends(0);
    let number = |item: &str| scene.handoff(&["cat", &format!("apart/{item}:transcript")]).stdout;
    // It is ready by then, and of two that are taken it is one, whatever else is ready.
    assert!([number("one"), number("two")].contains(&number("first")));
}
