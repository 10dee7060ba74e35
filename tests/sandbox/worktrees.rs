//! Worktrees of isolated workers are reused.

use std::path::Path;

use super::scene::{Layers, Scene, has_bubblewrap, is_ext4};
use super::stories::dispatch;

#[test]
fn worktrees_of_isolated_workers_are_reused() {
    if !is_ext4(Path::new("/tmp")) || !has_bubblewrap("worktrees of workers that are kept apart") {
        return;
    }
    let scene = Scene::new(Layers::All);
    scene.repo.config("handoff.queue.default.concurrency", "4");
    let looks = "stat -c %i a.txt";
    for (name, command) in [("long", "sleep 8"), ("pause", "sleep 3"), ("first", looks), ("one", looks), ("two", looks)]
    {
        scene.repo.config(&format!("handoff.subagent.{name}.command"), command);
    }
    let [one, two] = ["one", "two"].map(|name| dispatch(name, &["first", "pause"]));
    let items = [dispatch("long", &[]), dispatch("pause", &[]), dispatch("first", &[]), one, two];
    scene.drive("apart", &items).ends(0);
    let number = |item: &str| scene.handoff(&["cat", &format!("apart/{item}:transcript")]).stdout;
    // It is ready by then, and of two that are taken it is one, whatever else is ready.
    assert!([number("one"), number("two")].contains(&number("first")));
}
