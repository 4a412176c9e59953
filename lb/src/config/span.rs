//! Values that remember where they stand in the file.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData, ops::Range};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};

/// A stretch of the file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Its first byte.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
}

impl Span {
    /// The stretch as an index into the text.
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A value, and where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spanned<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

/// What [`Spanned`] asks [`super::de`] for by this name: the triple (start, end, value).
pub(super) const SPANNED: &str = "$lb::Spanned";

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(SPANNED, Triple(PhantomData))
    }
}

struct Triple<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Triple<T> {
    type Value = Spanned<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its place")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut part = || {
            parts
                .next_element()?
                .ok_or_else(|| A::Error::custom("a place without its bounds"))
        };
        let span = Span {
            start: part()?,
            end: part()?,
        };
        let value = parts
            .next_element()?
            .ok_or_else(|| A::Error::custom("a place without its value"))?;
        Ok(Spanned { value, span })
    }
}

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A mapping whose keys are names, in the order of the file, which is the order of preference and of reports.
#[derive(Clone)]
pub(super) struct Entries<T>(pub(super) Vec<(Spanned<String>, T)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Pairs(PhantomData))
    }
}

struct Pairs<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Pairs<T> {
    type Value = Entries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping of names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Entries(entries))
    }
}

impl<T: JsonSchema> JsonSchema for Entries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Entries_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, T>::json_schema(generator)
    }
}
