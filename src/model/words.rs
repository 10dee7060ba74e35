//! The words of enums, and types that JSON has as text: each form is written once.

/// Defines an enum with a word for each variant, which a method of the given name returns and
/// `Display` writes. `ALL` has every variant in order.
macro_rules! words {
    (
        $method:ident
        $(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }
    ) => {
        $(#[$meta])*
        $vis enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every variant, in order.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// Returns the word.
            #[must_use]
            pub const fn $method(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.$method())
            }
        }
    };
}

/// Writes types in JSON as their `Display` text.
macro_rules! written_as_text {
    ($($name:ty),+) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}

/// Writes types in JSON as their `Display` text, and reads them with `FromStr`.
macro_rules! as_text {
    ($($name:ty),+) => {$(
        $crate::model::words::written_as_text!($name);

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <String as serde::Deserialize>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

/// Gives enums of `words!` that write themselves as text a JSON Schema: the list of their words.
macro_rules! schema_of_words {
    ($($name:ident: $about:literal),+) => {$(
        #[cfg(feature = "schemas")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let words: std::collections::BTreeSet<String> = Self::ALL.iter().map(ToString::to_string).collect();
                schemars::json_schema!({ "description": $about, "type": "string", "enum": words })
            }
        }
    )+};
}

pub(crate) use {as_text, schema_of_words, words, written_as_text};
