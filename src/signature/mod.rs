//! A tool's JSON Schemas as a Python stub, and what they forbid for certain.
//!
//! Pure. The schemas are a server's, so they may be recursive, remote, empty or enormous: every walk
//! is bounded in depth, visits and length, and where a bound or a reference is in the way the stub
//! says less (`Any`), never something wrong. Every stub is valid Python.

mod python;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use self::python::{is_identifier, is_keyword, literal, quoted};

/// A stub beyond this many bytes is given with less detail.
const MAX_STUB: usize = 6_000;
/// The same for the one line that errors and lists show.
const MAX_LINE: usize = 600;
const MAX_DEPTH: usize = 8;
const MAX_VISITS: usize = 2_000;
const MAX_PARAMETERS: usize = 60;
/// Beyond these a type is shown by its kind alone.
const MAX_LITERALS: usize = 24;
const MAX_UNION: usize = 8;
const MAX_TYPE: usize = 300;
const MAX_DEFAULT: usize = 60;

/// What a tool gives back, as far as its server declares it.
#[derive(Debug, Clone, Copy)]
pub enum Returns<'a> {
    Undeclared,
    /// The value matches this schema.
    Value(&'a Value),
    /// The value is what stands under `result`.
    Unwrapped(&'a Value),
    /// As `Unwrapped`, probably: the server does not say that it wraps.
    PerhapsUnwrapped(&'a Value),
}

/// The whole stub, with the `TypedDict`s that it needs.
pub fn stub(name: &str, input: &Value, returns: Returns<'_>) -> String {
    let whole = render(name, input, returns, Detail::Classes);
    if whole.len() <= MAX_STUB {
        return whole;
    }
    within(MAX_STUB, name, input, returns)
}

/// The stub on one line, nested objects as plain dicts.
pub fn line(name: &str, input: &Value, returns: Returns<'_>) -> String {
    within(MAX_LINE, name, input, returns)
}

fn within(limit: usize, name: &str, input: &Value, returns: Returns<'_>) -> String {
    [Detail::Types, Detail::Names]
        .into_iter()
        .map(|detail| render(name, input, returns, detail))
        .find(|line| line.len() <= limit)
        .unwrap_or_else(|| {
            format!(
                "async def {name}(**arguments: Any) -> Any: ...  # too large to show: see inputSchema"
            )
        })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Classes,
    Types,
    Names,
}

/// What the input schema decides about the names of arguments. What it leaves open, or what a
/// server may well see differently, is not in here.
#[derive(Debug, PartialEq, Eq)]
pub struct Parameters {
    pub required: Vec<String>,
    /// `None`: others are not forbidden.
    pub allowed: Option<Vec<String>>,
}

pub fn parameters(input: &Value) -> Parameters {
    let empty = Map::new();
    let properties = input
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    // A default that the server fills in makes "required" a statement about what it sees then.
    let has_default = |name: &str| {
        properties
            .get(name)
            .is_some_and(|schema| schema.get("default").is_some())
    };
    let required = input
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| !has_default(name))
        .map(str::to_owned)
        .collect();
    let closed = input.get("additionalProperties") == Some(&Value::Bool(false));
    let may_add = [
        "$ref",
        "$dynamicRef",
        "allOf",
        "anyOf",
        "oneOf",
        "if",
        "dependentSchemas",
        "patternProperties",
    ];
    let opened = may_add.iter().any(|key| input.get(key).is_some());
    Parameters {
        required,
        allowed: (closed && !opened).then(|| properties.keys().cloned().collect()),
    }
}

/// Parameters whose own names end like a keyword with the underscore that stands for it (`from_`):
/// such an argument keeps its name.
pub fn underscored(input: &Value) -> Vec<String> {
    let own = |name: &&String| name.strip_suffix('_').is_some_and(is_keyword);
    input
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys)
        .filter(own)
        .cloned()
        .collect()
}

fn render(name: &str, input: &Value, returns: Returns<'_>, detail: Detail) -> String {
    let mut classes = Vec::new();
    let mut taken = BTreeSet::new();
    let mut comments = Vec::new();

    let mut writer = Writer::new(input, detail, &mut classes, &mut taken);
    let parameters = writer.parameters(input, &mut comments);
    let result = match returns {
        Returns::Undeclared => "Any".to_owned(),
        Returns::Value(schema) => {
            Writer::new(schema, detail, &mut classes, &mut taken).type_of(schema, "Result", 0)
        }
        Returns::Unwrapped(schema) | Returns::PerhapsUnwrapped(schema) => {
            let inner = schema.pointer("/properties/result").unwrap_or(&Value::Null);
            Writer::new(schema, detail, &mut classes, &mut taken).type_of(inner, "Result", 0)
        }
    };
    if matches!(returns, Returns::PerhapsUnwrapped(_)) {
        comments.push("perhaps {\"result\": ...} around it: print one value first".to_owned());
    }
    let mut text = String::new();
    for class in classes {
        text.push_str(&class);
        text.push('\n');
    }
    text.push_str(&format!("async def {name}({parameters}) -> {result}: ..."));
    if !comments.is_empty() {
        text.push_str(&format!("  # {}", comments.join("; ")));
    }
    text
}

/// The properties of an object schema, with those of the schemas that it is made of.
#[derive(Default)]
struct Properties<'a> {
    schemas: Vec<(&'a str, &'a Value)>,
    required: BTreeSet<&'a str>,
}

struct Writer<'a, 'w> {
    root: &'a Value,
    detail: Detail,
    /// The classes so far, each after those that it uses.
    classes: &'w mut Vec<String>,
    taken: &'w mut BTreeSet<String>,
    visits: usize,
    /// References that are known or being followed, with the type that stands for them.
    references: BTreeMap<&'a str, String>,
}

impl<'a, 'w> Writer<'a, 'w> {
    fn new(
        root: &'a Value,
        detail: Detail,
        classes: &'w mut Vec<String>,
        taken: &'w mut BTreeSet<String>,
    ) -> Self {
        Self {
            root,
            detail,
            classes,
            taken,
            visits: 0,
            references: BTreeMap::new(),
        }
    }

    fn parameters(&mut self, input: &'a Value, comments: &mut Vec<String>) -> String {
        let mut found = Properties::default();
        self.collect(input, &mut found, 0);
        let named_at_all = input.get("properties").is_some() || !found.schemas.is_empty();
        if !named_at_all {
            comments.push("the schema names no parameters".to_owned());
            return "**arguments: Any".to_owned();
        }
        let names: BTreeSet<&str> = found.schemas.iter().map(|(name, _)| *name).collect();
        // Those that must be given come first, each group in the schema's own order.
        found.schemas.sort_by_key(|(name, schema)| {
            !found.required.contains(name) || schema.get("default").is_some()
        });
        let (mut parts, mut dictionary) = (Vec::new(), Vec::new());
        for (name, schema) in found.schemas.iter().take(MAX_PARAMETERS) {
            let kind = self.type_of(schema, name, 1);
            let required = found.required.contains(name);
            let escaped = format!("{name}_");
            if is_keyword(name) && !names.contains(escaped.as_str()) {
                parts.push(parameter(&escaped, &kind, required, schema));
            } else if is_identifier(name) && !is_keyword(name) {
                parts.push(parameter(name, &kind, required, schema));
            } else {
                let need = if required { "required" } else { "optional" };
                dictionary.push(format!("{}: {kind} ({need})", quoted(name)));
            }
        }
        let left_out = found.schemas.len().saturating_sub(MAX_PARAMETERS);
        if !dictionary.is_empty() {
            comments.push(format!(
                "pass as **{{\"name\": value}}, being no Python names: {}",
                dictionary.join(", ")
            ));
        }
        if left_out > 0 {
            comments.push(format!("{left_out} more parameters: see inputSchema"));
        }
        let mut all = String::new();
        if !parts.is_empty() {
            all = format!("*, {}", parts.join(", "));
        }
        if left_out > 0 || !dictionary.is_empty() {
            let comma = if all.is_empty() { "" } else { ", " };
            all.push_str(&format!("{comma}**others: Any"));
        }
        all
    }

    /// Takes what one visit costs; `false` when there have been enough.
    fn visit(&mut self, depth: usize) -> bool {
        self.visits += 1;
        depth <= MAX_DEPTH && self.visits <= MAX_VISITS
    }

    fn resolve(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        self.root.pointer(pointer)
    }

    fn collect(&mut self, schema: &'a Value, into: &mut Properties<'a>, depth: usize) {
        if !self.visit(depth) {
            return;
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, schema) in properties {
                if into.schemas.len() <= 4 * MAX_PARAMETERS
                    && !into.schemas.iter().any(|(known, _)| known == name)
                {
                    into.schemas.push((name, schema));
                }
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        into.required
            .extend(required.into_iter().flatten().filter_map(Value::as_str));
        if let Some(target) = reference_of(schema).and_then(|to| self.resolve(to)) {
            self.collect(target, into, depth + 1);
        }
        for part in list(schema, "allOf") {
            self.collect(part, into, depth + 1);
        }
        // What only some alternatives have, nobody has to give.
        for part in list(schema, "anyOf").chain(list(schema, "oneOf")) {
            let required = into.required.clone();
            self.collect(part, into, depth + 1);
            into.required = required;
        }
    }

    fn type_of(&mut self, schema: &'a Value, hint: &str, depth: usize) -> String {
        if !self.visit(depth) || self.detail == Detail::Names {
            return "Any".to_owned();
        }
        let mut kind = self.plain_type(schema, hint, depth);
        if kind.len() > MAX_TYPE {
            kind = "Any".to_owned();
        }
        if schema.get("nullable") == Some(&Value::Bool(true)) {
            kind = union([kind, "None".to_owned()]);
        }
        kind
    }

    fn plain_type(&mut self, schema: &'a Value, hint: &str, depth: usize) -> String {
        if let Some(reference) = reference_of(schema) {
            return self.referenced(reference, hint, depth);
        }
        if let Some(value) = schema.get("const") {
            return literals([value]);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return literals(values);
        }
        let hint = schema.get("title").and_then(Value::as_str).unwrap_or(hint);
        match schema.get("type") {
            Some(Value::String(kind)) => self.named_type(kind, schema, hint, depth),
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str).take(MAX_UNION);
                union(kinds.map(|kind| self.named_type(kind, schema, hint, depth)))
            }
            _ => self.untyped(schema, hint, depth),
        }
    }

    fn untyped(&mut self, schema: &'a Value, hint: &str, depth: usize) -> String {
        if schema.get("properties").is_some() {
            return self.object(schema, hint, depth);
        }
        let choices: Vec<&Value> = list(schema, "anyOf").chain(list(schema, "oneOf")).collect();
        if choices.len() > MAX_UNION {
            return "Any".to_owned();
        }
        if !choices.is_empty() {
            return union(
                choices
                    .into_iter()
                    .map(|choice| self.type_of(choice, hint, depth + 1)),
            );
        }
        if let Some(part) = list(schema, "allOf").next() {
            let mut found = Properties::default();
            self.collect(schema, &mut found, depth);
            return if found.schemas.is_empty() {
                self.type_of(part, hint, depth + 1)
            } else {
                self.object(schema, hint, depth)
            };
        }
        if schema.get("items").is_some() || schema.get("prefixItems").is_some() {
            return self.array(schema, hint, depth);
        }
        "Any".to_owned()
    }

    fn named_type(&mut self, kind: &str, schema: &'a Value, hint: &str, depth: usize) -> String {
        match kind {
            "string" => "str".to_owned(),
            "integer" => "int".to_owned(),
            "number" => "float".to_owned(),
            "boolean" => "bool".to_owned(),
            "null" => "None".to_owned(),
            "array" => self.array(schema, hint, depth),
            "object" => self.object(schema, hint, depth),
            _ => "Any".to_owned(),
        }
    }

    fn array(&mut self, schema: &'a Value, hint: &str, depth: usize) -> String {
        let items: Vec<&Value> = match schema.get("items") {
            Some(Value::Array(items)) => items.iter().collect(),
            Some(items) => list(schema, "prefixItems").chain([items]).collect(),
            None => list(schema, "prefixItems").collect(),
        };
        if items.is_empty() || items.len() > MAX_UNION {
            return "list[Any]".to_owned();
        }
        let hint = singular(hint);
        let inner = union(
            items
                .into_iter()
                .map(|item| self.type_of(item, &hint, depth + 1)),
        );
        format!("list[{inner}]")
    }

    fn object(&mut self, schema: &'a Value, hint: &str, depth: usize) -> String {
        let mut found = Properties::default();
        self.collect(schema, &mut found, depth);
        if found.schemas.is_empty() {
            return match schema.get("additionalProperties") {
                Some(values @ Value::Object(_)) => {
                    format!("dict[str, {}]", self.type_of(values, hint, depth + 1))
                }
                _ => "dict[str, Any]".to_owned(),
            };
        }
        if self.detail != Detail::Classes || found.schemas.len() > 2 * MAX_PARAMETERS {
            return "dict[str, Any]".to_owned();
        }
        let name = self.class_name(hint);
        self.class(&name, &found, depth);
        name
    }

    fn class(&mut self, name: &str, found: &Properties<'a>, depth: usize) {
        let mut members = Vec::new();
        for (key, schema) in &found.schemas {
            let mut kind = self.type_of(schema, key, depth + 1);
            if !found.required.contains(key) {
                kind = format!("NotRequired[{kind}]");
            }
            members.push((*key, kind));
        }
        let plain = members
            .iter()
            .all(|(key, _)| is_identifier(key) && !is_keyword(key));
        let lines: Vec<String> = members
            .iter()
            .map(|(key, kind)| match plain {
                true => format!("    {key}: {kind}"),
                false => format!("{}: {kind}", quoted(key)),
            })
            .collect();
        self.classes.push(match plain {
            true => format!("class {name}(TypedDict):\n{}\n", lines.join("\n")),
            false => format!("{name} = TypedDict(\"{name}\", {{{}}})\n", lines.join(", ")),
        });
    }

    fn referenced(&mut self, reference: &'a str, hint: &str, depth: usize) -> String {
        if let Some(known) = self.references.get(reference) {
            return known.clone();
        }
        let Some(target) = self.resolve(reference) else {
            return "Any".to_owned(); // elsewhere, and never fetched
        };
        let mut found = Properties::default();
        if self.detail == Detail::Classes && reference_of(target).is_none() {
            self.collect(target, &mut found, depth);
        }
        let is_class = !found.schemas.is_empty()
            && found.schemas.len() <= 2 * MAX_PARAMETERS
            && target.get("enum").is_none()
            && list(target, "anyOf")
                .chain(list(target, "oneOf"))
                .next()
                .is_none()
            && matches!(
                target.get("type").map(Value::as_str),
                None | Some(Some("object"))
            );
        if !is_class {
            self.references.insert(reference, "Any".to_owned());
            let last = reference.rsplit('/').next().filter(|part| *part != "#");
            let kind = self.type_of(target, last.unwrap_or(hint), depth + 1);
            self.references.insert(reference, kind.clone());
            return kind;
        }
        let last = reference.rsplit('/').next().unwrap_or(hint);
        let title = target.get("title").and_then(Value::as_str);
        let name = self.class_name(title.unwrap_or(if last == "#" { hint } else { last }));
        // Until the class stands, what refers to it does so by its name in quotes.
        self.references.insert(reference, format!("\"{name}\""));
        self.class(&name, &found, depth);
        self.references.insert(reference, name.clone());
        name
    }

    /// A class name that nothing else has, from whatever the schema calls the thing.
    fn class_name(&mut self, hint: &str) -> String {
        const RESERVED: [&str; 12] = [
            "Any",
            "Literal",
            "NotRequired",
            "TypedDict",
            "None",
            "True",
            "False",
            "Str",
            "Int",
            "Float",
            "Dict",
            "List",
        ];
        let mut name = String::new();
        for word in hint.split(|c: char| !c.is_ascii_alphanumeric()) {
            let mut letters = word.chars();
            if let Some(first) = letters.next() {
                name.push(first.to_ascii_uppercase());
                name.extend(letters);
            }
        }
        name.truncate(40);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || RESERVED.contains(&&*name) {
            name.insert_str(0, "Object");
        }
        let mut unique = name.clone();
        let mut number = 2;
        while !self.taken.insert(unique.clone()) {
            unique = format!("{name}{number}");
            number += 1;
        }
        unique
    }
}

fn reference_of(schema: &Value) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str)
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn parameter(name: &str, kind: &str, required: bool, schema: &Value) -> String {
    match schema.get("default") {
        Some(value) => {
            let value = literal(value).filter(|text| text.len() <= MAX_DEFAULT);
            format!("{name}: {kind} = {}", value.as_deref().unwrap_or("..."))
        }
        None if required => format!("{name}: {kind}"),
        None => format!("{name}: {kind} = ..."),
    }
}

/// Each kind once, `None` last.
fn union(kinds: impl IntoIterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    let mut none = false;
    for kind in kinds {
        if kind == "Any" {
            return kind;
        }
        let rest = kind.strip_suffix(" | None");
        none |= rest.is_some() || kind == "None";
        let kind = rest.unwrap_or(&kind).to_owned();
        if kind != "None" && !distinct.contains(&kind) {
            distinct.push(kind);
        }
    }
    if none {
        distinct.push("None".to_owned());
    }
    match distinct.len() {
        0 => "Any".to_owned(),
        // `"Name" | None` would be an operation on a string.
        _ if distinct.iter().any(|kind| kind.starts_with('"')) => {
            format!("\"{}\"", distinct.join(" | ").replace('"', ""))
        }
        _ => distinct.join(" | "),
    }
}

fn literals<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let values: Vec<&Value> = values.into_iter().take(MAX_LITERALS + 1).collect();
    let simple = |value: &&Value| match value {
        Value::String(_) | Value::Bool(_) => true,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        _ => false,
    };
    let given: Vec<&Value> = values.iter().copied().filter(|v| !v.is_null()).collect();
    let none = (given.len() < values.len()).then(|| "None".to_owned());
    let texts: Vec<String> = given
        .iter()
        .copied()
        .filter(simple)
        .filter_map(literal)
        .collect();
    let shown = format!("Literal[{}]", texts.join(", "));
    let fits = texts.len() == given.len()
        && values.len() <= MAX_LITERALS
        && shown.len() <= MAX_TYPE
        && !texts.is_empty();
    if fits {
        return union([shown].into_iter().chain(none));
    }
    union(
        given
            .into_iter()
            .map(kind_of)
            .map(str::to_owned)
            .chain(none),
    )
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "None",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() || number.is_u64() => "int",
        Value::Number(_) => "float",
        Value::String(_) => "str",
        Value::Array(_) => "list[Any]",
        Value::Object(_) => "dict[str, Any]",
    }
}

fn singular(name: &str) -> String {
    if let Some(stem) = name.strip_suffix("ies") {
        return format!("{stem}y");
    }
    match name.strip_suffix('s') {
        Some(stem) if !stem.ends_with('s') && stem.len() > 2 => stem.to_owned(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
