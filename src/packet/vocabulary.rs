//! The word lists that the rules of replay go by. `docs/packet.md` repeats them; a test compares the two.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::stem::stem;

/// A list of words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum List {
    /// Words that carry no meaning of their own.
    Stop,
    /// Verbs that do not say what to do.
    Vague,
    /// Nouns and adjectives that do not say what to do it to.
    Generic,
    /// Verbs that begin something.
    Start,
    /// Verbs that make something: which one is used does not matter.
    Create,
    /// Words that say that something is done.
    Done,
    /// Words that say that something is done in part.
    Partial,
    /// Words that say that something is done once more, or that another one is meant.
    Again,
    /// Words that begin the circumstances of an action.
    Preposition,
    /// Words that begin no action.
    Determiner,
    /// Other verbs that begin an action.
    Verb,
    /// Words that say that something waits for something.
    Blocked,
    /// Abbreviations, days and months, which name nothing although they are written like names.
    NoName,
}

/// Every list with its name in the documentation.
pub const LISTS: [(List, &str, &str); 13] = [
    (
        List::Stop,
        "stop words",
        "the a an and or but of to in on at by for with from into onto up down out off over under as is are was were be been being its their our your my we i you they he she us me them will would should shall can could may might must need needs have has had let lets please just also now here there so if then when while after before until till via using use per about through forward ahead along going get got very really which who what where how than too such both each not no yes that this these those it still back around away within next",
    ),
    (
        List::Vague,
        "vague verbs",
        "continue finish complete proceed resume keep progress advance handle address tackle deal finalize finalise improve enhance polish do make work try help manage go wrap",
    ),
    (
        List::Generic,
        "generic words",
        "work task feature thing stuff issue problem bug error item rest remainder remaining everything anything something all job project code codebase implementation change fix step part piece detail todo bit goal objective left leftover outstanding pending open other final last current previous existing more some few various several necessary needed required appropriate relevant same new soon later possible asap today tomorrow monday tuesday wednesday thursday friday saturday sunday day week morning matter area improvement functionality ticket story milestone phase small minor major edge way usual planned discussed mentioned described earlier above below end tomorrow it this that them these those properly correctly quickly carefully",
    ),
    (List::Start, "start verbs", "start begin commence initiate"),
    (List::Create, "making verbs", "implement build create write develop make add do perform produce"),
    (
        List::Done,
        "done words",
        "done complete completed finish finished ready finalize finalise already successfully fully item",
    ),
    (
        List::Partial,
        "part words",
        "partial partially half halfway mostly ongoing progress start started begin began attempt attempted try tried wip except most some part",
    ),
    (
        List::Again,
        "again words",
        "again re-run rerun redo repeat another second third additional more further rest remaining other others once new",
    ),
    (
        List::Preposition,
        "prepositions",
        "for with in on at by from to into onto before after until till via using against between per about under over through without within during as because since so that when while if which once",
    ),
    (
        List::Determiner,
        "determiners",
        "the a an this that these those it its they them their our your my we i you he she some any all more most everything anything something nothing there other another each every no",
    ),
    (
        List::Verb,
        "action verbs",
        "ask audit backfill benchmark bump call check clean commit compare configure confirm contact convert copy debug decide delete deploy design document draft drop edit email enable disable extract fetch file find fix generate inspect install investigate list lint measure merge migrate move notify open patch pin ping port post profile publish pull push read rebase record refactor release remove rename replace reply report reproduce restart revert review rewrite roll run schedule send ship show split submit switch sync tag test trace update upgrade upload validate verify wait wire",
    ),
    (List::Blocked, "blocking words", "blocked blocker blocking awaiting await waiting wait stuck"),
    (
        List::NoName,
        "no names",
        "api ui ux ci cd pr db qa mvp wip todo tbd eta fyi asap ok eod eow na i am pm utc january february march april may june july august september october november december monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun please then",
    ),
];

/// Two words that together are a vague verb.
pub const VAGUE_PAIRS: [(&str, &str); 13] = [
    ("carry", "on"),
    ("follow", "up"),
    ("look", "at"),
    ("look", "into"),
    ("move", "ahead"),
    ("move", "along"),
    ("move", "forward"),
    ("move", "on"),
    ("pick", "up"),
    ("press", "on"),
    ("push", "forward"),
    ("sort", "out"),
    ("take", "over"),
];

/// Texts that stand for "there is none".
pub const NONE: [&str; 16] = [
    "none",
    "n/a",
    "na",
    "nothing",
    "nil",
    "no",
    "-",
    "—",
    "none known",
    "none identified",
    "no risks",
    "no known risks",
    "no blockers",
    "no known blockers",
    "no open issues",
    "not applicable",
];

/// Texts that stand for what nobody wrote yet.
pub const PLACEHOLDERS: [&str; 20] = [
    "tbd",
    "tba",
    "tbc",
    "todo",
    "to do",
    "to be determined",
    "to be decided",
    "to be confirmed",
    "unknown",
    "?",
    "??",
    "???",
    "...",
    "…",
    "xxx",
    "see above",
    "see below",
    "as discussed",
    "same as before",
    "placeholder",
];

/// Returns whether a word, of which the stem is given, is on a list.
pub(super) fn on(list: List, stemmed: &str) -> bool {
    static STEMS: OnceLock<Vec<HashSet<String>>> = OnceLock::new();
    let stems = STEMS.get_or_init(|| LISTS.iter().map(|(_, _, words)| words.split(' ').map(stem).collect()).collect());
    LISTS.iter().zip(stems).any(|((known, ..), stems)| *known == list && stems.contains(stemmed))
}

/// Returns whether a text says that there is none.
pub(super) fn is_none(text: &str) -> bool {
    NONE.contains(&bare(text).as_str())
}

/// Returns whether a text stands for what nobody wrote yet.
pub(super) fn is_placeholder(text: &str) -> bool {
    let bare = bare(text);
    PLACEHOLDERS.contains(&bare.as_str()) || bare.is_empty()
}

fn bare(text: &str) -> String {
    let text = text.trim().to_lowercase();
    let inner = text.trim_matches(|c: char| matches!(c, '<' | '>' | '[' | ']' | '(' | ')' | '"' | '\''));
    let short = inner.trim_end_matches(['.', '!', ',', ';', ':']).trim();
    if short.is_empty() { inner.trim().to_owned() } else { short.to_owned() }
}
