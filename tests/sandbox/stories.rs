//! Attacks that take more than one line of shell: what one worker leaves for the next, and what it
//! does by its own settings.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::filters;
use super::scene::{Layers, Scene, has_bubblewrap, is_ext4, skipped};
use crate::common::repo::after;

/// The attack.
pub(super) struct Story {
    pub(super) name: &'static str,
    /// A description.
    pub(super) what: &'static str,
    /// Runs the attack; returns whether it worked, or `None` if it could not run.
    works: fn(&Scene) -> Option<bool>,
}

/// Each of them works where nothing confines the worker, and no more where anything does.
pub(super) const STORIES: &[Story] = &[
    Story { name: "empty-check", what: "empty a check so that no time of it changes, on ext4", works: empty_check },
    Story {
        name: "library",
        what: "have what supervises it run a library or write a file, by a variable",
        works: library,
    },
    Story {
        name: "plant-program",
        what: "put another program in the place of one in `PATH`, or of this one",
        works: plant,
    },
    Story {
        name: "by-number",
        what: "remove a segment of memory or a queue of the user's, or leave one, by its number or name",
        works: by_number,
    },
    Story {
        name: "filter",
        what: "leave a file by which a filter of the repository runs code when products are taken",
        works: |scene| Some(filters::works(scene, "true", 0)),
    },
    Story {
        name: "filter-salvaged",
        what: "the same where the work of a failed attempt is saved",
        works: |scene| Some(filters::works(scene, "false", 4)),
    },
];

#[test]
fn each_works_where_nothing_confines_the_worker() {
    assert_eq!(tried(Layers::None, true), Vec::<&str>::new(), "these do not work anywhere, and so show nothing");
}

#[test]
fn the_kernel_alone_stops_each() {
    assert_eq!(tried(Layers::Inner, false), Vec::<&str>::new());
}

#[test]
fn with_all_layers_none_is_left() {
    if has_bubblewrap("stories on all layers") {
        assert_eq!(tried(Layers::All, false), Vec::<&str>::new());
    }
}

/// Returns the stories that do not go as they should.
fn tried(layers: Layers, should: bool) -> Vec<&'static str> {
    let goes_wrong = |story: &&Story| (story.works)(&Scene::new(layers)).is_some_and(|works| works != should);
    STORIES.iter().filter(goes_wrong).map(|story| story.name).collect()
}

/// An item of a subagent of the same name.
pub(super) fn dispatch(id: &str, on: &[&str]) -> Value {
    let mut item = after(id, on, "");
    item["executor"] = json!("dispatch");
    item["inputs"] = json!({ "subagent": id });
    item
}

/// Gives a file the blocks of another one, full of zeros, as programs that put blocks in order do:
/// no time of it changes.
const EMPTIES: &str = "import fcntl, os, struct, sys, time
file, other = os.open(sys.argv[1], os.O_RDWR), os.open(os.environ['TMPDIR'] + '/other', os.O_RDWR | os.O_CREAT)
os.write(other, bytes(4096))
os.fsync(file)
os.fsync(other)
for again in range(50):
    try:
        fcntl.ioctl(other, 0xC028660F, struct.pack('IIQQQQ', 0, file, 0, 0, 1, 0))
        break
    except OSError:
        time.sleep(0.01)
os.fsync(file)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
";

fn empty_check(scene: &Scene) -> Option<bool> {
    if !is_ext4(Path::new("/tmp")) {
        skipped("a check that is emptied and keeps its times", "/tmp lies on another file system than ext4");
        return None;
    }
    scene.repo.env.write("repo/check.sh", "echo the check says no; exit 1\n");
    scene.repo.env.write("repo/empties.py", EMPTIES);
    scene.repo.env.git(["add", "."]).success();
    scene.repo.env.git(["commit", "-qm", "a check"]).success();
    scene.repo.config("handoff.queue.default.concurrency", "1");
    for (name, command) in [("own", "python3 empties.py check.sh; echo more >>a.txt"), ("next", "echo more >>a.txt")] {
        scene.repo.config(&format!("handoff.subagent.{name}.command"), command);
        scene.repo.config(&format!("handoff.subagent.{name}.verify"), "sh check.sh");
    }
    let between = after("between", &[], "python3 empties.py check.sh");
    let output = scene.drive("checks", &[dispatch("own", &[]), between, dispatch("next", &["between"])]);
    assert!(matches!(output.status, Some(0 | 4)), "{output}");
    let passes = |id: &str| {
        let transcript = scene.handoff(&["cat", &format!("checks/{id}:transcript")]).stdout;
        !transcript.contains("the check says no")
    };
    Some(passes("own") || passes("next"))
}

#[expect(clippy::unnecessary_wraps, reason = "other stories cannot be told everywhere")]
fn library(scene: &Scene) -> Option<bool> {
    let outside = scene.repo.path("beside/linked");
    // A program linked with these reports that in a file; of a library it would run the code.
    for (name, file) in [("above", outside.to_str().unwrap()), ("within", "linked")] {
        let key = format!("handoff.subagent.{name}.env");
        scene.repo.env.git(["config", "--add", &key, "LD_DEBUG=files"]).success();
        scene.repo.env.git(["config", "--add", &key, &format!("LD_DEBUG_OUTPUT={file}")]).success();
        let command = "cat linked.* | grep -q 'needed by .*git-handoff' && echo ours; true";
        scene.repo.config(&format!("handoff.subagent.{name}.command"), command);
    }
    scene.drive("linked", &[dispatch("above", &[]), dispatch("within", &[])]).ends(0);
    let transcript = scene.handoff(&["cat", "linked/within:transcript"]).stdout;
    assert!(!transcript.contains("ours"), "{transcript}");
    let is_linked = |name: &str| name.starts_with("linked");
    let mut entries = fs::read_dir(scene.repo.path("beside")).unwrap().flatten();
    Some(entries.any(|entry| is_linked(entry.file_name().to_str().unwrap())))
}

/// Makes a segment of memory and a queue as the user has them, or says whether they are there and
/// another is.
const OURS: &str = "import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
name, left = sys.argv[2].encode(), sys.argv[3].encode()
if sys.argv[1] == 'make':
    print(libc.shmget(0, 4096, 0o1600))
    assert libc.mq_open(name, 0o102, 0o600, None) >= 0
else:
    # All of them, whatever the first says: what stays behind is there for the next who looks.
    there = [libc.shmctl(int(sys.argv[4]), 0, None) == 0, libc.mq_unlink(name) == 0, libc.mq_unlink(left) != 0]
    print(all(there))
";

#[expect(clippy::unnecessary_wraps, reason = "other stories cannot be told everywhere")]
fn by_number(scene: &Scene) -> Option<bool> {
    let (own, left) = (format!("/own-{}", scene.victim()), format!("/left-{}", scene.victim()));
    let ours = |words: &[&str]| {
        let output = Command::new("python3").args(["-c", OURS]).args(words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let segment = ours(&["make", &own, &left]);
    let takes = format!(
        "python3 -c 'import ctypes\nl=ctypes.CDLL(None)\nl.shmctl({segment}, 0, None)\nl.mq_unlink(b\"{own}\")\nl.mq_open(b\"{left}\", 0o102, 0o600, None)'"
    );
    scene.run_script("numbers", &takes);
    Some(ours(&["look", &own, &left, &segment]) != "True")
}

#[expect(clippy::unnecessary_wraps, reason = "other stories cannot be told everywhere")]
fn plant(scene: &Scene) -> Option<bool> {
    scene.copy_programs();
    let (home, bin) = (scene.repo.path("home"), scene.repo.path("bin"));
    for folder in ["own/bin", "far/bin"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    scene.repo.env.write("home/opt/tool", "#!/bin/sh\n");
    symlink(home.join("opt/tool"), home.join("own/bin/tool")).unwrap();
    symlink(home.join("far/bin"), home.join("near")).unwrap();
    // A folder of `PATH`, one that is not there yet, one that a link leads to and that link, what a
    // link in one leads to, and ours.
    let places = ["own/bin/git", "later/bin/git", "far/bin/git", "near/git", "opt/tool"].map(|place| home.join(place));
    let places = [&places[..], &[bin.join("git-handoff-attempt"), bin.join("git")]].concat();
    let plant = |place: &PathBuf| {
        let (place, folder) = (place.display(), place.parent().unwrap().display());
        format!(
            "cp $TMPDIR/x {place}; cp $TMPDIR/x {place}.new; mv {place}.new {place}; \
             mv {folder} {folder}.away; mkdir -p {folder}; cp $TMPDIR/x {place}"
        )
    };
    let command = format!("echo evil >$TMPDIR/x; {}; true", places.iter().map(plant).collect::<Vec<_>>().join("; "));
    for (name, key, value) in [("home", "home", "real"), ("given", "writable", "~"), ("ours", "writable", "../bin")] {
        scene.repo.config(&format!("handoff.subagent.{name}.{key}"), value);
        scene.repo.config(&format!("handoff.subagent.{name}.command"), &command);
    }
    let plan =
        scene.repo.plan("plants", &[dispatch("home", &[]), dispatch("given", &["home"]), dispatch("ours", &["given"])]);
    let path = ["own/bin", "later/bin", "near"].map(|folder| home.join(folder).to_str().unwrap().to_owned());
    let path = format!("{}:{}", path.join(":"), scene.path());
    let output = scene.handoff_where(&["run", &plan], &[("PATH", &path)]);
    assert_eq!(output.status, Some(0), "{output}");
    let is_evil = |place: &PathBuf| fs::read(place).is_ok_and(|bytes| bytes == b"evil\n");
    Some(places.iter().any(is_evil))
}
