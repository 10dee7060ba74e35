//! The commands that are killed, and how one sees from outside how often each has happened.

use super::scene::Scene;

/// Placeholder for the name of the thread's first checkpoint.
pub(super) const FIRST: &str = "t:first";

/// A command that is killed.
pub(super) struct Victim {
    pub(super) name: &'static str,
    /// Whether it is given in the other clone.
    elsewhere: bool,
    pub(super) args: &'static [&'static str],
    /// How often what it does has been done; 1 is once more than before.
    pub(super) done: fn(&Scene) -> usize,
    /// Whether giving it again does it once more.
    pub(super) again: bool,
    /// The exit codes of one that did it.
    pub(super) exits: &'static [i32],
}

impl Victim {
    pub(super) fn place(&self, scene: &Scene) -> &'static str {
        if self.elsewhere { "other" } else { scene.home() }
    }

    /// Whether one can see that it was done.
    pub(super) fn changes(&self) -> bool {
        !["offer", "packet auto"].contains(&self.name)
    }

    const fn new(name: &'static str, args: &'static [&'static str], done: fn(&Scene) -> usize) -> Self {
        Self { name, elsewhere: false, args, done, again: false, exits: &[0] }
    }

    /// Done in the other clone.
    const fn elsewhere(mut self) -> Self {
        self.elsewhere = true;
        self
    }

    /// Repeated each time.
    const fn repeated(mut self) -> Self {
        self.again = true;
        self
    }

    const fn exits(mut self, exits: &'static [i32]) -> Self {
        self.exits = exits;
        self
    }
}

/// Every command that changes something, or hands something out.
pub(super) const VICTIMS: [Victim; 23] = [
    Victim::new("run", &["run", "open"], |scene| usize::from(scene.repo.is_sealed("open"))),
    Victim::new("submit", &["submit", "../new.json"], |scene| exists(scene, "repo", "runs/new")),
    Victim::new("submit --run", &["submit", "--run", "../new.json"], |scene| {
        usize::from(exists(scene, "repo", "runs/new") == 1 && scene.repo.is_sealed("new"))
    }),
    Victim::new("cancel", &["cancel", "open/lone"], |scene| {
        scene.entries("open", &[("kind", "item.cancelled"), ("item", "lone")])
    }),
    Victim::new("retry", &["retry", "half/fails"], |scene| {
        scene.entries("half", &[("kind", "item.requeued"), ("item", "fails")])
    }),
    Victim::new("close", &["close", "half"], |scene| usize::from(scene.repo.is_sealed("half"))),
    Victim::new("extend", &["extend", "grows", "../more.json"], |scene| {
        scene.entries("grows", &[("kind", "run.extended")])
    }),
    Victim::new("coordinate", &["coordinate", "ruled"], |scene| scene.entries("ruled", &[("kind", "run.extended")])),
    Victim::new("doc put", &["doc", "put", "open", "notes", "../document"], |scene| {
        scene.entries("open", &[("kind", "document.written")])
    })
    .repeated(),
    Victim::new("checkpoint", &["checkpoint", "t", "--state", "../state"], |scene| length(scene, "repo", "t") - 3)
        .repeated(),
    Victim::new(
        "checkpoint of the files",
        &["checkpoint", "t", "--state", "../state", "--worktree", "--run", "done"],
        |scene| length(scene, "repo", "t") - 3,
    )
    .repeated(),
    Victim::new("fork", &["fork", "t", "--as", "forked"], |scene| exists(scene, "repo", "threads/forked")),
    Victim::new("offer", &["offer", "t"], nothing),
    Victim::new("packet auto", &["packet", "auto", "--run", "done"], nothing),
    Victim::new("adopt", &["adopt", "../descriptor.json", "--as", "taken", "--from", "../repo"], |scene| {
        exists(scene, "other", "threads/taken")
    })
    .elsewhere(),
    Victim::new("push", &["push", "--all"], |scene| {
        // The log is written there first, then here: after a crash in between, the next writer
        // continues the remote's.
        let refs_in = |place| ["runs", "threads"].map(|below| scene.refs(place, &format!("refs/handoff/{below}")));
        usize::from(refs_in("hub") == refs_in("repo"))
    }),
    Victim::new("fetch", &["fetch"], |scene| {
        let fetched = scene.refs("other", "refs/handoff/remotes/origin").replace("/remotes/origin/", "/");
        let there = ["logs", "runs", "threads"].map(|below| scene.refs("hub", &format!("refs/handoff/{below}")));
        usize::from(fetched == there.concat())
    })
    .elsewhere(),
    Victim::new("bundle", &["bundle", "done", "t", "--output", "../bundle"], |scene| {
        let bundle = scene.repo.path("bundle");
        if !bundle.exists() {
            return 0;
        }
        scene.handoff(&["verify", "--bundle", "../bundle"]).success();
        1
    }),
    Victim::new("clean", &["clean", "--force"], |scene| usize::from(scene.repo.worktrees().is_empty())),
    Victim::new("clean of transcripts", &["clean", "done", "--force", "--transcripts"], |scene| {
        1 - exists(scene, "repo", "transcripts/done")
    }),
    Victim::new("doctor --fix", &["doctor", "--fix"], |scene| exists(scene, "repo", "bases/open")).exits(&[0, 3]),
    Victim::new("apply", &["apply", "done", "--branch", "taken"], |scene| {
        usize::from(!scene.refs("repo", "refs/heads/taken").is_empty())
    }),
    Victim::new("rollback", &["rollback", FIRST], |scene| length(scene, "repo", "t") - 3).repeated(),
];

/// A command without lasting effects.
fn nothing(_: &Scene) -> usize {
    0
}

fn exists(scene: &Scene, place: &str, name: &str) -> usize {
    usize::from(!scene.refs(place, &format!("refs/handoff/{name}")).is_empty())
}

fn length(scene: &Scene, place: &str, thread: &str) -> usize {
    let count = scene
        .repo
        .env
        .git_in(place, ["rev-list", "--first-parent", "--count", &format!("refs/handoff/threads/{thread}")]);
    count.success().trim().parse().unwrap()
}
