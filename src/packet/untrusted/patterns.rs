//! U1 to U5: the patterns, and what spares a passage.

use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;

/// One rule: its id, its patterns over plain text, and the words behind a match that make it mean something else.
struct Rule {
    id: &'static str,
    patterns: &'static [&'static str],
    tails: &'static [&'static str],
}

/// What may stand between a verb and what it is about; `FILL` in the patterns.
const FILL: &str = r"(?:(?:the|all|any|your|my|our|his|her|its|their|these|those|this|that|every|each|of|both|such|safety|security|code|required|mandatory|existing|remaining|normal|usual|standard|built-in|pre-commit|human|manual|previous|prior|above|earlier|preceding|other|current|system|original|initial|former|full|complete|entire|whole|contents|content|value|values|user|users|production|prod|me|us) ){0,6}";

/// What a secret is called; `SECRET` in the patterns.
const SECRET: &str = r"(?:secrets?|credentials?|passwords?|passphrases?|api[ _-]?keys?|(?:access|auth|api|bearer|session|refresh|github|gitlab|aws|deploy|oauth|service|secret|jwt|npm|pypi|slack) tokens?|private keys?|ssh keys?|signing keys?|env(?:ironment)? variables|env vars|system prompt|session cookies?|cookies|FILE|VARIABLE)";

/// Where credentials lie, with the folders before it; `FILE` in the patterns.
const FILE: &str = r"[`'\x22(]?(?:[^ ;!?]*/)?(?:\.env\b|\.ssh\b|id_(?:rsa|dsa|ecdsa|ed25519)\b|\.aws/(?:credentials|config)\b|\.netrc\b|_netrc\b|\.npmrc\b|\.pypirc\b|\.pgpass\b|\.git-credentials\b|\.kube/config\b|kubeconfig\b|\.docker/config\.json\b|\.config/gh/hosts\.yml\b|\.config/gcloud\b|application_default_credentials\.json\b|\.cargo/credentials\b|\.gnupg\b|\.vault-token\b|etc/(?:shadow|passwd)\b|proc/[^ /]+/environ\b|handoff/signing_key\b)";

/// What a variable is called that holds one; `VARIABLE` in the patterns.
const VARIABLE: &str = r"[`'\x22(]?(?:\$\{?[a-z0-9_]*(?:token|secret|passw(?:or)?d|api_?key|access_key|private_key|credentials?)[a-z0-9_]*|(?:gh|github|gitlab|ci|aws|azure|google|gcp|openai|anthropic|npm|pypi|cargo|slack|hf|huggingface|docker|stripe|twilio|database|db|postgres|mysql|vault)_(?:[a-z0-9]+_)*(?:token|secret|password|pat|key))\b";

/// What keeps people safe; `GUARD` in the patterns.
const GUARD: &str = r"(?:safeguards?|guardrails?|guards|safety|checks?|checking|verification|validation|reviews?|approvals?|tests|test suite|signatures?|signature checks?|sandbox(?:ing)?|hooks?|protections?|branch protection|ci|ci checks?|linters?|lints|firewall|authentication|authorization|authorisation|confirmations?|security|security controls|polic(?:y|ies)|access controls?|permission checks?|content filters?|restrictions|audit log(?:ging)?|monitoring|antivirus|selinux|tls verification|certificate verification)";

const RULES: [Rule; 5] = [
    Rule {
        id: "U1",
        patterns: &[
            r"\b(?:bypass|circumvent|disable|skip|suppress|ignore|evade|defeat|deactivate|turn off|switch off|work around|get around|opt out of) FILLGUARD\b",
            r"\b(?:proceed|continue|merge|deploy|push|run|act|apply|execute|release|ship|commit|publish|delete)\b(?: [^ .;!?]+){0,6} without (?:any |further |asking |getting |waiting for |prior |the |a |human |manual |code |user |owner )*(?:asking|approval|confirmation|confirming|reviews?|permissions?|verification|verifying|validation|validating|checking|checks|tests|testing|sign-off|consent|authorization|telling)\b",
            r"(?:^| |[`'\x22])(?:--no-verify|--dangerously-[a-z-]+|--yolo|--no-gpg-sign|--skip-(?:checks|tests|verification|hooks)|--insecure|--disable-(?:checks|sandbox|security))\b",
            r"\b(?:no|without) (?:need for |need to wait for )?(?:approval|review|confirmation) (?:is )?(?:needed|required|necessary)\b",
        ],
        tails: &[
            "coverage", "failures", "failure", "results", "page", "button", "output", "table", "column", "comments",
            "queue",
        ],
    },
    Rule {
        id: "U2",
        patterns: &[
            r"\b(?:grant|give|assign|obtain|request|acquire|add)\b(?: [^ .;!?]+){0,5} (?:admin|administrator|root|sudo|superuser|owner|full|unrestricted|write|elevated)(?:[ -]level)? (?:access|permissions?|privileges?|rights?|role|scopes?)\b",
            r"\b(?:widen|escalate|elevate|broaden|expand|extend|raise|loosen|relax|increase) FILL(?:agent'?s? |bot'?s? |worker'?s? |token'?s? )?(?:permissions?|privileges?|access rights|access|scopes?)\b",
            r"\bchmod (?:-r )?(?:0?777|a\+rwx|u\+s|\+s|666|ugo\+rwx)",
            r"(?:^|[ `'\x22(])sudo [a-z./-]",
            r"\b(?:to|edit|modify) (?:the |/etc/)?sudoers\b|\bnopasswd\b",
            r"\bmake FILL(?:repo|repository|bucket|database|file|folder|directory|branch|endpoint|share)s? (?:public|world[- ](?:readable|writable|writeable))\b",
            r"(?:^| )--privileged\b|\bset(?:uid|enforce 0)\b|\brun (?:it |this |everything |them |as )*(?:as )?root\b",
            r"\ballow (?:all|any|every|unrestricted) (?:users?|tools?|commands?|origins?|traffic|permissions?|access|hosts?|actions?)\b",
        ],
        tails: &["page", "docs", "documentation", "model", "matrix", "table", "tests", "logs", "log"],
    },
    Rule {
        id: "U3",
        patterns: &[
            r"\b(?:print|show|reveal|send|post|upload|paste|share|expose|leak|exfiltrate|dump|email|mail|output|echo|cat|publish|copy|include|display|disclose|forward|transmit|log|list|read out|write out|tell)\b FILL(?:(?:[a-z_-]+) ){0,2}?SECRET",
            r"\b(?:printenv|env|cat [^ ]*\.env)\b ?(?:\||>) ?(?:curl|nc|wget|base64|[a-z./])",
            r"\b(?:curl|wget|nc)\b[^.;!?]{0,80}(?:\$\(cat |@)[^ ]*(?:\.env|\.ssh|id_rsa|id_ed25519|credentials|\.netrc|/etc/passwd|/etc/shadow)",
            r"\bcommit FILL(?:secrets?|credentials?|passwords?|private keys?|\.env\b)",
            r"\b(?:read|open|view|grep|head|tail|less|more|base64|xxd|hexdump|strings|scp|rsync|cp|grab|retrieve|collect|extract|gather|attach|quote|return|summari[sz]e|provide) FILL(?:-{1,2}[a-z0-9=-]+ |[0-9]+ )*(?:[a-z]+ (?:in|from|of|at|inside) (?:the )?)?(?:FILE|VARIABLE)",
            r"\b(?:give|tell|hand|provide|bring|get) (?:me|us|them|him|her) FILL(?:[a-z_-]+ ){0,2}?SECRET",
            r"\b(?:reply|respond|answer|come back) with FILL(?:[a-z_-]+ ){0,2}?SECRET",
            r"\b(?:steal|harvest|siphon|phish|grab) FILL(?:[a-z_-]+ ){0,2}?SECRET",
            r"\b(?:run|execute|call|type|invoke) [`'\x22]?(?:printenv|env|export -p|declare -[xp])[`'\x22]?(?:$|[.,;!?)]| (?:and|then|\||>))",
            r"(?:^|[.;:!?] )[`'\x22]?printenv\b",
            r"\b(?:dump|print|exfiltrate|leak|paste) FILL(?:process |shell )?environment(?:$|[.,;!?]| (?:to|and|into|here)\b)",
            r"\b(?:gh auth token|gcloud auth (?:application-default )?print-access-token|aws configure (?:export-credentials|get aws_secret_access_key)|git credential(?:-[a-z]+)? (?:fill|get)|security find-(?:generic|internet)-password|gpg (?:-[a-z-]+ )*--export-secret-(?:sub)?keys|kubectl (?:-[^ ]+ )*get secrets?)\b",
        ],
        tails: &[
            "reset",
            "policy",
            "policies",
            "field",
            "fields",
            "form",
            "forms",
            "hash",
            "hashes",
            "hashing",
            "manager",
            "rotation",
            "count",
            "counts",
            "scanner",
            "scanning",
            "page",
            "input",
            "prompt",
            "strength",
            "docs",
            "documentation",
            "table",
            "column",
            "template",
            "schema",
            "format",
            "handling",
            "redaction",
            "usage",
            "expiry",
            "lifetime",
            "validation",
            "length",
            "banner",
            "names",
            "example",
            "sample",
            "used",
            "needed",
            "required",
            "referenced",
            "consent",
            "notice",
            "parser",
            "parsing",
            "settings",
            "error",
            "errors",
            "test",
            "tests",
        ],
    },
    Rule {
        id: "U4",
        patterns: &[
            r"\brm (?:-[a-z-]+ )*-[a-z]*(?:rf|fr)[a-z]*\b|\brm (?:-r|-f|--recursive) (?:-r|-f|--force)\b|\brm -r (?:/|~|\*|\$home)",
            r"\bgit push\b[^.;!?\n]{0,60} (?:--force|-f|--mirror|--delete)(?: |$|[`'\x22,)])",
            r"\bgit (?:reset --hard|clean -[a-z]*f|branch -d --force|update-ref -d|reflog expire|filter-branch|checkout -- \.)",
            r"\b(?:drop (?:the )?(?:[a-z_]+ )?(?:tables?|database|schema)|truncate (?:table|the [a-z_]+ table)|delete from [a-z_.]+)\b",
            r"\bmkfs\b|\bdd if=[^ ]+ of=/dev/|:\(\) ?\{ ?:\|:& ?\} ?;|\b(?:terraform|pulumi) destroy\b|\bkubectl delete\b|\bhelm uninstall\b|\bdocker system prune\b|\bvssadmin delete\b|\bformat c:",
            r"\b(?:delete|erase|wipe|destroy|purge|remove|nuke|shred|overwrite) (?:the |your )?(?:everything|it all|all of (?:it|them|this)|all(?:[.,;!?]|$))",
            r"\b(?:delete|erase|wipe|destroy|purge|nuke|overwrite|shred|format|drop) FILL(?:databases?|backups?|repositor(?:y|ies)|repo|(?:git )?history|buckets?|volumes?|disks?|drives?|audit logs?|home (?:directory|folder)|file ?system|production data|servers?|cluster)\b",
            r"\b(?:delete|erase|wipe|destroy|purge|nuke|overwrite|shred|drop|remove) (?:(?:the|of) )?(?:all|every|entire|whole|production|prod|your|user) FILL(?:data|files?|folders?|directories|records|branches|snapshots|backups?|namespaces?|rows|users|tables|databases?|logs|repositor(?:y|ies)|accounts|images|tags)\b",
            r"\b(?:curl|wget)\b[^;!?]{0,120}\| ?(?:sudo )?(?:ba|z|da|k)?sh\b|\b(?:ba)?sh <\(curl|\biex ?\(|\beval \x22?\$\(curl",
            r"\b(?:shut down|shutdown|power off|kill) FILL(?:production|servers?|cluster|database|hosts?|processes)\b|\brewrite FILL(?:git |published |public )?history\b",
        ],
        tails: &["format", "model", "layer", "page", "button", "endpoint", "tests", "test", "docs", "flow", "dialog"],
    },
    Rule {
        id: "U5",
        patterns: &[
            r"\b(?:ignore|disregard|forget|override|overrule|discard|neglect|do not follow|don'?t follow|stop following|do not obey|don'?t obey) FILL(?:[a-z'-]+ )?(?:instructions?|prompts|guidelines?|directives|guardrails|instructed)\b",
            r"\b(?:ignore|disregard|forget|override|overrule|discard|neglect|do not follow|don'?t follow|stop following|do not obey|don'?t obey) (?:(?:all|any|of|the|these|those) ){0,3}(?:your|previous|prior|above|earlier|preceding|system|safety|security|project'?s?|original|existing|current)(?: [a-z-]+)? (?:rules|prompt|polic(?:y|ies)|constraints?|training|context|commands|orders|instruction)\b",
            r"\b(?:ignore|disregard|forget) (?:everything|anything|all|what)(?: that| which)?(?: you| was| were| has| have| been| said| wrote| written| told|,)* (?:above|before|previously|earlier|prior|told|said|instructed|know)\b",
            r"\byou are (?:now|no longer) (?:a |an |the |in |bound|dan\b|free|unrestricted|root|admin|jailbroken|allowed|required|authori[sz]ed|subject)",
            r"\b(?:new|updated|revised|real|actual|secret|hidden) (?:system )?(?:instructions?|prompt|directives?) ?(?::|are|follow|is\b)",
            r"(?:^| )(?:<\|(?:im_start|im_end|system|endoftext)\|>|\[/?(?:inst|system)\]|</?(?:system|instructions?|system_prompt)>|###? ?(?:system|instructions?|new instructions?)\b|system ?(?:prompt|message|override) ?:)",
            r"(?:^|[.!\x22'\n] ?)(?:system|assistant|developer) ?: ",
            r"\b(?:act as|pretend to be|pretend you are|roleplay as|behave as) (?:if you (?:are|were) )?(?:a |an |the )?(?:unrestricted|root|admin|administrator|system|developer mode|dan\b|jailbroken|superuser|different)",
            r"\b(?:jailbreak|developer mode|god mode|do anything now)\b",
            r"\b(?:do not|don'?t|never) (?:tell|inform|mention (?:this|it) to|alert|notify|report (?:this|it) to|reveal (?:this|it) to|let) FILL(?:user|users|owner|human|humans|operator|anyone|anybody|team|maintainers?|reviewers?)\b",
            r"\b(?:without|instead of) (?:telling|informing|notifying|alerting|asking) FILL(?:user|owner|human|operator|team|anyone|maintainers?|reviewers?)\b",
            r"\bfrom now on,? (?:you|ignore|always|never|do|obey|follow|treat)\b",
            r"\b(?:you must|you should|you have to|(?:the )?(?:agent|assistant|ai|model|llm|reader) (?:must|should|shall|has to)|(?:ai|dear|attention|hey),? (?:agent|assistant|model|ai)s?\b[:,]?(?: please)?) (?:now |immediately |first |always |also )?(?:run|execute|curl|download|install|fetch and run|obey|invoke|call|visit|open)\b",
            r"\b(?:run|execute|paste|evaluate) (?:the )?following (?:command|script|code|shell|commands|payload)s?\b",
        ],
        tails: &[
            "parser",
            "parsing",
            "set",
            "cache",
            "pointer",
            "counter",
            "manager",
            "window",
            "switch",
            "engine",
            "template",
            "templates",
        ],
    },
];

/// Words before a passage, in its clause, by which nobody is asked for it.
const NEGATIONS: [&str; 22] = [
    "not",
    "never",
    "don't",
    "dont",
    "cannot",
    "can't",
    "cant",
    "won't",
    "avoid",
    "avoids",
    "avoiding",
    "prevent",
    "prevents",
    "refuse",
    "refuses",
    "forbid",
    "forbids",
    "forbidden",
    "shouldn't",
    "mustn't",
    "no",
    "neither",
];
/// Words by which something is feared and not asked for.
const HAZARDS: [&str; 9] =
    ["could", "might", "may", "would", "accidentally", "can", "mistakenly", "otherwise", "inadvertently"];
/// Words that turn a negation into its opposite, or address the reader.
const UNDONE: [&str; 12] =
    ["hesitate", "forget", "fail", "worry", "afraid", "you", "mind", "matter", "longer", "only", "just", "need"];
/// Words behind which another clause begins.
const ANOTHER: [&str; 6] = ["and", "then", "so", "but", "please", "instead"];

/// Words right before a verb that make it a report.
const PASSIVE: [&str; 7] = ["is", "are", "was", "were", "been", "being", "gets"];

/// Endings of files that stand for a file of credentials and hold none.
const EXAMPLES: [&str; 6] = [".example", ".sample", ".template", ".dist", "-example", "-sample"];

/// How many words before a passage are looked at.
const BEFORE: usize = 5;

/// Returns the passages of a plain text that a rule is about, in the order of the rules.
pub(super) fn matches(plain: &str) -> Vec<(&'static str, Range<usize>)> {
    static COMPILED: OnceLock<Vec<Vec<Regex>>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| {
        let compile = |pattern: &&str| {
            let pattern = pattern.replace("FILL", FILL).replace("SECRET", SECRET).replace("GUARD", GUARD);
            let pattern = pattern.replace("FILE", FILE).replace("VARIABLE", VARIABLE);
            Regex::new(&pattern).expect("the patterns in this file are valid")
        };
        RULES.iter().map(|rule| rule.patterns.iter().map(compile).collect()).collect()
    });
    let mut found = Vec::new();
    for (rule, patterns) in RULES.iter().zip(compiled) {
        let all = patterns.iter().flat_map(|pattern| pattern.find_iter(plain));
        let first = all.map(|m| m.range()).find(|range| !is_spared(plain, range, rule));
        found.extend(first.map(|range| (rule.id, range)));
    }
    found
}

fn is_spared(plain: &str, range: &Range<usize>, rule: &Rule) -> bool {
    let tail = plain[range.end..].trim_start_matches(' ');
    let next = tail.split(|c: char| !c.is_alphanumeric() && c != '-').next().unwrap_or_default();
    // Only a word that directly follows changes what the last one means.
    if plain[range.end..].starts_with(' ') && rule.tails.contains(&next) {
        return true;
    }
    // What is copied from, or shown as, an example holds nothing.
    if EXAMPLES.iter().any(|ending| plain[range.end..].starts_with(ending)) {
        return true;
    }
    let mut from = range.start.saturating_sub(160);
    while !plain.is_char_boundary(from) {
        from -= 1;
    }
    let before = &plain[from..range.start];
    let clause = before.rsplit(['.', ';', ':', '!', '?', ',', '(', '\n']).next().unwrap_or_default();
    let words: Vec<&str> = clause.split(' ').filter(|word| !word.is_empty()).collect();
    let own_clause = words.iter().rposition(|word| ANOTHER.contains(word)).map_or(0, |at| at + 1);
    // "is read", "was sent": what is told of, and asked of nobody.
    if words.last().is_some_and(|word| PASSIVE.contains(word)) {
        return true;
    }
    let words = &words[own_clause.max(words.len().saturating_sub(BEFORE))..];
    let any = |list: &[&str]| words.iter().any(|word| list.contains(&word.trim_matches(['`', '\'', '"', '*'])));
    let own = plain[range.clone()].starts_with("do not") || plain[range.clone()].starts_with("don");
    !own && (any(&NEGATIONS) || any(&HAZARDS)) && !any(&UNDONE)
}
