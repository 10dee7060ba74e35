//! Notes of `run` on programs to which the sandbox refuses something.

use super::scene::{Layers, Scene};
use crate::common::repo::item;

/// The message of a program, and the note of `run`.
const CASES: &[(&str, &str)] = &[
    (
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "    a container cannot start inside the worker's sandbox, and no worker reaches a daemon that starts some: start \
         it outside and let the item connect to its port, or set the executor's `sandbox = none`",
    ),
    (
        "sudo: PERM_SUDOERS: setresuid(-1, 1, -1): Operation not permitted",
        "    a worker gets no other user's rights, with sudo and su neither: prepare what needs them outside, or set the \
         executor's `sandbox = none`",
    ),
    (
        "fuse: device not found, try 'modprobe fuse' first",
        "    a worker mounts no file systems: mount it outside and name it in the executor's `readable`, or set \
         `sandbox = none`",
    ),
    (
        "fakeroot: error while starting the `faked' daemon.",
        "    without bubblewrap a worker gets no memory of System V, which would outlive it: install bubblewrap",
    ),
    (
        "You do not have permission to use at.",
        "    a worker leaves no jobs in the queues of at and cron, which would run outside of the sandbox: leave out the \
         step, or set the executor's `sandbox = none`",
    ),
    (
        "error: remote unpack failed: unable to create temporary object directory",
        "    a worker pushes to no repository of this machine: its work is the patch, which `git handoff apply` takes",
    ),
    (
        "error: remounting /nix/store writable: Operation not permitted",
        "    a worker reads the store of Nix and adds nothing to it: build what the item needs outside, or set the \
         executor's `sandbox = none`",
    ),
    (
        "File size limit exceeded",
        "    no file of an attempt may be larger than `handoff.maxFileSize` or, without it, `handoff.maxDisk`, also one \
         with holes: raise the limit",
    ),
    (
        "No screen session found.",
        "    screen does not start for a worker that is root, because it gives its terminal to a group: use tmux, or \
         drive the run as a user who is not root",
    ),
];

#[test]
fn run_reports_sandbox_refusals() {
    for layers in [Layers::None, Layers::Inner] {
        let scene = Scene::new(layers);
        for (n, (message, note)) in CASES.iter().enumerate() {
            let script = format!("cat <<'END'\n{message}\nEND\nfalse");
            let output = scene.drive(&format!("r{n}"), &[item("a", &script)]).exit(4);
            let notes = output.stderr.lines().filter(|line| line == note).count();
            assert_eq!(notes, usize::from(layers != Layers::None), "{layers:?}: {output}");
        }
        let script = format!("echo '{}'; false", CASES[0].0);
        let output = scene.handoff(&["record", "--as", "recorded", "--", "sh", "-c", &script]).exit(4);
        let notes = output.stderr.lines().filter(|line| *line == CASES[0].1).count();
        assert_eq!(notes, usize::from(layers != Layers::None), "{layers:?}: {output}");
        // An item that is done needed none of it.
        let second_script = format!("cat <<'END'\n{}\nEND", CASES[0].0);
        let second_output = scene.drive("done", &[item("a", &second_script)]).exit(0);
        assert!(!second_output.stderr.contains(CASES[0].1), "{second_output}");
    }
}

/// The calls themselves are refused, and programs name them.
#[test]
fn run_reports_refused_system_calls() {
    let note = "    the sandbox refuses perf_event_open, userfaultfd and io_uring, which reach deep into the kernel: use the \
                program without them, or set the executor's `sandbox = none`";
    let settings =
        "    a worker writes nothing below /proc: leave out the step, or set the executor's `sandbox = none`";
    let scene = Scene::new(Layers::Inner);
    let call = "python3 -c 'import ctypes,os,sys; l=ctypes.CDLL(None,use_errno=True); l.syscall(323, 1); \
                sys.exit(\"userfaultfd: \" + os.strerror(ctypes.get_errno()))'";
    let output = scene.drive("call", &[item("a", call)]).exit(4);
    assert!(output.stderr.lines().any(|line| line == note), "{output}");
    let second_output = scene.drive("score", &[item("a", "echo 500 >/proc/self/oom_score_adj")]).exit(4);
    assert!(second_output.stderr.lines().any(|line| line == settings), "{second_output}");
}
