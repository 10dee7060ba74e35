//! Work trees that cannot be written when saved work is put into them.

use serde_json::json as value;

use super::{json, save};
use crate::bad_days::mount::Mount;
use crate::common::Environment;

/// A sender with a large file and other changes, and a clone whose folder `data` is a small disk.
fn ready() -> Option<(Environment, Mount)> {
    let env = Environment::empty();
    env.shell("", "git init --quiet repo").success();
    let base = "mkdir data && echo base >data/a && echo base >data/gone && echo base >top && git add --all && git commit --quiet --message Start";
    env.shell("repo", base).success();
    env.git_in("", ["clone", "--quiet", "--no-local", "repo", "other"]).success();
    let change = "seq 60000 >data/new && echo more >>data/a && rm data/gone && echo changed >top && echo new >first";
    env.shell("repo", change).success();
    save(&env, "t", b"state", &["--worktree"]);
    let descriptor = env.handoff(["offer", "t"]).success();
    env.write("descriptor.json", &descriptor);
    let mount = Mount::tmpfs("100k", &env.path().join("other/data"))?;
    env.git_in("other", ["checkout", "--quiet", "--force", "--", "data"]).success();
    Some((env, mount))
}

fn files(env: &Environment, dir: &str) -> String {
    env.shell(dir, "find . -path ./.git -prune -o -type f -exec sha256sum {} + | sort -k 2").success()
}

const ADOPT: [&str; 6] = ["--json", "adopt", "../descriptor.json", "--as", "u", "--checkout"];
const RESUME: [&str; 4] = ["--json", "resume", "u", "--checkout"];

#[test]
fn checkout_resumes_after_a_full_disk() {
    let Some((env, mount)) = ready() else { return };
    let before = files(&env, "other");
    let written = "cannot write the files of the work tree: No space left on device (os error 28); \
        written and taken back: data/a, data/gone, data/new, first, top";
    let failure = json(&env.handoff_in("other", ADOPT).exit(1).stderr);
    assert_eq!(failure["code"], "unfinished", "{failure}");
    assert_eq!(failure["causes"][0], written, "{failure}");
    // The offer is used, so the same command would not help.
    assert_eq!(failure["hint"], "git handoff resume u --checkout   # does the rest");
    assert_eq!(files(&env, "other"), before);
    let second_failure = json(&env.handoff_in("other", RESUME).exit(1).stderr);
    assert_eq!(
        (&second_failure["code"], &second_failure["message"]),
        (&value!("work-tree"), &value!(written)),
        "{second_failure}"
    );
    assert_eq!(second_failure["hint"], "free some space, then run the same command again");
    assert_eq!(files(&env, "other"), before);
    mount.remount_with("size=4m");
    env.handoff_in("other", RESUME).success();
    assert_eq!(files(&env, "other"), files(&env, "repo"));
}

#[test]
fn a_read_only_folder_refuses_before_the_offer_is_used() {
    let Some((env, mount)) = ready() else { return };
    mount.remount_with("size=4m");
    mount.remount("ro");
    let before = files(&env, "other");
    let failure = json(&env.handoff_in("other", ADOPT).exit(1).stderr);
    let message = "cannot write into the folder $TEST/other/data; nothing was changed";
    assert_eq!((&failure["code"], &failure["message"]), (&value!("work-tree"), &value!(message)), "{failure}");
    assert_eq!(files(&env, "other"), before);
    mount.remount("rw");
    env.handoff_in("other", ADOPT).success();
    assert_eq!(files(&env, "other"), files(&env, "repo"));
}
