//! Lets an enum with settings be written by its bare name when the settings are the defaults.
//!
//! Not an untagged enum: those buffer what they read, and buffered numbers of arbitrary precision
//! no longer deserialize as integers.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};

struct OneVisitor<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for OneVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name, or a map of one name to its settings")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<T, E> {
        T::deserialize(serde_json::json!({ name: {} })).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

struct One<T>(T);

impl<'de, T: DeserializeOwned> serde::Deserialize<'de> for One<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(OneVisitor(PhantomData))
            .map(One)
    }
}

/// `fault: crash` or `fault: {crash: {…}}`.
pub(crate) fn name_or_map<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    deserializer.deserialize_any(OneVisitor(PhantomData))
}

/// The same for an optional field. (serde calls it only when the field is there.)
pub(crate) fn optional<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    name_or_map(deserializer).map(Some)
}

/// The same for a list.
pub(crate) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    struct ListVisitor<T>(PhantomData<T>);

    impl<'de, T: DeserializeOwned> Visitor<'de> for ListVisitor<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut items = Vec::new();
            while let Some(One(item)) = seq.next_element::<One<T>>()? {
                items.push(item);
            }
            Ok(items)
        }
    }

    deserializer.deserialize_seq(ListVisitor(PhantomData))
}

/// The schema of both spellings.
pub(crate) struct NameOrMap<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for NameOrMap<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("NameOr{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let map = T::json_schema(generator);
        // Each alternative of the map form is an object that requires exactly its own name.
        let names: Vec<serde_json::Value> = map
            .get("oneOf")
            .and_then(|alternatives| alternatives.as_array())
            .into_iter()
            .flatten()
            .filter_map(|alternative| alternative.pointer("/required/0").cloned())
            .collect();
        json_schema!({ "anyOf": [{ "type": "string", "enum": names }, map] })
    }
}
