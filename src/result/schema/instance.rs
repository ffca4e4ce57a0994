//! A value as the validator sees it: slices of the server's text rather than serde_json's tree,
//! which would take ten times as much memory as the text.

use std::borrow::Cow;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object, cmp, unique};
use serde_json::{Number, Value};

use super::super::compare::{Member, Tree};
use super::super::json::{Kind, decode, kind};
use super::MAX_QUOTED;

pub(super) struct TreeJson;

#[derive(Clone, Copy)]
pub(super) enum Instance<'a> {
    Tree(&'a Tree<'a>),
    /// The name of a property, itself checked by `propertyNames`.
    Name(&'a str),
}

impl Json for TreeJson {
    type Node<'a> = Instance<'a>;
    type PreparedKey = Box<[u8]>;
    type StringBuffer = ();

    fn prepare_key(key: &str) -> Self::PreparedKey {
        key.as_bytes().into()
    }

    fn with_string_node<T>(_: &mut (), string: &str, f: impl FnOnce(Instance<'_>) -> T) -> T {
        f(Instance::Name(string))
    }
}

impl<'a> Instance<'a> {
    /// The text of a scalar of this kind.
    fn scalar(self, expected: Kind) -> Option<&'a str> {
        match self {
            Self::Tree(Tree::Scalar(text)) if kind(text) == Some(expected) => Some(text),
            _ => None,
        }
    }
}

impl<'a> Node<'a, TreeJson> for Instance<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = Digits<'a>;

    fn as_object(&self) -> Option<Members<'a>> {
        match self {
            Self::Tree(Tree::Object(members)) => Some(Members(members)),
            _ => None,
        }
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        match self {
            Self::Tree(Tree::Array(elements)) => Some(Elements(elements)),
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self {
            Self::Name(name) => Some(Cow::Borrowed(name)),
            Self::Tree(_) => self.scalar(Kind::String).map(decode),
        }
    }

    fn as_number(&self) -> Option<Digits<'a>> {
        self.scalar(Kind::Number).map(Digits)
    }

    fn as_boolean(&self) -> Option<bool> {
        self.scalar(Kind::Bool).map(|text| text == "true")
    }

    fn is_null(&self) -> bool {
        self.scalar(Kind::Null).is_some()
    }

    fn json_type(&self) -> JsonType {
        match self {
            Self::Name(_) => JsonType::String,
            Self::Tree(Tree::Array(_)) => JsonType::Array,
            Self::Tree(Tree::Object(_)) => JsonType::Object,
            Self::Tree(Tree::Scalar(text)) => match kind(text) {
                Some(Kind::String) => JsonType::String,
                Some(Kind::Number) => JsonType::Number,
                Some(Kind::Bool) => JsonType::Boolean,
                _ => JsonType::Null,
            },
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match (self, expected) {
            (Self::Tree(Tree::Array(elements)), Value::Array(expected)) => {
                elements.len() == expected.len()
                    && elements
                        .iter()
                        .zip(expected)
                        .all(|(element, expected)| Self::Tree(element).equals_value(expected))
            }
            (Self::Tree(Tree::Object(members)), Value::Object(expected)) => {
                members.len() == expected.len()
                    && expected.iter().all(|(key, expected)| {
                        Members(members)
                            .get(&TreeJson::prepare_key(key))
                            .is_some_and(|value| value.equals_value(expected))
                    })
            }
            (_, Value::String(expected)) => self.as_string().is_some_and(|text| text == *expected),
            (_, Value::Number(expected)) => self
                .as_number()
                .is_some_and(|number| cmp::equal_numbers(&number, expected)),
            (_, Value::Bool(expected)) => self.as_boolean() == Some(*expected),
            (_, Value::Null) => self.is_null(),
            _ => false,
        }
    }

    /// Only errors ask for it, to quote it, so an instance that is too long to be quoted is
    /// replaced by another that is.
    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(match self {
            Self::Name(name) => Value::from(*name),
            Self::Tree(tree) if tree.is_larger_than(MAX_QUOTED) => {
                Value::from(" ".repeat(MAX_QUOTED + 1))
            }
            Self::Tree(tree) => tree.to_value(),
        })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        match self {
            Self::Tree(tree) => Some(NodeIdentity::new(std::ptr::from_ref(*tree).addr())),
            Self::Name(_) => None,
        }
    }
}

/// Sorted by key.
pub(super) struct Members<'a>(&'a [Member<'a>]);

impl<'a> Object<'a, TreeJson> for Members<'a> {
    type Node = Instance<'a>;
    type MemberName = Cow<'a, str>;
    type MembersIter = std::iter::Map<
        std::slice::Iter<'a, Member<'a>>,
        fn(&'a Member<'a>) -> (Cow<'a, str>, Instance<'a>),
    >;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &Box<[u8]>) -> Option<Instance<'a>> {
        let at = self.0.binary_search_by(|(name, _)| (**name).cmp(key));
        Some(Instance::Tree(&self.0.get(at.ok()?)?.1))
    }

    fn members(&self) -> Self::MembersIter {
        self.0
            .iter()
            .map(|(name, value)| (String::from_utf8_lossy(name), Instance::Tree(value)))
    }
}

pub(super) struct Elements<'a>(&'a [Tree<'a>]);

impl<'a> Array<'a, TreeJson> for Elements<'a> {
    type Node = Instance<'a>;
    type ElementsIter =
        std::iter::Map<std::slice::Iter<'a, Tree<'a>>, fn(&'a Tree<'a>) -> Instance<'a>>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Self::ElementsIter {
        self.0.iter().map(Instance::Tree)
    }

    fn is_unique(&self) -> bool {
        let values: Vec<_> = self.0.iter().map(Tree::to_value).collect();
        unique::is_unique(&values)
    }
}

/// A number as it was written.
pub(super) struct Digits<'a>(&'a str);

impl JsonNumber for Digits<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.parse().ok()
    }

    fn as_f64(&self) -> Option<f64> {
        self.0
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
    }

    fn as_str(&self) -> Cow<'_, str> {
        if self.is_written_as_integer() {
            Cow::Borrowed(self.0)
        } else {
            Cow::Owned(self.to_number().to_string())
        }
    }

    fn to_number(&self) -> Cow<'_, Number> {
        Cow::Owned(serde_json::from_str(self.0).unwrap_or_else(|_| 0.into()))
    }

    fn is_written_as_integer(&self) -> bool {
        !self.0.contains(['.', 'e', 'E'])
    }
}
