//! Reading typed values out of the tree without stopping at the first mistake.
//!
//! serde gives up at the first error; a report on a whole file cannot. So a value that cannot be
//! read leaves its mistake behind and a hole in its place ([`Given::Unusable`]), and reading goes
//! on. [`section!`] and [`choice!`] declare a mapping or a set of names once: from that one table
//! come the type, its reader, its defaults and its JSON Schema.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::mistake::{Mistakes, Place, did_you_mean, nearest, quoted, shortened};
use super::tree::{Node, Position, Value};

/// A type that a node of the file can be read as.
pub(super) trait Read: Sized {
    /// The value, or `None` once `mistakes` says why there is none.
    fn read(node: &Node, place: &Place, mistakes: &mut Mistakes) -> Option<Self>;
}

/// A value and where it stands.
pub(super) struct Found<T> {
    pub(super) place: Place,
    pub(super) value: T,
}

/// What a key was given.
#[derive(Default)]
pub(super) enum Given<T> {
    #[default]
    Absent,
    /// Something stands there and has already been reported.
    Unusable(Place),
    Found(Found<T>),
}

impl<T> Given<T> {
    pub(super) fn or(self, default: T) -> T {
        self.found().map_or(default, |found| found.value)
    }

    pub(super) fn found(self) -> Option<Found<T>> {
        match self {
            Self::Found(found) => Some(found),
            Self::Absent | Self::Unusable(_) => None,
        }
    }

    pub(super) fn value(self) -> Option<T> {
        self.found().map(|found| found.value)
    }

    /// Where the key stands, if it is there.
    pub(super) fn place(&self) -> Option<&Place> {
        match self {
            Self::Found(found) => Some(&found.place),
            Self::Unusable(place) => Some(place),
            Self::Absent => None,
        }
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<T: Default> Given<Option<T>> {
    pub(super) fn or_default(self) -> T {
        self.value().flatten().unwrap_or_default()
    }
}

impl Node {
    /// The node as the subject of a mistake. Only for keys whose values are no secrets.
    pub(super) fn shown(&self) -> String {
        match &self.value {
            Value::Plain(spelling) => format!("found `{}`.", shortened(spelling)),
            Value::Text(text) => format!("found the text {}.", quoted(text)),
            Value::Null | Value::List(_) | Value::Mapping(_) => self.kind(),
        }
    }

    /// What kind of node it is, without a word of what it holds.
    pub(super) fn kind(&self) -> String {
        let kind = match &self.value {
            Value::Null => "nothing",
            Value::Plain(_) => "a number or a boolean",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Mapping(_) => "a mapping",
        };
        format!("found {kind}.")
    }
}

/// The entries of a mapping by the text of their keys. Keys that are no texts and repeated keys
/// are mistakes, and left out.
fn entries<'t>(
    node: &'t Node,
    place: &Place,
    wanted: &str,
    mistakes: &mut Mistakes,
) -> Option<Vec<(&'t str, Place, &'t Node)>> {
    let Value::Mapping(mapping) = &node.value else {
        mistakes.add(place, node.kind(), wanted);
        return None;
    };
    let mut entries: Vec<(&str, Place, &Node)> = Vec::with_capacity(mapping.len());
    for (key, value) in mapping {
        let (Value::Text(name) | Value::Plain(name)) = &key.value else {
            let at = Place {
                value: key.at,
                ..place.clone()
            };
            mistakes.add(
                &at,
                format!("{} as a key.", key.kind().trim_end_matches('.')),
                wanted,
            );
            continue;
        };
        let here = place.entry(name, key.at, value.at);
        match entries.iter().find(|(earlier, ..)| earlier == name) {
            Some((_, earlier, _)) => mistakes.add(
                &here.at_key(),
                format!(
                    "this key is here a second time; the first is on line {}.",
                    earlier.key.line
                ),
                "Keep one of the two.",
            ),
            None => entries.push((name, here, value)),
        }
    }
    Some(entries)
}

/// The entries of a mapping whose keys are known beforehand.
pub(super) struct Keys<'t>(Vec<(&'t str, Place, &'t Node)>);

impl<'t> Keys<'t> {
    /// Every key outside `known` is a mistake. One that must be a misspelling of a key that is not
    /// there is read in its stead, so that the key does not count as missing too, and mistakes in
    /// what it was given are not put off until it is spelt right.
    pub(super) fn of(
        node: &'t Node,
        place: &Place,
        known: &[&'t str],
        mistakes: &mut Mistakes,
    ) -> Option<Self> {
        let keys = known.join(", ");
        let wanted = format!("Write a mapping; its keys are: {keys}.");
        let written = entries(node, place, &wanted, mistakes)?;
        let (mut entries, unknown): (Vec<_>, Vec<_>) = written
            .into_iter()
            .partition(|(name, ..)| known.contains(name));
        for (name, here, value) in unknown {
            let meant = nearest(name, known);
            let fact = format!("there is no such key.{}", did_you_mean(meant));
            mistakes.add(&here.at_key(), fact, format!("The keys here are: {keys}."));
            if let Some(meant) = meant
                && !entries.iter().any(|(name, ..)| *name == meant)
            {
                entries.push((meant, here, value));
            }
        }
        Some(Self(entries))
    }

    pub(super) fn read<T: Read>(&self, key: &str, mistakes: &mut Mistakes) -> Given<T> {
        match self.0.iter().find(|(name, ..)| *name == key) {
            None => Given::Absent,
            Some((_, place, node)) => match T::read(node, place, mistakes) {
                Some(value) => Given::Found(Found {
                    place: place.clone(),
                    value,
                }),
                None => Given::Unusable(place.clone()),
            },
        }
    }
}

/// Declares a mapping: `key: Kind` or `key: Kind = default`, each with its help as a doc comment.
macro_rules! section {
    ($(#[$about:meta])* $Section:ident { $(
        $(#[$help:meta])*
        $key:ident: $Kind:ty $(= $default:expr)?,
    )* }) => {
        #[derive(schemars::JsonSchema)]
        #[schemars(deny_unknown_fields, transform = $crate::config::read::all_optional)]
        $(#[$about])*
        pub(super) struct $Section { $(
            $(#[$help])*
            $(#[schemars(extend("default" = $default))])?
            pub(super) $key: section!(@type $Kind $(, $default)?),
        )* }

        impl Default for $Section {
            fn default() -> Self {
                Self { $($key: section!(@absent $($default)?),)* }
            }
        }

        impl $crate::config::read::Read for $Section {
            fn read(
                node: &$crate::config::tree::Node,
                place: &$crate::config::mistake::Place,
                mistakes: &mut $crate::config::mistake::Mistakes,
            ) -> Option<Self> {
                let known = &[$(stringify!($key)),*];
                let keys = $crate::config::read::Keys::of(node, place, known, mistakes)?;
                Some(Self { $(
                    $key: section!(@read keys.read(stringify!($key), mistakes) $(, $default)?),
                )* })
            }
        }
    };
    (@type $Kind:ty) => { $crate::config::read::Given<$Kind> };
    (@type $Kind:ty, $default:expr) => { $Kind };
    (@absent) => { $crate::config::read::Given::Absent };
    (@absent $default:expr) => { $default.into() };
    (@read $given:expr) => { $given };
    (@read $given:expr, $default:expr) => { $given.or($default.into()) };
}
pub(super) use section;

/// Declares a key's closed set of values: `Variant = "name"`, each with its help.
macro_rules! choice {
    ($(#[$about:meta])* $visible:vis $Choice:ident { $(
        $(#[$help:meta])*
        $Variant:ident = $name:literal,
    )* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, schemars::JsonSchema)]
        $visible enum $Choice { $(
            $(#[$help])*
            #[schemars(rename = $name)]
            $Variant,
        )* }

        impl $Choice {
            /// The value as the file writes it.
            $visible fn as_str(self) -> &'static str {
                match self { $(Self::$Variant => $name,)* }
            }
        }

        impl serde::Serialize for $Choice {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl $crate::config::read::Read for $Choice {
            fn read(
                node: &$crate::config::tree::Node,
                place: &$crate::config::mistake::Place,
                mistakes: &mut $crate::config::mistake::Mistakes,
            ) -> Option<Self> {
                let choices = &[$(($name, Self::$Variant)),*];
                $crate::config::read::one_of(node, place, choices, mistakes)
            }
        }
    };
}
pub(super) use choice;

/// The choice whose name the node is.
pub(super) fn one_of<T: Copy>(
    node: &Node,
    place: &Place,
    choices: &[(&str, T)],
    mistakes: &mut Mistakes,
) -> Option<T> {
    let written = match &node.value {
        Value::Text(text) | Value::Plain(text) => text,
        Value::Null | Value::List(_) | Value::Mapping(_) => "",
    };
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == written) {
        return Some(*choice);
    }
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    let fact = node.shown() + &did_you_mean(nearest(written, &names));
    mistakes.add(place, fact, format!("Write one of: {}.", names.join(", ")));
    None
}

/// For a section's schema: readers report what is missing, each in its own words.
pub(super) fn all_optional(schema: &mut Schema) {
    schema.remove("required");
}

/// Null is as good as absent. Only for keys where nothing depends on the difference.
impl<T: Read> Read for Option<T> {
    fn read(node: &Node, place: &Place, mistakes: &mut Mistakes) -> Option<Self> {
        match node.value {
            Value::Null => Some(None),
            _ => T::read(node, place, mistakes).map(Some),
        }
    }
}

impl<T: Read> Read for Vec<Found<T>> {
    fn read(node: &Node, place: &Place, mistakes: &mut Mistakes) -> Option<Self> {
        let Value::List(items) = &node.value else {
            mistakes.add(
                place,
                node.kind(),
                "Write a list, one `- item` a line; `[]` is an empty one.",
            );
            return None;
        };
        let mut values = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let place = place.item(index, item.at);
            if let Some(value) = T::read(item, &place, mistakes) {
                values.push(Found { place, value });
            }
        }
        Some(values)
    }
}

/// A mapping whose keys the person chooses, in the order of the file.
pub(super) struct Entries<T>(pub(super) Vec<(String, Found<T>)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Read> Read for Entries<T> {
    fn read(node: &Node, place: &Place, mistakes: &mut Mistakes) -> Option<Self> {
        let wanted = "Write a mapping, one `name: value` a line; `{}` is an empty one.";
        let mut values = Vec::new();
        for (name, place, node) in entries(node, place, wanted, mistakes)? {
            if let Some(value) = T::read(node, &place, mistakes) {
                values.push((name.to_owned(), Found { place, value }));
            }
        }
        Some(Self(values))
    }
}

/// Gives a type a schema that stands where it is used, so that the schema's reader sees the key's
/// values at the key.
macro_rules! inline_schema {
    ([$($generics:tt)*] $Type:ty, $generator:ident => $schema:expr) => {
        impl<$($generics)*> JsonSchema for $Type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Type).into()
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}
pub(super) use inline_schema;

inline_schema!([T: JsonSchema] Given<T>, generator => generator.subschema_for::<T>());
inline_schema!([T: JsonSchema] Found<T>, generator => generator.subschema_for::<T>());
inline_schema!([T: JsonSchema] Entries<T>, generator => json_schema!({
    "type": "object",
    "additionalProperties": generator.subschema_for::<T>(),
}));

/// The place of the whole file.
pub(super) fn root(node: &Node) -> Place {
    let start = Position {
        line: node.at.line.max(1),
        column: node.at.column.max(1),
    };
    Place {
        path: String::new(),
        value: start,
        key: start,
    }
}
