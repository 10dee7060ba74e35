//! Caches of tools, and folders for temporary files: workers write in their place, and what is the
//! user's stays as it is.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::{Value, json};

use super::scene::{Layers, Scene, has_bubblewrap, tree};
use crate::common::Output;
use crate::common::repo::item;
use crate::common::report::find_row;

/// How workers are confined.
const WAYS: [Layers; 2] = [Layers::Inner, Layers::All];

/// Scenes with caches, each with its way of confining.
fn scenes(what: &str) -> impl Iterator<Item = (Layers, Scene)> {
    let can = |layers: &Layers| *layers != Layers::All || has_bubblewrap(what);
    WAYS.into_iter().filter(can).map(|layers| {
        let scene = Scene::new(layers);
        for (path, text) in [
            ("home/.npm/_cacache/index", "one\n"),
            ("home/.npm/_cacache/content/a", "a\n"),
            ("home/.cargo/bin/tool", "#!/bin/sh\necho tool\n"),
            ("home/.cargo/registry/crate", "crate\n"),
            ("home/.cargo/credentials.toml", "SECRET"),
            ("home/go/pkg/mod/m@v1/m.go", "package m\n"),
        ] {
            scene.repo.env.write(path, text);
        }
        let tool = scene.repo.path("home/.cargo/bin/tool");
        fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).unwrap();
        (layers, scene)
    })
}

/// An item of a subagent, which has settings of its own.
fn subagent(id: &str) -> Value {
    json!({ "id": id, "executor": "dispatch", "inputs": { "subagent": "x" }, "maxAttempts": 1 })
}

fn transcript(scene: &Scene, piece: &str) -> String {
    scene.handoff(&["cat", &format!("{piece}:transcript")]).stdout
}

fn done(output: &Output, scene: &Scene, piece: &str) -> String {
    let text = transcript(scene, piece);
    assert_eq!(output.status, Some(0), "{output}{text}");
    text
}

/// Operations of a tool on its cache: lock, append, replace, remove, add.
const TOOL: &str = "cd ~/.npm/_cacache && flock index true && echo two >>index && cat index content/a && echo b >b.tmp && \
                    mv b.tmp content/b && rm content/a && chmod 0600 index && ln index linked && ls . content";

#[test]
fn a_tool_works_with_its_cache_and_the_users_stays_as_it_is() {
    for (layers, scene) in scenes("writing to caches") {
        let home = scene.repo.path("home");
        let listed = || [".npm", ".cargo", "go"].map(|folder| tree(&home.join(folder)));
        let before = listed();
        // Each starts with what the user has.
        for run in ["first", "second"] {
            let transcript = scene.run_script(run, TOOL);
            assert_eq!(transcript, "one\ntwo\na\n.:\ncontent\nindex\nlinked\n\ncontent:\nb\n", "{layers:?}");
        }
        assert_eq!(listed(), before, "{layers:?}");
    }
}

#[test]
fn setup_and_command_share_what_they_write_and_the_check_does_not_see_it() {
    for (layers, scene) in scenes("setup and command") {
        scene.repo.config("handoff.subagent.x.setup", "echo setup >~/.npm/_cacache/new; echo tmp >$TMPDIR/file");
        scene.repo.config("handoff.subagent.x.command", "cat ~/.npm/_cacache/new $TMPDIR/file");
        scene.repo.config("handoff.subagent.x.verify", "test ! -e $TMPDIR/file && ls ~/.npm/_cacache");
        let output = scene.drive("parts", &[subagent("a")]);
        let transcript = done(&output, &scene, "parts/a");
        assert_eq!(transcript, "setup\ntmp\ncontent\nindex\n", "{layers:?}");
    }
}

#[test]
fn missing_cache_can_be_created_next_to_read_only_files() {
    for (layers, scene) in scenes("new caches") {
        let transcript = scene.run_script(
            "new",
            "mkdir -p ~/.cargo/git/db ~/.cache/uv ~/.gradle/caches ~/.m2/repository ~/go/pkg/mod/n && touch ~/.cache/uv/lock \
             ~/.cargo/.package-cache ~/.cargo/git/db/x ~/.gradle/caches/x ~/.m2/repository/x && ~/.cargo/bin/tool 2>&1; \
             cat ~/.cargo/registry/crate; (echo evil >~/.cargo/bin/tool) 2>/dev/null || echo kept; cat ~/.cargo/credentials.toml 2>&1; true",
        );
        assert!(transcript.contains("crate\nkept\n") && !transcript.contains("SECRET"), "{layers:?}: {transcript}");
    }
}

#[test]
fn a_cache_that_a_variable_moves_is_found_by_it() {
    for (layers, scene) in scenes("moved caches") {
        scene.repo.env.write("moved/go/one", "one\n");
        let moved = scene.repo.path("moved/go");
        let before = tree(&moved);
        let plan =
            scene.repo.plan("moved", &[item("a", "cat $GOCACHE/one && echo two >$GOCACHE/one && cat $GOCACHE/one")]);
        let output = scene.handoff_where(&["run", &plan], &[("GOCACHE", moved.to_str().unwrap())]);
        assert_eq!(done(&output, &scene, "moved/a"), "one\ntwo\n", "{layers:?}");
        assert_eq!(tree(&moved), before, "{layers:?}");
        // It need not be there.
        let missing = scene.repo.path("missing/go");
        let second_plan =
            scene.repo.plan("missing", &[item("a", "mkdir -p $GOCACHE && echo x >$GOCACHE/x && cat $GOCACHE/x")]);
        let run_output = scene.handoff_where(&["run", &second_plan], &[("GOCACHE", missing.to_str().unwrap())]);
        assert_eq!(done(&run_output, &scene, "missing/a"), "x\n", "{layers:?}");
        assert!(!missing.exists());
    }
}

#[test]
fn the_word_of_a_setting_about_a_cache_holds() {
    for (layers, scene) in scenes("settings about caches") {
        scene.repo.config("handoff.subagent.x.writable", "~/.npm/_cacache");
        scene.repo.config("handoff.subagent.x.readable", "~/.cargo/registry");
        scene.repo.config(
            "handoff.subagent.x.command",
            "echo mine >~/.npm/_cacache/mine && cat ~/.cargo/registry/crate && ! touch ~/.cargo/registry/new 2>/dev/null",
        );
        let output = scene.drive("given", &[subagent("a")]);
        assert_eq!(done(&output, &scene, "given/a"), "crate\n", "{layers:?}");
        assert_eq!(fs::read_to_string(scene.repo.path("home/.npm/_cacache/mine")).unwrap(), "mine\n", "{layers:?}");
    }
}

#[test]
fn attempts_at_the_same_time_write_each_their_own() {
    for (layers, scene) in scenes("caches at the same time") {
        let script = |own: &str| {
            format!("cd ~/.npm/_cacache && echo {own} >own && sleep 1 && cat own && ls /tmp >/dev/null 2>&1; true")
        };
        let output = scene.drive("beside", &[item("a", &script("a")), item("b", &script("b"))]);
        for own in ["a", "b"] {
            assert_eq!(done(&output, &scene, &format!("beside/{own}")), format!("{own}\n"), "{layers:?}");
        }
    }
}

#[test]
fn cache_writes_count_towards_disk_use() {
    for (layers, scene) in scenes("the size of caches") {
        scene.repo.config("handoff.maxDisk", "8M");
        let output = scene.drive(
            "large",
            &[json!({ "id": "a", "executor": "command", "maxAttempts": 1,
            "inputs": { "command": "for n in 1 2 3 4; do head -c 4M /dev/zero >~/.npm/_cacache/$n; done; sleep 5" } })],
        );
        assert_ne!(output.status, Some(0), "{layers:?}: {output}");
        assert_eq!(find_row(&output.stdout, "a"), "✗ a  failed  1 attempt  filled more than 8388608 bytes of the disk");
    }
}

#[test]
fn nothing_of_it_is_left_behind() {
    for (layers, scene) in scenes("leftovers of caches") {
        // An inaccessible folder is left over.
        scene.run_script("gone", "mkdir -p ~/.npm/_cacache/shut/in && chmod 0 ~/.npm/_cacache/shut; echo x >$TMPDIR/x");
        let own = find(&scene.repo.path("worktrees"), "@own");
        assert_eq!(own, Vec::<String>::new(), "{layers:?}");
    }
}

/// Returns what is in the folders of a name.
fn find(top: &Path, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for folder in
        fs::read_dir(top).unwrap().map(|entry| entry.unwrap().path().join(name)).filter(|folder| folder.is_dir())
    {
        found.extend(fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().display().to_string()));
    }
    found
}

#[test]
fn oversized_cache_is_empty_with_one_warning() {
    let scene = Scene::new(Layers::Inner);
    scene.repo.env.write("home/.cache/uv/file", "x");
    scene.repo.env.write("home/.npm/small", "x");
    // A hole takes no room on the disk, and would in a copy.
    fs::File::options().write(true).open(scene.repo.path("home/.npm/small")).unwrap().set_len(2 << 30).unwrap();
    let script = "ls ~/.npm; echo x >~/.npm/x && cat ~/.npm/x ~/.cache/uv/file; echo $npm_config_cache";
    let output = scene.drive("large", &[item("a", script), item("b", "true")]);
    let transcript = done(&output, &scene, "large/a");
    assert!(transcript.starts_with("x\nx") && transcript.ends_with("/home/.npm\n"), "{transcript}");
    let line = format!(
        "workers begin with empty caches in the place of {}: no overlay can be mounted here, and copies have at most 1 GiB \
         and 100000 files",
        scene.repo.path("home/.npm").display()
    );
    assert_eq!(output.stderr.matches(&line).count(), 1, "{output}");
}

#[test]
fn a_large_copy_is_made_only_for_a_worktree_that_needs_it() {
    let scene = Scene::new(Layers::Inner);
    scene.repo.env.write("home/.npm/_cacache/index", "one\n");
    scene.repo.env.write("home/.cargo/registry/crate", "crate\n");
    let large = fs::File::options().write(true).open(scene.repo.path("home/.npm/_cacache/index")).unwrap();
    large.set_len(20 << 20).unwrap();
    let script = "head -c 4 ~/.npm/_cacache/index 2>/dev/null; cat ~/.cargo/registry/crate; touch ~/.npm/new";
    assert_eq!(scene.run_script("other", script), "crate\n");
    scene.repo.env.shell("repo", "mkdir -p web/app && echo {} >web/app/package.json && git add web").success();
    scene.repo.env.git(["commit", "-qm", "Web"]).success();
    assert_eq!(scene.run_script("needed", script), "one\ncrate\n");
}

#[test]
fn a_cache_that_an_xdg_variable_moves_is_found_by_it() {
    for (layers, scene) in scenes("caches of XDG") {
        let files = ["cache/uv/one", "data/gem/two", "config/mise/config.toml", "config/gh/hosts.yml"];
        for file in files {
            scene.repo.env.write(&format!("xdg/{file}"), &format!("{file}\n"));
        }
        scene.repo.env.write("xdg/config/pip/pip.conf", "[global]\n");
        // Files at the usual place do not count.
        scene.repo.env.write("home/.cache/uv/old", "old\n");
        scene.repo.env.write("home/.config/mise/config.toml", "old\n");
        let place = |name: &str| scene.repo.path(name).to_str().unwrap().to_owned();
        let before = ["cache/uv", "config", "data"].map(|folder| tree(&scene.repo.path("xdg").join(folder)));
        let script = "cd ~ && cat .cache/uv/one .local/share/gem/two .config/mise/config.toml .config/pip/pip.conf && \
                      echo new >.cache/uv/one && cat .cache/uv/one && ls .cache/uv; cat .config/gh/hosts.yml $GH 2>/dev/null; true";
        scene.repo.config("handoff.executor.command.env", &format!("GH={}", place("xdg/config/gh/hosts.yml")));
        let plan = scene.repo.plan("xdg", &[item("a", script)]);
        let moved = ["CACHE", "DATA", "CONFIG"].map(|kind| {
            let folder = place(&format!("xdg/{}", kind.to_lowercase()));
            (format!("XDG_{kind}_HOME"), folder)
        });
        let moved: Vec<_> = moved.iter().map(|(name, folder)| (name.as_str(), folder.as_str())).collect();
        let output = scene.handoff_where(&["run", &plan], &moved);
        let expected = "cache/uv/one\ndata/gem/two\nconfig/mise/config.toml\n[global]\nnew\none\n";
        assert_eq!(done(&output, &scene, "xdg/a"), expected, "{layers:?}");
        let after = ["cache/uv", "config", "data"].map(|folder| tree(&scene.repo.path("xdg").join(folder)));
        assert_eq!(after, before, "{layers:?}");
        // Its secrets have the same names there, also where a setting gives the folder.
        scene.repo.config("handoff.subagent.x.readable", &place("xdg"));
        scene.repo.config(
            "handoff.subagent.x.command",
            &format!("cd {} && cat cache/uv/one config/gh/hosts.yml; true", place("xdg")),
        );
        let second_plan = scene.repo.plan("given", &[subagent("a")]);
        let run_output = scene.handoff_where(&["run", &second_plan], &moved);
        let transcript = done(&run_output, &scene, "given/a");
        assert!(
            transcript.starts_with("cache/uv/one\n") && !transcript.contains("\nconfig/gh"),
            "{layers:?}: {transcript}"
        );
    }
}

#[test]
fn java_finds_a_home_and_temporary_files_by_options() {
    for (layers, scene) in scenes("options of Java") {
        scene.repo.env.write("java/mvn", "#!/bin/sh\necho $MAVEN_OPTS; echo $GRADLE_OPTS\n");
        let program = scene.repo.path("java/mvn");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", program.parent().unwrap().display(), scene.path());
        scene.repo.config("handoff.executor.command.passEnv", "MAVEN_OPTS");
        let plan = scene.repo.plan("java", &[item("a", "mvn; echo -Duser.home=$HOME; echo -Djava.io.tmpdir=$TMPDIR")]);
        let output = scene.handoff_where(&["run", &plan], &[("PATH", &path), ("MAVEN_OPTS", "-Xmx1g")]);
        let transcript = done(&output, &scene, "java/a");
        let lines: Vec<&str> = transcript.lines().collect();
        let expected = if layers == Layers::All { lines[2].to_owned() } else { lines[2..4].join(" ") };
        assert_eq!(lines[..2], [format!("-Xmx1g {expected}"), expected], "{layers:?}");
    }
}

/// fakeroot keeps the owner that a file would have, if the call lacks the permission alone.
#[test]
fn a_file_is_given_to_no_other_user() {
    for (layers, scene) in scenes("owners") {
        let chown = "echo x >f; LC_ALL=C chown 12345 f 2>&1; LC_ALL=C chgrp 12345 f 2>&1; chown $(id -u):$(id -g) f";
        let lines = ["chown: changing ownership of 'f'", "chgrp: changing group of 'f'"];
        let expected = lines.map(|line| format!("{line}: Operation not permitted\n")).concat();
        assert_eq!(scene.run_script("owner", chown), expected, "{layers:?}");
    }
}

/// Outside of a sandbox, root's `tar` would give the file to that user.
#[test]
fn root_unpacks_an_archive_of_another_owner() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for (layers, scene) in scenes("an archive") {
        let unpack = "echo x >f; tar --owner=12345 --group=12345 -cf a.tar f; mkdir o; tar -xf a.tar -C o && cat o/f";
        assert_eq!(scene.run_script("archive", unpack), "x\n", "{layers:?}");
    }
}

/// These programs use neither `HOME` nor `TMPDIR`.
#[test]
fn programs_with_folders_of_their_own_get_some_in_tmpdir() {
    for (layers, scene) in scenes("folders of programs") {
        let script = "for f in $ANSIBLE_REMOTE_TEMP $SCREENDIR; do mkdir -m 0700 $f && echo ${f#$TMPDIR/}; done";
        assert_eq!(scene.run_script("folders", script), "ansible\nscreen\n", "{layers:?}");
        scene.repo.config("handoff.executor.command.env", "SCREENDIR=/own");
        assert_eq!(scene.run_script("set", "echo $SCREENDIR"), "/own\n", "{layers:?}");
    }
}

#[test]
fn settings_without_a_credential_are_there_and_others_are_not() {
    for (layers, scene) in scenes("settings of tools") {
        scene.repo.env.write("home/.npmrc", "registry=https://npm.example.com/\n");
        scene.repo.env.write("home/.config/pip/pip.conf", "[global]\nindex-url = https://a:SECRET@pypi.example.com\n");
        scene.repo.env.write("home/.m2/settings.xml", "<settings><password>SECRET</password></settings>");
        let transcript = scene
            .run_script("settings", "cat ~/.npmrc; cat ~/.config/pip/pip.conf ~/.m2/settings.xml 2>/dev/null; true");
        assert_eq!(transcript, "registry=https://npm.example.com/\n", "{layers:?}");
    }
}

#[test]
fn below_bubblewrap_tmp_is_private_and_writable() {
    if !has_bubblewrap("a private /tmp") {
        return;
    }
    let scene = Scene::new(Layers::All);
    let name = format!("planted-{}", scene.victim());
    let transcript = scene.run_script(
        "tmp",
        &format!(
            "echo x >/tmp/{name} && cat /var/tmp/{name} $TMPDIR/{name} && stat -c %a /tmp/.X11-unix && ls -d /tmp/git-handoff-test.*; \
             (echo >/tmp/git-handoff-test.*/new) 2>/dev/null || echo closed; [ ${{#TMPDIR}} -le 70 ] && echo short"
        ),
    );
    let own = format!("{}\n", scene.repo.path("").display()).replace("/\n", "\n");
    assert_eq!(transcript, format!("x\nx\n1777\n{own}closed\nshort\n"));
    assert!(!Path::new("/tmp").join(&name).exists());
    let output = scene.drive("quiet", &[item("a", "true")]);
    insta::assert_snapshot!(output.stderr, @"
    ▶ a  attempt 1
    ✓ a  done in 0ms, nothing handed over
    ");
}

#[test]
fn missing_bubblewrap_gives_one_warning_about_tmp() {
    let scene = Scene::new(Layers::Inner);
    let output =
        scene.drive("tmp", &[item("a", "! touch /tmp/x.$$ 2>/dev/null && touch $TMPDIR/x"), item("b", "true")]);
    done(&output, &scene, "tmp/a");
    let line = "without bubblewrap workers cannot write to /tmp and /var/tmp; TMPDIR names a folder of their own\n";
    assert_eq!(output.stderr.matches(line).count(), 1, "{output}");
}

#[test]
fn a_link_in_the_place_of_a_mount_in_tmp_is_refused() {
    if !has_bubblewrap("links in a private /tmp") {
        return;
    }
    let scene = Scene::new(Layers::All);
    let folder = tempfile::Builder::new().prefix("given-").tempdir_in("/tmp").unwrap();
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    scene.repo.config("handoff.subagent.x.readable", folder.path().to_str().unwrap());
    // A mount point cannot be removed. A link that leads there can be replaced.
    let link = Path::new("/tmp").join(format!("{name}.link"));
    symlink(folder.path(), &link).unwrap();
    scene.repo.config("handoff.subagent.y.readable", link.to_str().unwrap());
    scene.repo.config("handoff.subagent.y.setup", &format!("rm {0} && ln -s /etc {0}", link.display()));
    scene.repo.config("handoff.subagent.y.command", "true");
    scene.repo.config("handoff.subagent.x.setup", &format!("! mv /tmp/{name} /tmp/other 2>/dev/null"));
    scene.repo.config("handoff.subagent.x.command", &format!("ls -d /tmp/{name}"));
    let output = scene.drive("kept", &[subagent("a")]);
    assert_eq!(done(&output, &scene, "kept/a"), format!("/tmp/{name}\n"));
    let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "y" }, "maxAttempts": 1 });
    let second_output = scene.drive("replaced", &[item]);
    fs::remove_file(&link).unwrap();
    let why = format!("{} cannot be mounted in /tmp: an earlier command of the attempt replaced it", link.display());
    assert!(second_output.status != Some(0) && second_output.to_string().contains(&why), "{second_output}");
}

#[test]
fn a_home_without_caches_and_a_strict_sandbox_have_none() {
    for (layers, scene) in scenes("strict") {
        if layers == Layers::All {
            scene.repo.config("handoff.sandbox", "strict");
            let transcript = scene
                .run_script("strict", "cat ~/.npm/_cacache/index 2>/dev/null; mkdir -p ~/.npm/_cacache && echo own");
            assert_eq!(transcript, "own\n");
        }
    }
}
