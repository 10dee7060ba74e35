//! Files that decide whether work is good, by ecosystem: a starting list of what to protect.

/// Pathspecs by ecosystem, as `docs/how-to/protect-tests.md` lists them.
pub const PROTECTABLE: &[(&str, &[&str])] = &[
    ("Cargo", &["tests", "Cargo.toml", ".cargo", "build.rs", "rust-toolchain.toml"]),
    ("npm", &["test", "tests", "*.test.js", "*.test.ts", "package.json", "jest.config.*", "vitest.config.*"]),
    ("pytest", &["tests", "conftest.py", "**/conftest.py", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"]),
    ("Go", &["*_test.go", "go.mod", "testdata"]),
    ("make", &["Makefile", "*.mk"]),
    ("CI", &[".github", ".gitlab-ci.yml", ".circleci", "Jenkinsfile"]),
];
