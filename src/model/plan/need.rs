//! Needs: bindings of input keys to products of the run or from outside.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::model::elsewhere::{Elsewhere, LATEST};
use crate::model::json::JsonPath;
use crate::model::name::{ItemId, NameError};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::read::Fields;

use super::product::{Selector, SelectorError, read_selector};
use crate::model::words::as_text;

/// A binding of an input key to a product.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Need {
    /// The source.
    pub from: Source,
    /// The product.
    pub select: Selector,
    /// True if the patch is applied before the item begins.
    pub apply: bool,
}

impl Need {
    /// Its field names in JSON; `run` and `thread` name a source outside the run.
    pub(crate) const FIELDS: &'static [&'static str] = &["run", "thread", "from", "select", "apply"];

    /// Returns the need as in a plan.
    pub fn to_json(&self) -> Value {
        let select = self.select.to_json();
        match &self.from {
            Source::Elsewhere(elsewhere) => {
                let (field, place, from) = elsewhere.fields();
                json!({ field: place, "from": from, "select": select })
            }
            own if self.apply => json!({ "from": own, "select": select, "apply": true }),
            own => json!({ "from": own, "select": select }),
        }
    }

    /// Returns the product's name in entry 0, for a source outside the run.
    pub fn import(&self) -> Option<String> {
        match &self.from {
            Source::Elsewhere(elsewhere) => Some(elsewhere.import(&self.select)),
            _ => None,
        }
    }
}

impl Serialize for Need {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

/// The source of a needed product.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// An item of the run.
    Item(ItemId),
    /// The files sealed at submit: `@artifacts`.
    Artifacts,
    /// The run's documents, by any author: `@documents`.
    Documents,
    /// An item of another run or a checkpoint of a thread: `@run/…`, `@thread/…`.
    Elsewhere(Elsewhere),
}

as_text!(Source);

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(id) => f.write_str(id.as_str()),
            Self::Artifacts => f.write_str("@artifacts"),
            Self::Documents => f.write_str("@documents"),
            Self::Elsewhere(elsewhere) => elsewhere.fmt(f),
        }
    }
}

impl FromStr for Source {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        match text {
            "@artifacts" => Ok(Self::Artifacts),
            "@documents" => Ok(Self::Documents),
            elsewhere if elsewhere.starts_with('@') => elsewhere.parse().map(Self::Elsewhere),
            id => ItemId::parse(id).map(Self::Item),
        }
    }
}

/// A [`Need`] as far as it could be parsed.
pub(crate) struct DraftNeed {
    /// The value of `from`, or the whole source outside the run.
    pub(crate) from: Option<String>,
    /// Whether the source is outside the run.
    pub(crate) elsewhere: bool,
    pub(crate) select: Option<Selector>,
    pub(crate) apply: bool,
}

impl DraftNeed {
    /// Returns the need, or `None` if incomplete or invalid.
    pub(crate) fn finish(self) -> Option<Need> {
        let from = self.from?.parse().ok()?;
        let is_consistent = matches!(from, Source::Elsewhere(_)) == self.elsewhere;
        is_consistent.then_some(Need { from, select: self.select?, apply: self.apply })
    }
}

/// Parses the fields of a need.
pub(crate) fn read_need(fields: &Fields<'_>, problems: &mut Problems) -> DraftNeed {
    let (run, thread) = (fields.get("run"), fields.get("thread"));
    if thread.is_none() {
        fields.required("from", problems);
    }
    fields.required("select", problems);
    let from = fields.string("from", problems);
    let source = match (run, thread) {
        (None, None) => from.map(str::to_owned),
        (Some(_), Some(_)) => {
            let message = "a need names a run or a thread, not both";
            problems.push(Problem::new(Code::UnknownField, &fields.at("thread"), message));
            None
        }
        (Some(_), None) => {
            let place = fields.text("run", problems);
            place.zip(from).and_then(|(place, from)| item(fields, place, from, problems))
        }
        (None, Some(_)) => {
            let at = if fields.get("from").is_some() { from } else { Some(LATEST) };
            let place = fields.text("thread", problems);
            place.zip(at).and_then(|(place, at)| checkpoint(fields, place, at, problems))
        }
    };
    // An item's id does not begin with `@`, and a source outside the run has one canonical form.
    let elsewhere = run.is_some() || thread.is_some();
    if !elsewhere && from.as_ref().is_some_and(|from| from.starts_with("@run/") || from.starts_with("@thread/")) {
        let message = "name the run in `run`, or the thread in `thread`";
        problems.push(Problem::new(Code::BadId, &fields.at("from"), message));
    }
    let select = fields.get("select").and_then(|select| read_selector(select, &fields.at("select"), problems));
    let apply = fields.boolean("apply", problems).unwrap_or(false);
    let is_item = source.as_ref().is_none_or(|text| !text.starts_with('@'));
    let is_patch = select.as_ref().is_none_or(|select| *select == Selector::Patch);
    if (elsewhere && fields.get("apply").is_some()) || (apply && !(is_item && is_patch)) {
        let message = "only the patch of an item of this run can be applied";
        problems.push(Problem::new(Code::BadSelector, &fields.at("apply"), message));
    }
    DraftNeed { from: source, elsewhere, select, apply }
}

fn item(fields: &Fields<'_>, place: &str, from: &str, problems: &mut Problems) -> Option<String> {
    let read = Elsewhere::item(place, from).map(|source| source.to_string());
    read.map_err(|error| {
        let field = if ItemId::parse(from).is_err() { "from" } else { "run" };
        problems.push(Problem::new(Code::BadId, &fields.at(field), error.to_string()));
    })
    .ok()
}

fn checkpoint(fields: &Fields<'_>, place: &str, at: &str, problems: &mut Problems) -> Option<String> {
    let mut wrong = |field: &str, why: String| problems.push(Problem::new(Code::BadId, &fields.at(field), why));
    match Elsewhere::checkpoint(place, at) {
        Ok(Some(source)) => return Some(source.to_string()),
        Ok(None) => {
            wrong("from", format!("{at:?} is neither the name of a checkpoint, like 3-0c3b84d1aa07, nor `{LATEST}`"));
        }
        Err(error) => wrong("thread", error.to_string()),
    }
    None
}

impl TryFrom<Value> for Need {
    type Error = SelectorError;

    fn try_from(value: Value) -> Result<Self, SelectorError> {
        let mut problems = Problems::default();
        let fields = Fields::read(&value, JsonPath::root(), Self::FIELDS, &mut problems);
        let need = fields.map(|fields| read_need(&fields, &mut problems));
        let why = problems.into_iter().next().map(|problem| problem.message);
        match (need.and_then(DraftNeed::finish), why) {
            (Some(need), None) => Ok(need),
            (_, why) => Err(SelectorError(why.unwrap_or_else(|| "`from` is no name".to_owned()))),
        }
    }
}
