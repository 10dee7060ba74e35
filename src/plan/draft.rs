//! A partly parsed plan, so that validation can continue after the first problem.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::model::json::JsonPath;
use crate::model::name::{FilePath, ItemId, NameError, RunId};
use crate::model::plan::{BuiltIn, DraftNeed, Item, Need, Plan, Produced, Source, item_fields, plan_fields};
use crate::model::problem::{Code, Problem};
use crate::model::problems::Problems;
use crate::model::protect_rule::ProtectRule;
use crate::model::protected::OnProtectedChange;
use crate::model::read::Fields;
use crate::model::rule::Rule;
use crate::plan::read;
use crate::plan::rule::DraftRule;

/// A type of a plan's field, with its draft form.
///
/// References stay text, so that one to an item with an invalid name is not reported as unknown.
pub(crate) trait Drafted: Sized {
    /// The draft form, in which wrong fields are absent.
    type Draft;

    /// Returns the value, or `None` if incomplete or invalid.
    fn finish(draft: Self::Draft) -> Option<Self>;
}

/// Types whose draft form is the value.
macro_rules! whole {
    ($($type:ty),*) => {$(
        impl Drafted for $type {
            type Draft = Self;

            fn finish(draft: Self) -> Option<Self> {
                Some(draft)
            }
        }
    )*};
}

whole!(bool, Option<String>, Option<u32>, Option<u64>, Option<OnProtectedChange>);

/// Optional types.
macro_rules! there_or_not {
    ($($type:ty),*) => {$(
        impl Drafted for $type {
            type Draft = Option<Self>;

            fn finish(draft: Option<Self>) -> Option<Self> {
                draft
            }
        }
    )*};
}

there_or_not!(String, Map<String, Value>, ProtectRule);

/// Types kept as written.
macro_rules! names {
    ($($type:ty),*) => {$(
        impl Drafted for $type {
            type Draft = Option<String>;

            fn finish(draft: Option<String>) -> Option<Self> {
                draft?.parse().ok()
            }
        }
    )*};
}

names!(ItemId, RunId);

impl<T: Drafted> Drafted for Vec<T> {
    /// One for each element, so that positions are the author's.
    type Draft = Vec<T::Draft>;

    fn finish(draft: Self::Draft) -> Option<Self> {
        draft.into_iter().map(T::finish).collect()
    }
}

impl<T: Drafted> Drafted for BTreeMap<FilePath, T> {
    type Draft = BTreeMap<String, T::Draft>;

    fn finish(draft: Self::Draft) -> Option<Self> {
        draft.into_iter().map(|(key, value)| Some((FilePath::parse(&key).ok()?, T::finish(value)?))).collect()
    }
}

impl Drafted for Option<Vec<Produced>> {
    type Draft = DraftProducts;

    fn finish(draft: DraftProducts) -> Option<Self> {
        Some(draft.read)
    }
}

impl Drafted for Option<ItemId> {
    type Draft = Option<String>;

    fn finish(draft: Option<String>) -> Option<Self> {
        draft.map_or(Some(None), |text| text.parse().ok().map(Some))
    }
}

impl Drafted for Item {
    type Draft = Option<DraftItem>;

    fn finish(draft: Self::Draft) -> Option<Self> {
        draft?.finish()
    }
}

impl Drafted for Need {
    type Draft = DraftNeed;

    fn finish(draft: DraftNeed) -> Option<Self> {
        draft.finish()
    }
}

impl Drafted for Rule {
    type Draft = DraftRule;

    fn finish(draft: DraftRule) -> Option<Self> {
        draft.finish()
    }
}

/// Declares the draft form and parser of a table of fields.
macro_rules! drafted {
    ($([$place:ident: $place_type:ty])?
    $(#[$doc:meta])* $name:ident read as $draft:ident $(($(#[$id_doc:meta])* $id:ident: $id_type:ty))? {
        $($(#[$about:meta])* $field:ident: $type:ty = $key:literal, $presence:ident, $read:expr $(, as $write:path)?;)*
    }) => {
        #[doc = concat!("A [`", stringify!($name), "`] as far as it could be read.")]
        pub(crate) struct $draft {
            $(/// Where it stands; the root for one that stands in no plan that is being read.
            pub(crate) $place: $place_type,)?
            $(pub(crate) $id: <$id_type as Drafted>::Draft,)?
            $(pub(crate) $field: <$type as Drafted>::Draft,)*
        }

        impl $draft {
            /// Parses every field except the id.
            pub(super) fn read(
                fields: &Fields<'_>,
                $($place: $place_type,)?
                $($id: <$id_type as Drafted>::Draft,)?
                problems: &mut Problems,
            ) -> Self {
                $(drafted!(@first $presence, fields.required($key, problems));)*
                $(
                    drafted!(@in_turn $presence, fields.required($key, problems));
                    let $field = ($read)(fields, $key, problems);
                )*
                Self { $($place,)? $($id,)? $($field),* }
            }

            /// Returns the value, or `None` if incomplete or invalid.
            pub(crate) fn finish(self) -> Option<$name> {
                Some($name {
                    $($id: <$id_type as Drafted>::finish(self.$id)?,)?
                    $($field: <$type as Drafted>::finish(self.$field)?,)*
                })
            }
        }
    };
    (@first required, $report:expr) => { $report; };
    (@first $other:ident, $report:expr) => {};
    (@in_turn late, $report:expr) => { $report; };
    (@in_turn $other:ident, $report:expr) => {};
}

plan_fields!(drafted);
item_fields!(drafted [path: ItemPath]);

/// The declared products of an item, as far as parsed.
pub(crate) struct DraftProducts {
    pub(crate) read: Option<Vec<Produced>>,
    /// Whether some could not be parsed.
    pub(crate) unread: bool,
}

impl DraftProducts {
    /// Iterates over the parsed ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Produced> {
        self.read.iter().flatten()
    }
}

/// The path of an item's field.
pub(crate) struct ItemPath(pub(crate) JsonPath);

impl ItemPath {
    /// Returns the path of the item.
    pub(crate) fn itself(&self) -> &JsonPath {
        &self.0
    }

    /// Returns the path of a field.
    pub(crate) fn key(&self, key: &str) -> JsonPath {
        self.0.key(key)
    }

    /// Returns the path of a field of a need.
    pub(crate) fn need(&self, key: &str, field: &str) -> JsonPath {
        self.0.key("needs").key(key).key(field)
    }
}

impl DraftItem {
    /// Returns true if it names this built-in executor.
    pub(crate) fn is_for(&self, executor: BuiltIn) -> bool {
        self.executor.as_deref() == Some(executor.name())
    }

    /// Refuses a replacement in an item that no rule creates.
    pub(crate) fn check_replaces_nothing(&self, problems: &mut Problems) {
        for (key, id) in [("replaces", &self.replaces), ("continues", &self.continues)] {
            if id.is_some() {
                let message = "only an item that a rule creates can replace another";
                problems.push(Problem::new(Code::UnknownField, &self.path.key(key), message));
            }
        }
    }

    /// Reports references that cannot be valid, if the other items are unknown.
    pub(crate) fn check_references(&self, problems: &mut Problems) {
        let path = &self.path;
        let mut report = |error: NameError, at: JsonPath| {
            problems.push(Problem::new(Code::BadId, &at, error.to_string()));
        };
        for (key, id) in [("replaces", &self.replaces), ("continues", &self.continues)] {
            if let Some(Err(error)) = id.as_deref().map(ItemId::parse) {
                report(error, path.key(key));
            }
        }
        for (index, id) in self.depends_on.iter().enumerate() {
            if let Some(Err(error)) = id.as_deref().map(ItemId::parse) {
                report(error, path.key("depends_on").index(index));
            }
        }
        for (key, need) in &self.needs {
            if let Some(Err(error)) = need.from.as_deref().map(str::parse::<Source>) {
                report(error, path.need(key, "from"));
            }
        }
        if self.replaces.is_some() && self.continues.is_some() {
            let message = "an item either replaces another or continues one";
            problems.push(Problem::new(Code::UnknownField, &path.key("continues"), message));
        }
    }
}
