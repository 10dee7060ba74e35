//! Filters of the repository that take what they do from the folder that they run in, and what
//! becomes of what they make.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::scene::{Layers, Scene, has_bubblewrap};
use crate::common::Output;
use crate::common::repo::{Seen, item};
use crate::common::report::{find_line, find_row};

/// The row of an item whose products could not be taken in time.
const TOO_SLOW: &str = "✗ a  failed  1 attempt  the products could not be taken: \
                        capturing the item's products exceeds `handoff.captureTimeout`";

/// A filter that looks for its settings where it runs, as many do; they are a program.
const TIDY: &str = "#!/bin/sh\nif [ -f tidy.conf ]; then . ./tidy.conf; fi\ntr a-z A-Z\n";

/// A filter like git-lfs: content goes to the storage, and a pointer comes out.
const LFS: &str = "#!/bin/sh
set -e
storage=$(git config lfs.storage) content=$(mktemp)
cat >$content
name=$(sha256sum $content | cut -c1-64)
folder=$storage/objects/$(echo $name | cut -c1-2)/$(echo $name | cut -c3-4)
mkdir -p $folder
python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[2])' $content $folder/$name
printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize %s\\n' $name $(stat -c %s $folder/$name)
";

/// A filter that is started once for all files, by the protocol of gitattributes(5), and looks for
/// its settings as the first does.
pub(crate) const MANY: &str = "#!/usr/bin/env python3
import subprocess, sys
subprocess.run(['sh', '-c', '[ ! -f tidy.conf ] || . ./tidy.conf'])
def get():
    head = sys.stdin.buffer.read(4)
    if not head:
        sys.exit(0)
    size = int(head, 16)
    return sys.stdin.buffer.read(size - 4) if size else None
def packets():
    return list(iter(get, None))
def put(*packets):
    for packet in packets:
        sys.stdout.buffer.write(b'%04x' % (len(packet) + 4) + packet)
    sys.stdout.buffer.write(b'0000')
    sys.stdout.buffer.flush()
packets()
put(b'git-filter-server\\n', b'version=2\\n')
packets()
put(b'capability=clean\\n')
while True:
    packets()
    content = b''.join(packets())
    put(b'status=success\\n')
    put(content.upper())
    put()
";

/// Tries to have a filter run what a worker left; `then` ends the item, with which the command ends
/// with `status`. Returns whether it worked.
pub(super) fn works(scene: &Scene, then: &str, status: i32) -> bool {
    set_up(scene);
    let (home, stolen) = (scene.repo.path("home"), scene.repo.path("beside/taken"));
    let planted = format!("cp {}/signing_key {}", home.display(), stolen.display());
    let output = run(scene, "filtered", &format!("echo '{planted}' >tidy.conf; echo text >a.tidy; {then}"));
    assert_eq!(output.status, Some(status), "{output}");
    let made = match status {
        0 => scene.handoff(&["cat", "filtered/a:patch"]).success(),
        _ => scene.repo.env.git(["grep", "-h", ".", "refs/handoff/salvage/filtered", "--", "*.tidy"]).success(),
    };
    assert!(made.contains("TEXT"), "{made}{output}");
    stolen.exists()
}

/// Puts the filters where programs are found, and has the repository use them.
fn set_up(scene: &Scene) {
    for (name, program) in [("tidy", TIDY), ("lfs-like", LFS), ("many", MANY)] {
        let path = format!("tools/bin/{name}");
        scene.repo.env.write(&path, program);
        fs::set_permissions(scene.repo.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
    }
    for name in ["tidy", "lfs-like"] {
        scene.repo.config(&format!("filter.{name}.clean"), name);
        scene.repo.config(&format!("filter.{name}.required"), "true");
    }
    scene.repo.env.write("repo/.gitattributes", "*.tidy filter=tidy\n*.large filter=lfs-like\n");
    scene.repo.env.git(["add", "."]).success();
    scene.repo.env.git(["commit", "-qm", "filters"]).success();
}

/// Runs one line of shell, once.
fn run(scene: &Scene, run: &str, script: &str) -> Output {
    let mut item = item("a", script);
    item["maxAttempts"] = json!(1);
    drive(scene, run, &[item])
}

/// Runs items where the filters are found.
fn drive(scene: &Scene, run: &str, items: &[Value]) -> Output {
    let plan = scene.repo.plan(run, items);
    let path = format!("{}:{}", scene.repo.path("tools/bin").display(), scene.path());
    scene.handoff_where(&["run", &plan], &[("PATH", &path)])
}

fn layers() -> Vec<Layers> {
    let all = has_bubblewrap("filters on all layers").then_some(Layers::All);
    [Layers::Inner].into_iter().chain(all).collect()
}

#[test]
fn capture_preserves_the_mode_of_filtered_files() {
    for layers in layers() {
        let scene = Scene::new(layers);
        set_up(&scene);
        let script = "echo one >'a b.tidy'; chmod +x 'a b.tidy'; echo two >'c\nd.tidy'; ln -s x.tidy l.tidy; echo three >plain; \
                      mkdir -p outputs; echo four >outputs/o.tidy";
        run(&scene, "made", script).ends(0);
        let patch = scene.handoff(&["cat", "made/a:patch"]).success();
        for expected in ["new file mode 100755", "+ONE\n", "+TWO\n", "new file mode 120000", "+x.tidy\n", "+three\n"] {
            assert!(patch.contains(expected), "{expected}: {patch}");
        }
        // Outputs are what they are.
        assert_eq!(scene.handoff(&["cat", "made/a:outputs/o.tidy"]).success(), "four\n");
    }
}

#[test]
fn a_filter_that_is_started_once_for_all_files_runs_inside_as_well() {
    for layers in layers() {
        let scene = Scene::new(layers);
        set_up(&scene);
        scene.repo.config("filter.many.process", "many");
        scene.repo.config("filter.many.required", "true");
        scene.repo.env.write("repo/.gitattributes", "*.tidy filter=many\n");
        scene.repo.env.git(["commit", "-qam", "one for many"]).success();
        let (key, stolen) = (scene.repo.path("home/signing_key"), scene.repo.path("beside/taken"));
        let planted = format!("cp {} {}; touch ran", key.display(), stolen.display());
        let output = run(
            &scene,
            "many",
            &format!(
                "echo '{planted}' >tidy.conf; for i in 1 2 3; do echo text $i >$i.tidy; done; echo as it is >plain"
            ),
        );
        assert_eq!(output.status, Some(0), "{output}");
        let patch = scene.handoff(&["cat", "many/a:patch"]).success();
        for expected in ["+TEXT 1\n", "+TEXT 2\n", "+TEXT 3\n", "+as it is\n"] {
            assert!(patch.contains(expected), "{expected}: {patch}");
        }
        assert!(!stolen.exists() && !patch.contains("b/ran"), "{patch}");
    }
}

#[test]
fn nothing_that_a_filter_leaves_is_used_but_bytes() {
    for layers in layers() {
        let scene = Scene::new(layers);
        set_up(&scene);
        let (key, stolen) = (scene.repo.path("home/signing_key"), scene.repo.path("beside/taken"));
        let confs = [
            ("link", format!("ln -s {} $GIT_DIR/blobs", key.display())),
            ("pipe", "mkfifo $GIT_DIR/blobs".to_owned()),
            (
                "noise",
                "sleep 0.1 && echo 0 blob 9999999999 >$GIT_DIR/blobs & echo '[core' >>$GIT_DIR/config".to_owned(),
            ),
            ("moved", "mv $GIT_DIR $GIT_DIR.away; ln -s / $GIT_DIR".to_owned()),
        ];
        let left = |(name, conf): &(&str, String)| {
            let quoted = conf.replace('\'', "'\\''");
            item(name, &format!("echo '{quoted}' >tidy.conf; echo text >a.tidy"))
        };
        scene.repo.config("handoff.captureTimeout", "4");
        let output = drive(&scene, "left", &confs.each_ref().map(left));
        let items = scene.repo.items("left");
        for (name, _) in &confs {
            let patch = scene.handoff(&["cat", &format!("left/{name}:patch")]).stdout;
            let Seen { status, reason, .. } = &items[*name];
            let is_told = reason.contains("a filter of the repository") || reason.contains("captureTimeout");
            match &**status {
                "done" => assert!(patch.contains("+TEXT\n"), "{name}: {patch}{output}"),
                _ => assert!(status == "failed" && is_told, "{name}: {status}: {reason}: {output}"),
            }
            assert!(!format!("{reason}{patch}").contains("PRIVATE"), "{name}: {reason}{patch}");
        }
        let is_failed = items.values().any(|item| item.status == "failed");
        assert_eq!(output.status, Some(if is_failed { 4 } else { 0 }), "{output}");
        assert!(!output.to_string().contains("PRIVATE"), "{output}");
        // A configuration of its making runs nothing of ours.
        let conf =
            format!("git config core.fsmonitor 'touch {0}; false'; git config core.hooksPath . ", stolen.display());
        let hook = format!(
            "printf '#!/bin/sh\\ntouch {}\\n' >post-index-change; chmod +x post-index-change",
            stolen.display()
        );
        let quoted = conf.replace('\'', "'\\''");
        run(&scene, "config", &format!("{hook}; echo '{quoted}' >tidy.conf; echo text >a.tidy")).ends(0);
        assert!(!stolen.exists());
    }
}

#[test]
fn filter_output_is_bounded() {
    let scene = Scene::new(Layers::Inner);
    set_up(&scene);
    scene.repo.config("handoff.maxProductSize", "100k");
    let output = run(&scene, "flood", "echo 'yes | head -c 200000' >tidy.conf; echo text >a.tidy");
    assert_eq!(output.status, Some(4), "{output}");
    insta::assert_snapshot!(find_row(&output.stdout, "a"), @r#"✗ a  failed  1 attempt  filters made 200005 bytes of "a.tidy", and no more than 102400 are taken"#);
}

#[test]
fn capture_copies_new_git_lfs_objects() {
    for layers in layers() {
        let scene = Scene::new(layers);
        set_up(&scene);
        let lfs_objects = || {
            let lfs = scene.repo.path("repo/.git/lfs/objects");
            let mut folders = vec![lfs];
            let mut files = Vec::new();
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                    if entry.path().is_dir() { folders.push(entry.path()) } else { files.push(entry.path()) }
                }
            }
            files
        };
        // In pieces, so that the plan has none.
        let secret = "b=BEG e=EN; printf -- \"-----${b}IN OPENSSH PRIVATE KEY-----\\n\" >k.large; \
                      for i in 1 2 3 4 5 6; do echo b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW; done >>k.large; \
                      printf -- \"-----${e}D OPENSSH PRIVATE KEY-----\\n\" >>k.large";
        let output = run(&scene, "secret", secret);
        assert_eq!(output.status, Some(4), "{output}");
        assert_eq!(find_row(&output.stdout, "a"), "✗ a  failed  1 attempt  secret-found: k.large:1 private-key");
        assert_eq!(lfs_objects(), Vec::<std::path::PathBuf>::new());
        run(&scene, "done", "echo content >b.large").ends(0);
        let patch = scene.handoff(&["cat", "done/a:patch"]).success();
        let name = "434728a410a78f56fc1b5899c3593436e61ab0c731e9072d95e96db290205e53";
        assert!(patch.contains(&format!("+oid sha256:{name}\n")), "{patch}");
        let objects = lfs_objects();
        assert!(objects.len() == 1 && objects[0].ends_with(format!("43/47/{name}")), "{objects:?}");
        assert_eq!(fs::read(&objects[0]).unwrap(), b"content\n");
    }
}

#[test]
fn a_capture_ends_when_its_time_is_up() {
    let scene = Scene::new(Layers::Inner);
    set_up(&scene);
    scene.repo.config("handoff.captureTimeout", "2");
    let started = std::time::Instant::now();
    let slow = run(&scene, "slow", "echo 'sleep 60' >tidy.conf; echo text >a.tidy; echo other >b");
    // All else of what the attempt left is saved.
    let saved = scene.repo.env.git(["ls-tree", "-r", "--name-only", "refs/handoff/salvage/slow"]).success();
    assert!(saved.contains("b\n") && !saved.contains("a.tidy"), "{saved}");
    insta::assert_snapshot!(find_line(&slow.stderr, "a: left out "), @r#"a: left out of the saved work of attempt 1: "a.tidy", whose filter failed, or kept a secret of it elsewhere"#);
    // Patterns that are tried in very many ways on each of very many names.
    let ignoring = "for i in $(seq 3000); do echo \"*a*[b]*$i?x\"; done >.gitignore; mkdir m; \
                    for i in $(seq 3000); do : >m/aab_$i$(printf 'ab%.0s' $(seq 90)); done";
    let ignored = run(&scene, "ignored", ignoring);
    for output in [slow, ignored] {
        assert_eq!(output.status, Some(4), "{output}");
        assert_eq!(find_row(&output.stdout, "a"), TOO_SLOW);
    }
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

#[test]
fn attributes_of_the_user_apply_inside_the_sandbox() {
    for layers in layers() {
        let scene = Scene::new(layers);
        set_up(&scene);
        scene.repo.env.write("repo/.gitattributes", "");
        scene.repo.env.git(["commit", "-qam", "no attributes"]).success();
        scene.repo.env.write("home/.config/git/attributes", "*.tidy filter=tidy\n");
        run(&scene, "usual", "echo text >a.tidy").ends(0);
        assert!(scene.handoff(&["cat", "usual/a:patch"]).success().contains("+TEXT\n"));
        scene.repo.env.write("beside/attributes", "*.other filter=tidy\n");
        scene.repo.config("core.attributesFile", scene.repo.path("beside/attributes").to_str().unwrap());
        run(&scene, "named", "echo text >a.other; echo text >b.tidy").ends(0);
        let patch = scene.handoff(&["cat", "named/a:patch"]).success();
        // As for git, the one takes the place of the other.
        assert!(patch.contains("+TEXT\n") && patch.contains("+text\n"), "{patch}");
    }
}

#[test]
fn failed_filter_changes_no_file_content() {
    for layers in [Layers::None].into_iter().chain(layers()) {
        let scene = Scene::new(layers);
        set_up(&scene);
        scene.repo.env.git(["config", "--unset", "filter.tidy.required"]).success();
        for (name, command) in [("fails", "cat; exit 3"), ("missing", "no-such-program")] {
            scene.repo.config("filter.tidy.clean", command);
            let output = run(&scene, name, "echo text >a.tidy");
            assert_eq!(output.status, Some(4), "{layers:?} {name}: {output}");
            let text = format!("{}{}", output.stdout, output.stderr);
            assert!(text.contains("tidy"), "{text}");
        }
    }
}

#[test]
fn git_lfs_objects_are_bounded() {
    let scene = Scene::new(Layers::Inner);
    set_up(&scene);
    scene.repo.config("handoff.captureTimeout", "2");
    // One of nothing but holes, and one that differs; whatever the file, a pointer to the one that
    // it names comes of it.
    let conf = "set -e; read which; f=$(mktemp); truncate -s $SIZE $f; \
                [ $which = one ] || printf x >>$f; \
                if [ $which = one ]; then n=$ONE; else n=$OTHER; fi; \
                d=$(git config lfs.storage)/objects/$(echo $n | cut -c1-2)/$(echo $n | cut -c3-4); mkdir -p $d; \
                [ -e $d/$n ] || mv $f $d/$n; \
                printf \"version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize 1\\n\" $n; exit 0";
    let prepare = |size: &str| {
        format!(
            "f=$(mktemp); truncate -s {size} $f; ONE=$(sha256sum $f | cut -c1-64); \
             printf x >>$f; OTHER=$(sha256sum $f | cut -c1-64); rm $f; \
             {{ echo SIZE={size}; echo ONE=$ONE; echo OTHER=$OTHER; echo '{conf}'; }} >tidy.conf"
        )
    };
    let many = "for i in $(seq 40); do echo one >$i.tidy; done";
    let output = run(&scene, "often", &format!("{}; {many}", prepare("90M")));
    assert_eq!(output.status, Some(4), "{output}");
    assert_eq!(find_row(&output.stdout, "a"), TOO_SLOW);
    scene.repo.config("handoff.captureTimeout", "300");
    scene.repo.config("handoff.maxDisk", "12m");
    let second_output = run(&scene, "much", &format!("{}; echo one >1.tidy; echo other >2.tidy", prepare("9M")));
    assert_eq!(second_output.status, Some(4), "{second_output}");
    insta::assert_snapshot!(find_row(&second_output.stdout, "a"), @"✗ a  failed  1 attempt  what the filter of git-lfs left of 2.tidy is not what it names, or more than may be taken");
}

#[test]
fn a_secret_among_what_git_lfs_keeps_loses_no_other_work() {
    for layers in layers() {
        let scene = Scene::new(layers);
        set_up(&scene);
        let secret = "b=BEG e=EN; printf -- \"-----${b}IN OPENSSH PRIVATE KEY-----\\n\" >b.large; \
                      for i in 1 2 3 4 5 6; do echo b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW; done >>b.large; \
                      printf -- \"-----${e}D OPENSSH PRIVATE KEY-----\\n\" >>b.large";
        let output = run(
            &scene,
            "failed",
            &format!("echo work >work.txt; echo fine >a.large; echo other >c.large; {secret}; exit 1"),
        );
        assert_eq!(output.status, Some(4), "{output}");
        let saved = scene.repo.env.git(["grep", "-h", ".", "refs/handoff/salvage/failed"]).success();
        assert!(saved.contains("work") && saved.matches("oid sha256:").count() == 2, "{saved}{output}");
        assert!(!saved.contains("b3BlbnNzaC1rZXkt"), "{saved}");
    }
}

#[test]
fn names_that_are_words_to_git_are_names() {
    let scene = Scene::new(Layers::Inner);
    set_up(&scene);
    run(
        &scene,
        "names",
        "echo one >':!x'; mkdir ':(top)outputs'; echo two >':(top)outputs/y'; echo three >':(top).tidy'",
    )
    .ends(0);
    let patch = scene.handoff(&["cat", "names/a:patch"]).success();
    for expected in ["b/:!x", "b/:(top)outputs/y", "b/:(top).tidy", "+one\n", "+two\n", "+THREE\n"] {
        assert!(patch.contains(expected), "{expected}: {patch}");
    }
}
