//! Secrets are not given with the tools, settings and folders that they lie among.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::json;

use super::scene::{Layers, Scene};
use super::tools::{programs, says_where};

/// How workers are confined.
const WAYS: [Layers; 2] = [Layers::Inner, Layers::All];

/// Writes a file that only its user may read.
fn write_private(scene: &Scene, path: &str, text: &str) {
    scene.repo.env.write(path, text);
    fs::set_permissions(scene.repo.path(path), fs::Permissions::from_mode(0o600)).unwrap();
}

/// Returns the absolute path of a file of the scene.
fn place(scene: &Scene, name: &str) -> String {
    scene.repo.path(name).to_str().unwrap().to_owned()
}

#[test]
fn tools_come_without_the_secrets_in_their_folders() {
    for layers in WAYS {
        let scene = Scene::new(layers);
        for path in [
            "home/.gem/gem-private_key.pem",
            "home/.julia/logs/repl_history.jl",
            "home/.local/share/gem/credentials",
            "home/.luarocks/upload_config.lua",
            "home/.nimble/github_api_token",
            "home/.npm-global/etc/npmrc",
            "home/.opam/plugins/opam-publish/ada.token",
            "home/.sbt/gpg/secring.asc",
            "home/.sbt/sonatype_credentials",
            "home/.wasmer/wasmer.toml",
        ] {
            scene.repo.env.write(path, "SECRET");
        }
        for path in ["home/.cabal/config", "home/.foundry/keystores/deployer", "home/.rye/config.toml"] {
            write_private(&scene, path, "SECRET");
        }
        for path in ["home/.rye/shims/tool", "home/.npm-global/lib/tool", "home/.local/share/gem/ruby/gem"] {
            scene.repo.env.write(path, "tool\n");
        }
        let home = place(&scene, "home");
        let script = format!(
            "cat ~/.rye/shims/tool ~/.npm-global/lib/tool ~/.local/share/gem/ruby/gem; \
             grep -rh SECRET ~ {home}/.[a-z]* 2>&1; true"
        );
        let transcript = says_where(&scene, "tools", &script, &[]);
        assert!(
            transcript.starts_with("tool\ntool\ntool\n") && !transcript.contains("SECRET"),
            "{layers:?}: {transcript}"
        );
    }
}

#[test]
fn folders_of_certificates_and_moved_tools_come_without_private_files() {
    for layers in WAYS {
        let scene = Scene::new(layers);
        scene.repo.env.write("certs/ca.pem", "certificate\n");
        scene.repo.env.write("certs/server.pem", "-----BEGIN PRIVATE KEY-----\nSECRET\n");
        write_private(&scene, "certs/server", "SECRET");
        write_private(&scene, "home/.local/share/mkcert/rootCA", "SECRET");
        write_private(&scene, "node/token", "SECRET");
        scene.repo.env.write("node/bin/node", "node\n");
        let (certs, local, node) = (place(&scene, "certs"), place(&scene, "home/.local"), place(&scene, "node"));
        let script =
            format!("cat {certs}/ca.pem {node}/bin/node; grep -rh SECRET {certs} {local}/share/mkcert {node}; true");
        let variables = [("SSL_CERT_DIR", &*certs), ("N_PREFIX", &*local), ("NVM_DIR", &*node)];
        let transcript = says_where(&scene, "moved", &script, &variables);
        assert!(
            transcript.starts_with("certificate\nnode\n") && !transcript.contains("SECRET"),
            "{layers:?}: {transcript}"
        );
    }
}

#[test]
fn a_folder_of_path_with_more_than_programs_gives_its_programs_alone() {
    for layers in WAYS {
        let scene = Scene::new(layers);
        for (path, text) in [
            ("home/notes", "SECRET"),
            ("home/work/notes", "SECRET"),
            ("repo/untracked", "SECRET"),
            ("clone/parts/part", "clone\n"),
            ("clone/.git/config", "[remote \"o\"]\n\turl = https://ada:SECRET@example.com/a\n"),
        ] {
            scene.repo.env.write(path, text);
        }
        programs(&scene, &[("home/program", "echo home"), ("clone/program2", "cat ${0%/*}/parts/part")]);
        let [home, repo, clone] = ["home", "repo", "clone"].map(|name| place(&scene, name));
        let path = format!("{home}:{repo}:{clone}:{}", scene.path());
        let script =
            format!("program; program2; cat {home}/notes {home}/work/notes {repo}/untracked {clone}/.git/config; true");
        let transcript = says_where(&scene, "path", &script, &[("PATH", &path)]);
        assert!(transcript.starts_with("home\nclone\n") && !transcript.contains("SECRET"), "{layers:?}: {transcript}");
    }
}

#[test]
fn a_folder_of_path_below_tmp_leaves_tmp_writable() {
    let below = tempfile::Builder::new().prefix("git-handoff-path.").tempdir_in("/tmp").unwrap();
    let bin = below.path().join("bin");
    for folder in [below.path().to_owned(), bin] {
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("spoken");
        fs::write(&program, "#!/bin/sh\necho spoken\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let scene = Scene::new(Layers::All);
        let path = format!("{}:{}", folder.display(), scene.path());
        // The shell's own error goes nowhere: in a transcript, it may come before or after an echo.
        let new = folder.join("new").display().to_string();
        let script = format!("spoken; echo w >/tmp/own && cat /tmp/own; (echo x >{new}) 2>/dev/null || echo kept");
        let transcript = says_where(&scene, "below", &script, &[("PATH", &path)]);
        assert_eq!(transcript, "spoken\nw\nkept\n");
        assert!(!folder.join("new").exists() && !Path::new("/tmp/own").exists(), "{}", folder.display());
    }
}

#[test]
fn secret_names_next_to_programs_are_hidden() {
    for layers in WAYS {
        let scene = Scene::new(layers);
        programs(&scene, &[("app/bin/start", "cat ${0%/*}/../conf/open")]);
        scene.repo.env.write("app/conf/open", "found\n");
        for path in [
            "lib/gcp-key.json",
            "lib/keystore.jks",
            "lib/npmrc",
            "lib/oauth.json",
            "lib/prod.env",
            "lib/service-account-prod.json",
            "lib/wp-config.php",
            "config/settings",
        ] {
            scene.repo.env.write(&format!("app/{path}"), "SECRET");
        }
        scene.repo.env.write("app/lib/server.pem", "-----BEGIN RSA PRIVATE KEY-----\nSECRET\n");
        scene.repo.env.write("app/lib/ca.pem", "-----BEGIN CERTIFICATE-----\n");
        let app = place(&scene, "app");
        let path = format!("{app}/bin:{}", scene.path());
        let script = format!("start; cat {app}/lib/ca.pem; grep -rh SECRET {app}; true");
        let transcript = says_where(&scene, "names", &script, &[("PATH", &path)]);
        let expected = "found\n-----BEGIN CERTIFICATE-----\n";
        assert!(transcript.starts_with(expected) && !transcript.contains("SECRET"), "{layers:?}: {transcript}");
    }
}

#[test]
fn a_worker_cannot_make_a_variable_or_a_tool_lead_elsewhere() {
    for layers in WAYS {
        let scene = Scene::new(layers);
        scene.repo.env.write("home/go/chrome", "browser\n");
        scene.repo.env.write("home/docs/diary", "SECRET");
        scene.repo.env.write("home/letters/letter", "SECRET");
        // Another repository's worker may have left this.
        symlink("letters", scene.repo.path("home/.volta")).unwrap();
        let (go, docs) = (place(&scene, "home/go"), place(&scene, "home/docs"));
        scene.repo.config("handoff.subagent.x.command", &format!("cd {go} && ln -sf {docs}/diary chrome"));
        scene.repo.config("handoff.subagent.x.writable", &go);
        let item = json!({ "id": "a", "executor": "dispatch", "inputs": { "subagent": "x" }, "maxAttempts": 1 });
        scene.drive("plant", &[item]).ends(0);
        assert!(scene.repo.path("home/go/chrome").is_symlink());
        let letters = place(&scene, "home/letters");
        let script = format!("cat $CHROME_BIN {docs}/diary {letters}/letter ~/.volta/letter; true");
        let chrome = format!("{go}/chrome");
        let transcript = says_where(&scene, "led", &script, &[("CHROME_BIN", &chrome)]);
        assert!(!transcript.contains("SECRET"), "{layers:?}: {transcript}");
    }
}

#[test]
fn many_files_of_a_worker_bring_no_hidden_file_to_light() {
    for layers in WAYS {
        let scene = Scene::new(layers);
        programs(&scene, &[("app/bin/start", "true")]);
        scene.repo.env.write("app/lib/a/b/c/text", "found\n");
        write_private(&scene, "app/lib/a/b/c/private", "SECRET");
        let flood = scene.repo.path("app/flood");
        fs::create_dir(&flood).unwrap();
        for n in 0..20_001 {
            fs::File::create(flood.join(n.to_string())).unwrap();
        }
        scene.repo.config("handoff.subagent.x.command", "true");
        scene.repo.config("handoff.subagent.x.writable", flood.to_str().unwrap());
        let app = place(&scene, "app");
        let path = format!("{app}/bin:{}", scene.path());
        let script = format!("cat {app}/lib/a/b/c/text {app}/lib/a/b/c/private; true");
        let transcript = says_where(&scene, "flood", &script, &[("PATH", &path)]);
        assert!(transcript.starts_with("found\n") && !transcript.contains("SECRET"), "{layers:?}: {transcript}");
    }
}

#[test]
fn settings_are_copied_unless_anything_in_them_looks_like_a_credential() {
    let scene = Scene::new(Layers::Inner);
    for (path, text) in [
        (".npmrc", "# //npm.example.com/:_authToken=SECRET\nregistry=https://npm.example.com/\nalways-auth=false\n"),
        (".yarnrc.yml", "npmAuthIdent: \"ada:SECRET\"\n"),
        (".bundle/config", "---\nBUNDLE_GEMS__EXAMPLE__COM: \"ada:SECRET\"\n"),
        (".condarc", "channels:\n  - https://conda.example.com/t/SECRET/main\n"),
        (".config/composer/config.json", "{\"config\": {\"bearer\": {\"example.com\": \"SECRET\"}}}\n"),
        (".gemrc", ":api_key: SECRET\n"),
        (".config/pip/pip.conf", "[global]\nindex-url = https://dl.example.com/SECRET7hI9jK1lm/org/simple\n"),
    ] {
        scene.repo.env.write(&format!("home/{path}"), text);
    }
    let transcript = says_where(&scene, "settings", "cat ~/.npmrc; grep -rh SECRET ~ 2>/dev/null; true", &[]);
    assert_eq!(transcript, "registry=https://npm.example.com/\nalways-auth=false\n");
}

#[test]
fn branch_upstream_has_no_credentials() {
    let scene = Scene::new(Layers::Inner);
    let git = |args: &[&str]| scene.repo.env.git(args).success();
    git(&["config", "branch.main.remote", "https://ada:SECRET@example.com/x.git?private_token=SECRET"]);
    git(&["config", "branch.main.merge", "refs/heads/main"]);
    git(&["config", "remote.o.url", "https://example.com/y.git?access_token=SECRET"]);
    git(&["config", "branch.side.remote", "o"]);
    let script = "git config --get-regexp 'branch|remote' | grep -v handoff";
    let transcript = says_where(&scene, "branches", script, &[]);
    assert!(!transcript.contains("SECRET"), "{transcript}");
    for line in [
        "remote.o.url https://example.com/y.git\n",
        "branch.main.remote https://example.com/x.git\nbranch.main.merge refs/heads/main\n",
        "branch.side.remote o\n",
    ] {
        assert!(transcript.contains(line), "{line}{transcript}");
    }
}
