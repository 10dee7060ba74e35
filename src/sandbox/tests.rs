//! Tests that the mounts alone and Landlock alone grant the same files: both come from one policy.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::model::confinement::{Asked, Home, Network};
use crate::process::agent;
use crate::sandbox::access_map::Access::{self, Hidden, Read, Write};
use crate::sandbox::secrets::{OTHERS, bit_for_others, kept_by_mode};
use crate::sandbox::{Confinement, ExecutorPolicy, Layers, More, Own, Surroundings, Word, files};

/// Prints for each argument whether the file can be written, read, or neither.
const PROBE: &str = "for p; do if ( : >>\"$p\" ) 2>/dev/null; then echo w; \
                     elif ( cat \"$p\" >/dev/null ) 2>/dev/null; then echo r; else echo h; fi; done";

/// Every file of a test's machine, below its folder.
const FILES: [&str; 48] = [
    "home/notes",
    "home/.bashrc",
    "home/.netrc",
    "home/.ssh/id_ed25519",
    "home/.ssh/known_hosts",
    "home/.cargo/config.toml",
    "home/.cargo/credentials.toml",
    "home/.cargo/registry/index",
    "home/.tool/settings",
    "home/.tool/state/new",
    "home/.config/gh/hosts.yml",
    "home/.config/tool/settings",
    "tools/bin/hello",
    "tools/lib/text",
    "tools/.npmrc",
    "other/bin/hello",
    "other/docs/letter",
    "beside/file",
    "beside/given",
    "tree/a.txt",
    "tree/.git/config",
    "tree/.git/objects/pack/p.pack",
    "tree/.git/objects/key",
    "attempt/tree/a.txt",
    "attempt/task",
    "linked/file",
    // Beside programs, and in folders that variables name.
    "tools/.env.production",
    "tools/config/master.key",
    "tools/conf/settings",
    "tools/config/settings",
    "tools/deep/er/still/credentials",
    "tools/state/private",
    "other/bin/.env",
    "home/go/bin/tool",
    "home/go/pkg/mod/m",
    "home/go/src/other/key",
    "home/.tool-versions",
    "home/.config/mise/config.toml",
    "home/.npm/_cacache/x",
    "cargo/config.toml",
    "cargo/registry/index",
    "cargo/credentials.toml",
    "jdk/bin/java",
    "jdk/lib/modules",
    "jdk/conf/id_rsa",
    "conda/bin/conda",
    "conda/lib/python",
    "certs/ca.pem",
];

/// Files that only their user may read.
const PRIVATE: [&str; 1] = ["tools/state/private"];

/// Files of every machine, with their access.
const SYSTEM: [(&str, Access); 8] = [
    ("/etc/hosts", Read),
    ("/etc/resolv.conf", Read),
    ("/etc/localtime", Read),
    ("/etc/nsswitch.conf", Read),
    ("/etc/passwd", Read),
    ("/etc/shadow", Hidden),
    ("/usr/bin/env", Read),
    ("/dev/null", Write),
];

/// A test's machine and its paths.
struct Ground {
    _folder: tempfile::TempDir,
    top: PathBuf,
}

impl Ground {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        for file in FILES.map(|file| top.join(file)) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "x").unwrap();
        }
        // Whatever the umask is.
        for path in FILES.iter().flat_map(|file| Path::new(file).ancestors()) {
            fs::set_permissions(top.join(path), fs::Permissions::from_mode(0o755)).unwrap();
        }
        for file in PRIVATE {
            fs::set_permissions(top.join(file), fs::Permissions::from_mode(0o600)).unwrap();
        }
        symlink("../linked", top.join("attempt/link")).unwrap();
        Self { _folder: folder, top }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    fn around(&self, variables: &[(&str, String)]) -> Surroundings {
        let mut around = Surroundings {
            home: Some(self.at("home")),
            path: vec![self.at("tools/bin"), self.at("other/bin"), "/usr/bin".into(), "/bin".into()],
            git_dirs: vec![self.at("tree/.git")],
            objects: vec![self.at("tree/.git/objects")],
            work_trees: vec![self.at("tree")],
            never: vec![self.at("tree/.git/objects/key")],
            variables: variables.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect(),
            ..Surroundings::default()
        };
        around.look();
        around
    }

    /// Compares the policy, the mounts alone and Landlock alone with the expected access; all
    /// other files must be hidden.
    fn gives(&self, more: &More, frozen: bool, expected: &[(&str, Access)]) {
        self.gives_where(more, frozen, expected, &[]);
    }

    fn gives_where(&self, more: &More, frozen: bool, expected: &[(&str, Access)], variables: &[(&str, String)]) {
        let reach = Arc::new(ExecutorPolicy::new(&self.around(variables), more).unwrap());
        let bwrap = bubblewrap();
        let by = Confinement {
            reach,
            layers: Layers { landlock: None, seccomp: false, bwrap: bwrap.as_ref().map(|_| String::new()) },
            bwrap,
            mounts_shared: false,
            program: fs::canonicalize("/usr/bin/env").unwrap(),
            network: Network::Any,
            home: more.home,
        };
        let (tree, task, link) = (self.at("attempt/tree"), self.at("attempt/task"), self.at("attempt/link"));
        let own = Own { tree: &tree, writable: &[], readable: &[&task], linked: &[&link], scratch: None, frozen };
        let policy = by.policy(&own);
        assert_eq!(policy.refused, None);
        let given: BTreeMap<&str, Access> = expected.iter().copied().collect();
        let ours = FILES.map(|file| (self.at(file), given.get(file).copied().unwrap_or(Hidden)));
        let system = SYSTEM.map(|(path, access)| (PathBuf::from(path), access));
        let table: Vec<(PathBuf, Access)> = ours.into_iter().chain(system).filter(|(path, _)| path.exists()).collect();
        let paths: Vec<&Path> = table.iter().map(|(path, _)| path.as_path()).collect();
        let map = |path: &Path| {
            // Each layer grants devices itself.
            if path.starts_with("/dev") { Write } else { policy.map.access(&fs::canonicalize(path).unwrap()) }
        };
        let maps: Vec<Access> = paths.iter().map(|path| map(path)).collect();
        let landlocks = by_landlock(&policy.given, &paths);
        let mounts = by.instructions(&own, None).words.map(|words| by_mounts(&words, &paths));
        for (at, (path, expected_access)) in table.iter().enumerate() {
            let found = [Some(maps[at]), landlocks.as_ref().map(|it| it[at]), mounts.as_ref().map(|it| it[at])];
            let equal = found.iter().flatten().all(|it| it == expected_access);
            assert!(equal, "{}: {expected_access:?} expected; map, Landlock, mounts: {found:?}", path.display());
        }
    }
}

/// Returns the path of bubblewrap, or prints that it does not work here and returns `None`.
fn bubblewrap() -> Option<PathBuf> {
    let works = Command::new("bwrap").args(["--unshare-pid", "--ro-bind", "/", "/", "true"]).status();
    works.is_ok_and(|status| status.success()).then(|| "bwrap".into()).or_else(|| skipped("bubblewrap"))
}

fn skipped<T>(layer: &str) -> Option<T> {
    assert!(std::env::var_os("HANDOFF_TEST_SANDBOX").is_none(), "NOT TRIED: {layer} does not work here");
    let line = format!("NOT TRIED: {layer} does not work here\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    None
}

/// Returns the access by Landlock alone, or prints that the kernel has no Landlock and returns
/// `None`.
fn by_landlock(given: &[(Word, Access)], paths: &[&Path]) -> Option<Vec<Access>> {
    let mut rules = Some(files::rules(given, Network::Any, false).unwrap());
    let mut command = Command::new("sh");
    agent::before(&mut command, move || {
        let applied = rules.take().and_then(|rules| files::apply(rules).ok().flatten());
        applied.map(drop).ok_or(rustix::io::Errno::NOSYS)
    });
    match probe(&mut command, paths) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => skipped("Landlock"),
        found => Some(found.unwrap()),
    }
}

/// Returns the access by the mounts alone.
fn by_mounts(words: &[Word], paths: &[&Path]) -> Vec<Access> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg("sh");
    probe(&mut command, paths).unwrap()
}

fn probe(command: &mut Command, paths: &[&Path]) -> std::io::Result<Vec<Access>> {
    let output = command.args(["-c", PROBE, "sh"]).args(paths).output()?;
    let found: Vec<Access> = str::from_utf8(&output.stdout)
        .unwrap()
        .lines()
        .map(|line| match line {
            "w" => Write,
            "r" => Read,
            _ => Hidden,
        })
        .collect();
    assert_eq!(found.len(), paths.len(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(found)
}

/// The files that every worker has.
const USUAL: [(&str, Access); 17] = [
    ("tools/conf/settings", Read),
    ("tools/config/settings", Hidden),
    // Too deep for names to be searched.
    ("tools/deep/er/still/credentials", Read),
    ("home/go/bin/tool", Read),
    ("home/go/pkg/mod/m", Read),
    ("home/.tool-versions", Read),
    ("home/.config/mise/config.toml", Read),
    ("home/.npm/_cacache/x", Read),
    ("home/.cargo/config.toml", Read),
    ("home/.cargo/registry/index", Read),
    ("tools/bin/hello", Read),
    ("tools/lib/text", Read),
    ("other/bin/hello", Read),
    ("tree/.git/objects/pack/p.pack", Read),
    ("attempt/tree/a.txt", Write),
    ("attempt/task", Read),
    ("linked/file", Read),
];

fn with(more: &[(&'static str, Access)]) -> Vec<(&'static str, Access)> {
    USUAL.iter().chain(more).copied().collect()
}

#[test]
fn both_layers_give_what_the_policy_says() {
    Ground::new().gives(&More::default(), false, &USUAL);
}

#[test]
fn both_layers_give_what_settings_name() {
    let ground = Ground::new();
    // Each is in a readable folder with something hidden, or in a hidden folder.
    let readable = ["/etc/resolv.conf", "/etc/hosts"].map(PathBuf::from).into_iter();
    let below = ["home/.cargo/config.toml", "home/.config", "home/.ssh/known_hosts", "tools/lib/text", "beside/given"];
    let more = More {
        readable: readable.chain(below.map(|path| ground.at(path))).collect(),
        writable: ["home/.tool/state"].map(|path| ground.at(path)).into(),
        line_paths: vec![ground.at("beside/file")],
        ..More::default()
    };
    let given = [
        ("home/.config/tool/settings", Read),
        ("home/.ssh/known_hosts", Read),
        ("home/.tool/state/new", Write),
        ("beside/given", Read),
        ("beside/file", Read),
    ];
    ground.gives(&more, false, &with(&given));
    let frozen = given.map(|(path, access)| (path, access.min(Read)));
    ground.gives(&more, true, &with(&frozen));
}

#[test]
fn both_layers_give_a_secret_that_is_named_and_none_beside_it() {
    let ground = Ground::new();
    let more = More { readable: vec![ground.at("home"), ground.at("home/.netrc")], ..More::default() };
    let given = [
        ("home/notes", Read),
        ("home/.bashrc", Read),
        ("home/.netrc", Read),
        ("home/.tool/settings", Read),
        ("home/.tool/state/new", Read),
        ("home/.config/tool/settings", Read),
        ("home/go/src/other/key", Read),
    ];
    ground.gives(&more, false, &with(&given));
}

#[test]
fn both_layers_give_a_real_home_without_its_secrets() {
    let ground = Ground::new();
    let more = More { home: Home::Real, ..More::default() };
    let given = [
        ("home/notes", Write),
        ("home/.bashrc", Read),
        ("home/.tool/settings", Write),
        ("home/.tool/state/new", Write),
        ("home/.config/tool/settings", Write),
        ("tree/a.txt", Read),
        ("home/go/src/other/key", Write),
        // Caches in a real home are the user's own.
        ("home/go/pkg/mod/m", Write),
        ("home/.npm/_cacache/x", Write),
        ("home/.cargo/registry/index", Write),
    ];
    ground.gives(&more, false, &with(&given));
}

#[test]
fn both_layers_give_what_variables_of_tools_name() {
    let ground = Ground::new();
    let at = |path: &str| ground.at(path).to_str().unwrap().to_owned();
    let variables = [
        ("CARGO_HOME", at("cargo")),
        ("JAVA_HOME", at("jdk")),
        ("CONDA_EXE", at("conda/bin/conda")),
        ("SSL_CERT_FILE", at("certs/ca.pem")),
        // Each is or contains more than a tool, is secret, or leads nowhere.
        ("GOROOT", at("home")),
        ("GRADLE_HOME", at("")),
        ("MAVEN_HOME", "/".to_owned()),
        ("ANDROID_HOME", at("tree")),
        ("SDKMAN_DIR", at("home/.ssh")),
        ("NODE_EXTRA_CA_CERTS", at("home/.ssh/known_hosts")),
        ("NVM_DIR", at("missing")),
        ("CI", at("beside")),
    ];
    let given = [
        // The variable's settings count.
        ("home/.cargo/config.toml", Hidden),
        ("cargo/config.toml", Read),
        ("cargo/registry/index", Read),
        // No tool reads it if the variable names another place.
        ("home/.cargo/config.toml", Hidden),
        ("jdk/bin/java", Read),
        ("jdk/lib/modules", Read),
        ("conda/bin/conda", Read),
        ("conda/lib/python", Read),
        ("certs/ca.pem", Read),
    ];
    ground.gives_where(&More::default(), false, &with(&given), &variables);
    let readable = ["tools/config/master.key", "tools/state"].map(|path| ground.at(path)).into();
    let more = More { readable, writable: vec![ground.at("cargo")], ..More::default() };
    let also = [
        given.as_slice(),
        &[
            ("tools/config/master.key", Read),
            ("tools/state/private", Read),
            // It could contain a token later.
            ("cargo/config.toml", Read),
            ("cargo/registry/index", Write),
        ],
    ]
    .concat();
    ground.gives_where(&more, false, &with(&also), &variables);
}

#[test]
fn a_file_is_its_users_own_by_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let modes = [("open", 0o644), ("group", 0o640), ("own", 0o600), ("dir", 0o700), ("shared", 0o755)];
    for (name, mode) in modes {
        let path = folder.path().join(name);
        if mode & 0o100 == 0 {
            fs::write(&path, "").unwrap();
        } else {
            fs::create_dir(&path).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::write(folder.path().join("dir/below"), "").unwrap();
    symlink("own", folder.path().join("link")).unwrap();
    let found = |bits, most| -> Vec<String> {
        let found = kept_by_mode(folder.path(), bits, most, &[]).into_iter();
        let mut names: Vec<String> = found.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
        names.sort_unstable();
        names
    };
    let none = Vec::<String>::new();
    for (umask, expected) in [(0o022, vec!["dir", "group", "own"]), (0o027, vec!["dir", "own"]), (0o077, vec![])] {
        assert_eq!(found(bit_for_others(umask), 100), expected, "umask {umask:o}");
    }
    assert_eq!(found(OTHERS, 0), none, "no more is looked at than that");
}

#[test]
fn both_layers_give_the_least_where_that_is_asked_for() {
    let ground = Ground::new();
    let more = More { mode: Asked::Strict, readable: vec!["/etc/resolv.conf".into()], ..More::default() };
    let least =
        USUAL.into_iter().filter(|(path, _)| ["tree", "attempt", "linked"].iter().any(|it| path.starts_with(it)));
    ground.gives(&more, false, &least.collect::<Vec<_>>());
}
