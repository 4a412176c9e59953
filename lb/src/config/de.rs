//! Reads a [`Node`] tree into the types of [`super::raw`].
//!
//! Messages are made here rather than by a parser, because only here are the place, the key and what the file says
//! known together, and because a value from the environment must not be repeated.

mod access;
mod fault;

use serde::{
    Deserialize,
    de::{Deserializer, IntoDeserializer as _, Visitor, value::StrDeserializer},
};

use self::access::{Items, Pairs, Triple};
pub(super) use self::fault::{Fault, FaultKind};
use super::{
    node::{Form, Node, Scalar},
    span::SPANNED,
};

/// Reads `root` as a `T`, or gives the first fault.
pub(super) fn read<'de, T: Deserialize<'de>>(root: &'de Node) -> Result<T, Fault> {
    T::deserialize(root).map_err(|fault| fault.within(root.span))
}

impl Node {
    fn scalar(&self, must: &'static str) -> Result<&Scalar, Fault> {
        match &self.form {
            Form::Scalar(scalar) if !scalar.is_null() => Ok(scalar),
            _ => Err(self.mismatch(must)),
        }
    }

    fn mismatch(&self, must: &'static str) -> Fault {
        let is = match &self.form {
            Form::List(_) => "a list",
            Form::Map(_) => "a block of keys",
            Form::Scalar(scalar) if scalar.is_null() => "nothing",
            Form::Scalar(scalar) if !scalar.plain => "text in quotes",
            Form::Scalar(scalar) if scalar.text.parse::<f64>().is_ok() => "a number",
            Form::Scalar(scalar) if matches!(scalar.text.as_str(), "true" | "false") => "a flag",
            Form::Scalar(_) => "text",
        };
        Fault::new(FaultKind::Type { must, is }).within(self.span)
    }

    /// A number in plain digits: no sign but `-`, no hexadecimal, no infinity.
    fn number<T: std::str::FromStr>(&self, must: &'static str, allowed: &[u8]) -> Result<T, Fault> {
        let scalar = self.scalar(must)?;
        let digits = scalar.plain
            && scalar
                .text
                .bytes()
                .all(|b| b.is_ascii_digit() || allowed.contains(&b));
        scalar
            .text
            .parse()
            .ok()
            .filter(|_| digits)
            .ok_or_else(|| self.mismatch(must))
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.form {
            Form::List(_) => self.deserialize_seq(visitor),
            Form::Map(_) => self.deserialize_map(visitor),
            Form::Scalar(scalar) if scalar.is_null() => visitor.visit_unit(),
            Form::Scalar(scalar) => match (scalar.plain, scalar.text.parse()) {
                (true, Ok(number)) => visitor.visit_u64(number),
                _ => visitor.visit_str(&scalar.text),
            },
        }
        .map_err(|fault| fault.within(self.span))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let scalar = self.scalar(FLAG)?;
        match scalar.text.as_str() {
            "true" if scalar.plain => visitor.visit_bool(true),
            "false" if scalar.plain => visitor.visit_bool(false),
            _ => Err(self.mismatch(FLAG)),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_u64(self.number("a whole number", b"")?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_f64(self.number("a number", b"-.eE")?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(&self.scalar("text")?.text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.is_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if name == SPANNED {
            visitor.visit_seq(Triple::new(self.span, self))
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.form {
            Form::List(items) => visitor.visit_seq(Items(items.iter().enumerate())),
            Form::Map(_) | Form::Scalar(_) => Err(self.mismatch("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.form {
            Form::Map(entries) => visitor
                .visit_map(Pairs::new(entries))
                .map_err(|fault| fault.within(self.span)),
            Form::List(_) | Form::Scalar(_) => Err(self.mismatch("a block of keys")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let word: StrDeserializer<'_, Fault> = self.scalar("one word")?.text.as_str().into_deserializer();
        visitor.visit_enum(word).map_err(|fault| fault.within(self.span))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

const FLAG: &str = "true or false";

#[cfg(test)]
mod tests;
