//! Tools are found where their variables say, and none of what lies beside them is given that is
//! secret.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::json;

use super::scene::{Layers, Scene};
use crate::common::repo::item;

/// How workers are confined.
const WAYS: [Layers; 3] = [Layers::None, Layers::Inner, Layers::All];

/// Writes programs.
pub(super) fn programs(scene: &Scene, programs: &[(&str, &str)]) {
    for (path, script) in programs {
        scene.repo.env.write(path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(scene.repo.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Runs one line of shell with more variables and returns what it wrote.
#[track_caller]
pub(super) fn says_where(scene: &Scene, run: &str, script: &str, variables: &[(&str, &str)]) -> String {
    let plan = scene.repo.plan(run, &[item("a", script)]);
    let output = scene.handoff_where(&["run", &plan], variables);
    let written = scene.handoff(&["cat", &format!("{run}/a:transcript")]).stdout;
    assert_eq!(output.status, Some(0), "{output}{written}");
    written
}

#[test]
fn a_version_manager_finds_its_settings_and_its_tools() {
    for layers in WAYS {
        let scene = Scene::new(layers);
        let place = |name: &str| scene.repo.path(name).to_str().unwrap().to_owned();
        // As asdf does: the version from the home directory, the tool from the folder of the
        // variable.
        let find = "v=$(sed -n 's/^node //p' \"$HOME/.tool-versions\")\n\
                    exec \"${ASDF_DATA_DIR:-$HOME/.asdf}/installs/node/$v/bin/nodex\"";
        programs(
            &scene,
            &[
                ("home/.asdf/shims/nodex", find),
                ("home/.asdf/installs/node/20/bin/nodex", "echo version 20"),
                ("moved/shims/nodex", find),
                ("moved/installs/node/20/bin/nodex", "echo moved 20"),
            ],
        );
        scene.repo.env.write("home/.tool-versions", "node 20\n");
        scene.repo.env.write("home/.config/mise/config.toml", "[tools]\nnode = '20'\n");
        let path = |folder: &str| format!("{}:{}", place(folder), scene.path());
        let usual = [("PATH", path("home/.asdf/shims"))];
        let usual: Vec<_> = usual.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let script = "nodex; cat ~/.config/mise/config.toml; echo ${ASDF_DATA_DIR-unset}";
        let transcript = says_where(&scene, "usual", script, &usual);
        assert_eq!(transcript, "version 20\n[tools]\nnode = '20'\nunset\n", "{layers:?}");
        let (path, folder) = (path("moved/shims"), place("moved"));
        let moved_transcript = says_where(&scene, "moved", "nodex", &[("PATH", &path), ("ASDF_DATA_DIR", &folder)]);
        assert_eq!(moved_transcript, "moved 20\n", "{layers:?}");
    }
}

#[test]
fn variables_of_tools_are_passed_and_those_with_secrets_are_not() {
    for layers in WAYS {
        let scene = Scene::new(layers);
        scene.repo.env.write("jdk/lib/modules", "java\n");
        scene.repo.env.write("certs/ca.pem", "certificate\n");
        let place = |name: &str| scene.repo.path(name).to_str().unwrap().to_owned();
        let (jdk, bundle) = (place("jdk"), place("certs/ca.pem"));
        let variables = [
            ("JAVA_HOME", jdk.as_str()),
            ("SSL_CERT_FILE", bundle.as_str()),
            ("CI", "true"),
            ("HTTPS_PROXY", "http://proxy.example.com:3128"),
            ("https_proxy", "http://ada:secret@proxy.example.com:3128"),
            ("MAVEN_HOME", "relative"),
            ("AWS_SECRET_ACCESS_KEY", "SECRET"),
            ("NPM_TOKEN", "SECRET"),
        ];
        let script = "cat $JAVA_HOME/lib/modules $SSL_CERT_FILE; echo $CI; env | grep -i ^https_proxy=; \
                      env | grep -c -e ^MAVEN_HOME= -e SECRET; true";
        let transcript = says_where(&scene, "passed", script, &variables);
        let expected = "java\ncertificate\ntrue\nHTTPS_PROXY=http://proxy.example.com:3128\n0\n";
        assert_eq!(transcript, expected, "{layers:?}");
        let recorded = scene.manifest("passed/a")["claims"]["env"].to_string();
        assert!(recorded.contains("JAVA_HOME") && !recorded.contains("https_proxy"), "{recorded}");
        // A setting still gives what is not passed by itself.
        scene.repo.config("handoff.subagent.x.passEnv", "MAVEN_HOME");
        scene.repo.config("handoff.subagent.x.command", "echo $MAVEN_HOME");
        let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "x" } });
        let plan = scene.repo.plan("asked", &[item]);
        assert_eq!(scene.handoff_where(&["run", &plan], &variables).status, Some(0));
        assert_eq!(scene.handoff(&["cat", "asked/a:transcript"]).stdout, "relative\n");
    }
}

#[test]
fn linked_program_gets_its_files_without_secrets() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        // As pipx makes them, npm globally, and npm in a folder; and a program of a work tree.
        programs(
            &scene,
            &[
                ("far/venv/bin/python", "cat $(dirname $0)/../lib/module"),
                ("far/venv/bin/mini", "exec $(dirname $(readlink -f $0))/python"),
                ("far/prefix/lib/node_modules/@a/cli/bundle/cli.js", "cat $(dirname $(readlink -f $0))/../dep/x"),
                ("far/local/node_modules/tool/cli.js", "cat $(dirname $(readlink -f $0))/../hoisted/x"),
                ("given/real", "echo given"),
                ("far/work/bin/own", "cat $(dirname $(readlink -f $0))/../lib/x"),
            ],
        );
        for (path, text) in [
            ("far/venv/lib/module", "module\n"),
            ("far/venv/.npmrc", "SECRET"),
            ("far/prefix/lib/node_modules/@a/cli/dep/x", "global\n"),
            ("far/prefix/lib/node_modules/.npmrc", "SECRET"),
            ("far/local/node_modules/hoisted/x", "local\n"),
            ("far/local/node_modules/hoisted/.npmrc", "SECRET"),
            ("far/local/index.js", "SECRET"),
            ("far/work/.git/HEAD", "ref: refs/heads/main\n"),
            ("far/work/lib/x", "SECRET"),
            ("bin2/mine", ""),
        ] {
            scene.repo.env.write(path, text);
        }
        let at = |name: &str| scene.repo.path(name);
        for folder in ["far/prefix/bin", "far/local/node_modules/.bin"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        symlink("../lib/node_modules/@a/cli/bundle/cli.js", at("far/prefix/bin/cli")).unwrap();
        fs::create_dir_all(at("far/step")).unwrap();
        symlink("../../given/real", at("far/step/again")).unwrap();
        symlink("../tool/cli.js", at("far/local/node_modules/.bin/tool")).unwrap();
        for (link, target) in [
            ("mini", "../far/venv/bin/mini"),
            ("cli", "../far/prefix/bin/cli"),
            ("tool", "../far/local/node_modules/.bin/tool"),
            ("own", "../far/work/bin/own"),
            // Its own folder is in PATH as well.
            ("again", "../far/step/again"),
        ] {
            symlink(target, at("bin2").join(link)).unwrap();
        }
        let path = format!("{}:{}:{}", at("given").display(), at("bin2").display(), scene.path());
        let script = format!(
            "mini; cli; tool; again; own; cd {} && cat venv/.npmrc prefix/lib/node_modules/.npmrc local/index.js \
             local/node_modules/hoisted/.npmrc; true",
            at("far").display()
        );
        let transcript = says_where(&scene, "linked", &script, &[("PATH", &path)]);
        assert!(
            transcript.starts_with("module\nglobal\nlocal\ngiven\n") && !transcript.contains("SECRET"),
            "{layers:?}: {transcript}"
        );
    }
}

#[test]
fn folder_next_to_programs_exposes_no_secret() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        programs(&scene, &[("app/bin/start", "cat $(dirname $0)/../lib/text")]);
        for (path, text) in [
            ("app/lib/text", "found\n"),
            ("app/config/master.key", "SECRET"),
            ("app/config/credentials/production.key", "SECRET"),
            ("app/.env.local", "SECRET"),
            ("app/data/private", "SECRET"),
            ("home/go/src/other/key", "SECRET"),
            ("home/go/pkg/mod/m/x", "module\n"),
        ] {
            scene.repo.env.write(path, text);
        }
        fs::set_permissions(scene.repo.path("app/data/private"), fs::Permissions::from_mode(0o600)).unwrap();
        let place = |name: &str| scene.repo.path(name).to_str().unwrap().to_owned();
        let path = format!("{}:{}", place("app/bin"), scene.path());
        let script = format!(
            "start; cat ~/go/pkg/mod/m/x; cd {}; cat config/master.key config/credentials/* .env.local data/private {}/go/src/other/key; true",
            place("app"),
            place("home"),
        );
        let transcript = says_where(&scene, "beside", &script, &[("PATH", &path)]);
        assert!(transcript.contains("found\nmodule\n") && !transcript.contains("SECRET"), "{layers:?}: {transcript}");
    }
}

#[test]
fn a_real_home_keeps_the_logins_of_agents() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        let logins = [
            ".codex/auth.json",
            ".config/amp/settings.json",
            ".config/crush/crush.json",
            ".config/cursor/auth.json",
            ".config/goose/secrets.yaml",
            ".config/opencode/opencode.json",
            ".continue/config.yaml",
            ".copilot/config.json",
            ".cursor/mcp.json",
            ".kiro/settings.json",
            ".local/share/amp/secrets.json",
            ".local/share/crush/crush.json",
            ".local/share/opencode/auth.json",
            ".qwen/oauth_creds.json",
        ];
        for login in logins {
            scene.repo.env.write(&format!("home/{login}"), "SECRET");
        }
        scene.repo.env.write("home/notes", "mine\n");
        scene.repo.config("handoff.subagent.x.home", "real");
        let command = format!("cat ~/notes; cd ~ && cat {}; true", logins.join(" "));
        scene.repo.config("handoff.subagent.x.command", &command);
        let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "x" }, "maxAttempts": 1 });
        scene.drive("real", &[item]).ends(0);
        let transcript = scene.handoff(&["cat", "real/a:transcript"]).stdout;
        assert!(transcript.starts_with("mine\n") && !transcript.contains("SECRET"), "{layers:?}: {transcript}");
    }
}

#[test]
fn a_worktree_is_trusted_by_mise_where_its_repository_is() {
    for layers in WAYS {
        let scene = Scene::new(layers);
        let script = "echo ${MISE_TRUSTED_CONFIG_PATHS-unset}; pwd";
        assert!(scene.run_script("unknown", script).starts_with("unset\n"), "{layers:?}");
        let state = scene.repo.path("home/.local/state/mise/trusted-configs");
        fs::create_dir_all(&state).unwrap();
        symlink(scene.repo.path("beside"), state.join("other")).unwrap();
        assert!(scene.run_script("other", script).starts_with("unset\n"), "{layers:?}");
        symlink(fs::canonicalize(scene.repo.path("repo")).unwrap().join("mise.toml"), state.join("repo")).unwrap();
        let transcript = scene.run_script("trusted", script);
        let (first, second) = transcript.trim_end().split_once('\n').unwrap();
        assert_eq!(first, second, "{layers:?}");
    }
}

/// Global packages of Node.js, where npm's variable says that they lie.
#[test]
fn global_packages_of_node_are_read_without_their_secrets() {
    for layers in [Layers::Inner, Layers::All] {
        let scene = Scene::new(layers);
        scene.repo.env.write("prefix/lib/node_modules/thing/index.js", "thing\n");
        scene.repo.env.write("prefix/etc/npmrc", "SECRET\n");
        // It may name any folder, such as that of a project with its git directory.
        scene.repo.env.write("project/index.js", "SECRET\n");
        let place = |name: &str| scene.repo.path(name).to_str().unwrap().to_owned();
        let (project, prefix) = (place("project"), place("prefix"));
        let variables = [("NODE_PATH", project.as_str()), ("NPM_CONFIG_PREFIX", prefix.as_str())];
        let script = format!(
            "cat $NPM_CONFIG_PREFIX/lib/node_modules/thing/index.js; \
             cat {project}/index.js $NPM_CONFIG_PREFIX/etc/npmrc 2>/dev/null; true"
        );
        assert_eq!(says_where(&scene, "globals", &script, &variables), "thing\n", "{layers:?}");
    }
}
