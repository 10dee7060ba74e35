//! Files that decide whether work is good, by the runner that reads them by name: a starting list
//! of what to protect.

/// The pathspec of a name in any folder.
macro_rules! any {
    ($name:literal) => {
        concat!(":(glob)**/", $name)
    };
}

/// A test runner or a build tool, and the files that it reads by name.
#[derive(Debug)]
pub struct Runner {
    /// Its name on the screen.
    pub name: &'static str,
    /// Pathspecs of committed files by which it is recognised.
    pub signs: &'static [&'static str],
    /// Pathspecs of its tests and of its own files. All are protected if it is recognised, because
    /// one file that is added may decide what the check does. None selects what a setup installs
    /// or builds and tests need: it is moved away like other protected files that are added.
    pub files: &'static [&'static str],
    /// Pathspecs of files that honest work changes, such as lists of dependencies. One that selects
    /// no committed file is protected like `files`.
    pub manifests: &'static [&'static str],
    /// Pathspecs of files that a setup may build. Only those that are committed are protected.
    pub built: &'static [&'static str],
}

/// The known runners, as `docs/how-to/protect-tests.md` lists them.
pub const RUNNERS: &[Runner] = &[
    Runner {
        name: "make",
        signs: &[any!("GNUmakefile"), any!("makefile"), any!("Makefile")],
        files: &[any!("GNUmakefile"), any!("makefile"), "*.mk"],
        manifests: &[],
        built: &[any!("Makefile")],
    },
    Runner {
        name: "Cargo",
        signs: &[any!("Cargo.toml")],
        files: &[
            ".cargo",
            any!(".cargo/**"),
            "build.rs",
            ":(glob)crates/*/build.rs",
            ":(glob)crates/*/tests/**",
            any!("rust-toolchain"),
            any!("rust-toolchain.toml"),
            any!(".config/nextest.toml"),
            any!("clippy.toml"),
            any!(".clippy.toml"),
            any!("rustfmt.toml"),
            any!(".rustfmt.toml"),
        ],
        manifests: &[any!("Cargo.toml")],
        built: &[],
    },
    Runner {
        name: "npm",
        signs: &[any!("package.json")],
        files: &[
            any!(".npmrc"),
            any!(".yarnrc"),
            any!(".yarnrc.yml"),
            ".yarn/plugins",
            ".yarn/releases",
            any!(".pnpmfile.*"),
            any!("bunfig.toml"),
            any!("jest.config.*"),
            any!("vitest.config.*"),
            any!("vitest.workspace.*"),
            any!("babel.config.*"),
            any!(".babelrc"),
            any!(".babelrc.*"),
            any!(".mocharc.*"),
            any!("ava.config.*"),
            any!("playwright.config.*"),
            any!("cypress.config.*"),
            any!("karma.conf.*"),
            "__mocks__",
            ":(glob)*/__mocks__/**",
            ":(glob)packages/*/__mocks__/**",
            any!("__snapshots__/**"),
            any!("__tests__/**"),
            "*.test.[jt]s",
            "*.test.[jt]sx",
            "*.test.[cm][jt]s",
            "*.spec.[jt]s",
            "*.spec.[jt]sx",
            "*.spec.[cm][jt]s",
        ],
        manifests: &[
            any!("package.json"),
            any!("npm-shrinkwrap.json"),
            any!("pnpm-workspace.yaml"),
            any!("vite.config.*"),
        ],
        built: &[],
    },
    Runner {
        name: "pytest",
        signs: &[
            any!("pytest.ini"),
            any!(".pytest.ini"),
            any!("pytest.toml"),
            any!(".pytest.toml"),
            any!("conftest.py"),
            any!("test_*.py"),
            "*_test.py",
            any!("tox.ini"),
            any!("tox.toml"),
            any!("setup.cfg"),
            any!("setup.py"),
            any!("pyproject.toml"),
        ],
        files: &[
            any!("pytest.ini"),
            any!(".pytest.ini"),
            any!("pytest.toml"),
            any!(".pytest.toml"),
            any!("conftest.py"),
            ":(glob)test_*.py",
            ":(glob)[!.]*/**/test_*.py",
            ":(glob)*_test.py",
            ":(glob)[!.]*/**/*_test.py",
            "pytest",
            "pytest.py",
            ":(glob)*/pytest.py",
            "unittest",
            "unittest.py",
            ":(glob)*/unittest.py",
            "_pytest*",
            "pluggy*",
            "iniconfig*",
            any!("sitecustomize.py"),
            any!("usercustomize.py"),
            any!("tox.ini"),
            any!("tox.toml"),
            any!("toxfile.py"),
            any!("setup.cfg"),
            any!(".coveragerc"),
            any!("noxfile.py"),
        ],
        manifests: &[any!("pyproject.toml")],
        built: &[],
    },
    Runner {
        name: "Go",
        signs: &[any!("go.mod"), any!("go.work")],
        files: &["*_test.go", any!("testdata/**"), any!("go.work"), any!("go.work.sum")],
        manifests: &[any!("go.mod"), any!("vendor/modules.txt")],
        built: &[],
    },
    Runner {
        name: "Gradle",
        signs: &[any!("settings.gradle"), any!("settings.gradle.*"), any!("build.gradle"), any!("build.gradle.*")],
        files: &[
            ":(glob)settings.gradle*",
            ":(glob)*/settings.gradle*",
            "gradle.properties",
            ":(glob)*/gradle.properties",
            "gradle/wrapper",
            ":(glob)*/gradle/wrapper/**",
            ":(glob)gradle/*.properties",
            ":(glob)gradlew*",
            ":(glob)*/gradlew*",
            "buildSrc",
            ":(glob)*/buildSrc/**",
        ],
        manifests: &[
            "build.gradle",
            ":(glob)*/build.gradle",
            "build.gradle.kts",
            ":(glob)*/build.gradle.kts",
            ":(glob)gradle/*.versions.toml",
        ],
        built: &[],
    },
    Runner {
        name: "Maven",
        signs: &[any!("pom.xml")],
        files: &[".mvn", ":(glob)*/.mvn/**", any!("mvnw"), any!("mvnw.cmd")],
        manifests: &[any!("pom.xml")],
        built: &[],
    },
    Runner {
        name: "JUnit",
        signs: &[any!("build.gradle"), any!("build.gradle.*"), any!("pom.xml")],
        files: &[any!("src/test/**")],
        manifests: &[],
        built: &[],
    },
    Runner {
        name: ".NET",
        signs: &["*.csproj", "*.fsproj", "*.vbproj", "*.sln", "*.slnx"],
        files: &[
            any!("Directory.Build.*"),
            any!("Directory.Solution.*"),
            any!("before.*.targets"),
            any!("after.*.targets"),
            "*proj.user",
            any!("global.json"),
            ":(icase)*nuget.config",
            "*.runsettings",
            "*xunit.runner.json",
            "*testconfig.json",
            any!(".config/dotnet-tools.json"),
            "*Test.cs",
            "*Tests.cs",
        ],
        manifests: &["*.csproj", "*.fsproj", "*.vbproj", any!("Directory.Packages.props")],
        built: &[],
    },
    Runner {
        name: "PHPUnit",
        signs: &[
            any!("phpunit.xml"),
            any!("phpunit.xml.dist"),
            any!("phpunit.dist.xml"),
            any!("composer.json"),
            "*Test.php",
        ],
        files: &[any!("phpunit.xml"), any!("phpunit.xml.dist"), any!("phpunit.dist.xml"), ":(glob)src/**/*Test.php"],
        manifests: &["composer.json"],
        built: &[],
    },
    Runner {
        name: "RSpec",
        signs: &[any!(".rspec"), any!("Rakefile"), any!("Gemfile"), "*_spec.rb", "*.gemspec"],
        files: &[
            any!(".rspec"),
            any!(".rspec-local"),
            "spec",
            ":(glob)*/spec/**",
            any!("[Rr]akefile"),
            any!("[Rr]akefile.rb"),
            any!(".simplecov"),
        ],
        manifests: &[any!("Gemfile"), any!("gems.rb"), ":(glob)*.gemspec"],
        built: &[],
    },
];

/// Pathspecs of further files, each of which is protected if it selects a committed file.
pub const FURTHER: &[&str] = &["test", "tests", ".github", ".gitlab-ci.yml", ".circleci", "Jenkinsfile"];

/// Folders of code of others and of samples, in which no runner is recognised.
pub const FOREIGN_FOLDERS: &[&str] = &["node_modules", "vendor", "third_party", "testdata", "fixtures"];

/// Returns the runner that reads the files of one of the known pathspecs.
pub fn runner(pathspec: &str) -> Option<&'static Runner> {
    RUNNERS.iter().find(|runner| runner.files.contains(&pathspec) || runner.manifests.contains(&pathspec))
}

/// Returns a pathspec without its magic.
pub fn shown(pathspec: &str) -> &str {
    pathspec.strip_prefix(any!("")).or_else(|| pathspec.strip_prefix(":(glob)")).unwrap_or(pathspec)
}

/// Returns a pathspec of a runner as it is shown: `x.ini` for that name in any folder, and `/x.ini`
/// for that path.
pub fn listed(pathspec: &str) -> String {
    let is_path =
        pathspec.strip_prefix(":(glob)").map_or(!pathspec.starts_with([':', '*']), |path| !path.starts_with("**/"));
    if is_path { format!("/{}", shown(pathspec)) } else { shown(pathspec).to_owned() }
}

/// Known pathspecs that are shown together: those of one runner, or a single one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<'p> {
    /// The name of the runner, or `None` for a single pathspec.
    pub runner: Option<&'static str>,
    /// The pathspecs.
    pub pathspecs: Vec<&'p str>,
}

impl Group<'_> {
    /// Lists the pathspecs as they are shown.
    pub fn names(&self) -> String {
        match self.runner {
            Some(_) => self.pathspecs.iter().map(|pathspec| listed(pathspec)).collect::<Vec<_>>().join(", "),
            None => self.pathspecs.join(", "),
        }
    }
}

/// Groups neighbouring pathspecs of one runner.
pub fn grouped<'p>(pathspecs: impl IntoIterator<Item = &'p str>) -> Vec<Group<'p>> {
    let mut groups: Vec<Group<'p>> = Vec::new();
    for pathspec in pathspecs {
        let runner = runner(pathspec).map(|runner| runner.name);
        match groups.last_mut() {
            Some(last) if runner.is_some() && last.runner == runner => last.pathspecs.push(pathspec),
            _ => groups.push(Group { runner, pathspecs: vec![pathspec] }),
        }
    }
    groups
}

/// Names pathspecs in a sentence: single ones as they are, and those of a runner by its name.
pub fn in_words(pathspecs: &[String]) -> String {
    let words = grouped(pathspecs.iter().map(String::as_str)).into_iter().map(|group| match group.runner {
        Some(runner) => format!("the files of {runner}"),
        None => group.names(),
    });
    words.collect::<Vec<_>>().join(", ")
}
