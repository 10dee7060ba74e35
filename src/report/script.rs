//! The script of a page: the modules of the JavaScript verifier as one text, and the template.
//!
//! A page can import nothing, so the script has no import and no export. Top-level names are unique
//! in all modules, so that they can share one scope. `verify/node/script.mjs` joins them likewise.

use std::sync::LazyLock;

use serde_json::json;

use super::{TEMPLATE, in_script};
use crate::model::digest::Digest;

/// Returns each named file in `verify` with its text.
macro_rules! modules {
    ($($file:literal,)*) => { &[$(include_str!(concat!("verify/", $file))),*] };
}

/// The modules of the verifier in their order: each imports only modules above it.
const MODULES: &[&str] = modules![
    "bytes.mjs",
    "limits.mjs",
    "crypto/hashes.mjs",
    "crypto/ed25519.mjs",
    "json.mjs",
    "values.mjs",
    "names.mjs",
    "schemas.mjs",
    "git/inflate.mjs",
    "git/reader.mjs",
    "git/pack.mjs",
    "git/tree.mjs",
    "git/store.mjs",
    "git/bundle.mjs",
    "crypto/signature.mjs",
    "entries/kinds.mjs",
    "entries/subject.mjs",
    "entries/commit.mjs",
    "entries/merkle.mjs",
    "plan/items.mjs",
    "plan/plan.mjs",
    "plan/manifest.mjs",
    "protected/patch.mjs",
    "protected/pathspec.mjs",
    "protected/protected.mjs",
    "chain/chain.mjs",
    "chain/signers.mjs",
    "chain/roles.mjs",
    "chain/log.mjs",
    "findings.mjs",
    "report.mjs",
    "replay/item.mjs",
    "replay/compare.mjs",
    "replay/templates.mjs",
    "replay/rules.mjs",
    "replay/outcome.mjs",
    "replay/blocks.mjs",
    "replay/item-transitions.mjs",
    "replay/run-transitions.mjs",
    "replay/replay.mjs",
    "proof.mjs",
    "thread/chain.mjs",
    "run/chain.mjs",
    "run/root.mjs",
    "run/content.mjs",
    "run/manifests.mjs",
    "run/protected.mjs",
    "run/evidence.mjs",
    "run/start.mjs",
    "run/plan.mjs",
    "run/verifier.mjs",
    "run/report.mjs",
    "thread/verifier.mjs",
    "verification.mjs",
    "page/printable.mjs",
    "page/template.mjs",
    "page/words.mjs",
    "page/contents.mjs",
    "page/timing.mjs",
    "page/marks.mjs",
    "page/item-facts.mjs",
    "page/run-facts.mjs",
    "page/thread-facts.mjs",
    "page/facts.mjs",
    "page/picture.mjs",
    "page/claims.mjs",
    "page/check.mjs",
    "page/browser.mjs",
    "handoff.mjs",
];

/// The script of every page that this program writes.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let modules: Vec<String> = MODULES.iter().map(|text| without_module_syntax(text)).collect();
    let (verifier, template) = (modules.join("\n"), in_script(&json!(TEMPLATE).to_string()));
    format!("\n'use strict';\n\n{verifier}\nHandoff.template = {template};\nHandoff.openPage();\n")
});

/// Returns the script of every page that this program writes.
pub(super) fn script() -> &'static str {
    &SCRIPT
}

/// Returns the digest of the script of every page that this program writes.
pub fn script_hash() -> Digest {
    Digest::compute(script().as_bytes())
}

/// Returns the text of a module without its imports, and without the word `export`.
///
/// An import begins with `import ` at the start of a line, and ends with the first line that ends
/// with a semicolon.
fn without_module_syntax(text: &str) -> String {
    let mut script = String::with_capacity(text.len());
    let mut is_import = false;
    for line in text.split_inclusive('\n') {
        is_import |= line.starts_with("import ");
        if !is_import {
            script.push_str(line.strip_prefix("export ").unwrap_or(line));
        }
        is_import &= !line.trim_end().ends_with(';');
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_and_the_word_export_are_left_out() {
        let module = "// One.\n\nimport { a } from './a.mjs';\nimport {\n  b,\n  c,\n} from './b.mjs';\n\n\
            export const d = 'export ';\n  export import\nfunction e() {}\n";
        let script = "// One.\n\n\nconst d = 'export ';\n  export import\nfunction e() {}\n";
        assert_eq!(without_module_syntax(module), script);
        assert_eq!(without_module_syntax("import {"), "");
        assert_eq!(without_module_syntax(""), "");
    }

    #[test]
    fn the_script_has_every_module_and_no_import() {
        for module in MODULES {
            let comment = module.lines().next().expect("a module starts with a comment");
            assert!(comment.starts_with("// ") && script().contains(comment), "{comment}");
        }
        let words = ["import ", "export "];
        assert!(!script().lines().any(|line| words.iter().any(|word| line.starts_with(word))));
        assert!(script().ends_with(";\nHandoff.openPage();\n"));
    }
}
