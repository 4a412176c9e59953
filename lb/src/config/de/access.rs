//! The parts of lists, mappings and places, as serde asks for them.

use std::{iter::Enumerate, slice};

use serde::de::{
    DeserializeSeed, IntoDeserializer as _, MapAccess, SeqAccess,
    value::{StrDeserializer, UsizeDeserializer},
};

use super::{Fault, SPANNED};
use crate::config::{Span, node::Node, path::Step, span::Spanned};

pub(super) struct Items<'de>(pub(super) Enumerate<slice::Iter<'de, Node>>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some((index, item)) = self.0.next() else {
            return Ok(None);
        };
        seed.deserialize(item)
            .map(Some)
            .map_err(|fault| fault.within(item.span).below(Step::Item(index)))
    }
}

pub(super) struct Pairs<'de> {
    entries: slice::Iter<'de, (Spanned<String>, Node)>,
    entry: Option<&'de (Spanned<String>, Node)>,
}

impl<'de> Pairs<'de> {
    pub(super) fn new(entries: &'de [(Spanned<String>, Node)]) -> Self {
        Self {
            entries: entries.iter(),
            entry: None,
        }
    }
}

impl<'de> MapAccess<'de> for Pairs<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.entry = self.entries.next();
        let Some((key, _)) = self.entry else {
            return Ok(None);
        };
        seed.deserialize(Key(key))
            .map(Some)
            .map_err(|fault| fault.within(key.span))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let entry = self
            .entry
            .take()
            .ok_or_else(|| serde::de::Error::custom("is a value without its key"));
        let (key, value) = entry?;
        seed.deserialize(value)
            .map_err(|fault: Fault| fault.within(value.span).below(Step::Key(key.value.clone())))
    }
}

/// A key, which may be asked for with or without its place.
struct Key<'de>(&'de Spanned<String>);

impl<'de> serde::Deserializer<'de> for Key<'de> {
    type Error = Fault;

    fn deserialize_any<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(&self.0.value)
    }

    fn deserialize_newtype_struct<V: serde::de::Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let text: StrDeserializer<'de, Fault> = self.0.value.as_str().into_deserializer();
        if name == SPANNED {
            visitor.visit_seq(Triple::new(self.0.span, text))
        } else {
            visitor.visit_newtype_struct(text)
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A place and what stands there: start, end, value.
pub(super) struct Triple<D> {
    span: Span,
    value: Option<D>,
    given: u8,
}

impl<D> Triple<D> {
    pub(super) fn new(span: Span, value: D) -> Self {
        Self {
            span,
            value: Some(value),
            given: 0,
        }
    }
}

impl<'de, D: serde::Deserializer<'de, Error = Fault>> SeqAccess<'de> for Triple<D> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        self.given += 1;
        let bound = |offset: usize| -> UsizeDeserializer<Fault> { offset.into_deserializer() };
        match self.given {
            1 => seed.deserialize(bound(self.span.start)).map(Some),
            2 => seed.deserialize(bound(self.span.end)).map(Some),
            _ => match self.value.take() {
                Some(value) => seed
                    .deserialize(value)
                    .map(Some)
                    .map_err(|fault| fault.within(self.span)),
                None => Ok(None),
            },
        }
    }
}
