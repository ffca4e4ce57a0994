//! What checking a value against a schema can cost at most, from the schema alone.
//!
//! The unit is one subschema checked at one place of a value. Keywords either add subschemas at the
//! same place (`allOf`, `$ref`), or apply some one level deeper (`properties`, `items`); a schema
//! of a few hundred bytes can double the former at every step.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// How long a chain of references and nested subschemas may be: compiling one recurses.
const MAX_CHAIN: usize = 400;
/// Each compiled pattern may hold a megabyte.
const MAX_PATTERNS: usize = 200;
/// How much of a reference is quoted, in characters.
const MAX_QUOTED: usize = 200;
/// A pattern that needs backtracking costs as much as this many checks.
const BACKTRACKING: u64 = 1000;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    /// The most checks that any single place of a value takes.
    pub(super) checks: u64,
    /// The most checks that are nested in each other at one place.
    pub(super) nesting: usize,
    /// In how many ways the schema applies itself again to one place a level deeper.
    again: u64,
    /// Whether failing at one place may mean to collect all errors below it.
    collects: bool,
}

impl Cost {
    /// The error says why the schema cannot be enforced.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        let mut walk = Walk::new(schema);
        let costs = walk.visit(schema, schema, false)?;
        Ok(Self {
            checks: costs.dearest(),
            nesting: walk
                .known
                .values()
                .map(|costs| costs.nesting)
                .max()
                .unwrap_or(1),
            again: walk
                .known
                .values()
                .map(|costs| costs.again)
                .max()
                .unwrap_or(0),
            collects: walk.collects,
        })
    }

    /// What it may cost to tell a violation beyond what it costs to find that there is one: there
    /// no verdict is remembered, so with recursion a place is checked for every way that leads to it.
    pub(super) fn in_detail(&self, nodes: u64, depth: usize) -> u64 {
        let once = nodes.saturating_mul(self.checks);
        match (self.again, self.collects) {
            (0 | 1, false) => 0,
            (0 | 1, true) => once,
            (again, _) => {
                let depth = u32::try_from(depth).unwrap_or(u32::MAX);
                once.saturating_mul(again.saturating_pow(depth))
            }
        }
    }
}

/// The costs of one subschema: at the place it is applied to, and at the dearest place below.
#[derive(Debug, Clone, Copy, Default)]
struct Costs {
    here: u64,
    below: u64,
    nesting: usize,
    again: u64,
}

impl Costs {
    const ONE: Self = Self {
        here: 1,
        below: 0,
        nesting: 1,
        again: 0,
    };

    fn add_here(&mut self, costs: Self) {
        self.here = self.here.saturating_add(costs.here);
        self.below = self.below.saturating_add(costs.below);
        self.nesting = self.nesting.max(costs.nesting + 1);
        self.again = self.again.saturating_add(costs.again);
    }

    /// For subschemas that all apply to the same places, one level deeper.
    fn add_below(&mut self, costs: Self) {
        self.below = self.below.saturating_add(costs.dearest());
        self.again = self.again.saturating_add(costs.again);
    }

    /// For subschemas of which only one applies to each place, one level deeper.
    fn or_below(&mut self, costs: Self) {
        self.below = self.below.max(costs.dearest());
        self.again = self.again.max(costs.again);
    }

    fn dearest(self) -> u64 {
        self.here.max(self.below)
    }
}

/// How a subschema is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Applied {
    /// To the same place.
    Here,
    /// To the same place, as one of several whose errors are all told when none matches.
    Alternative,
    /// One level deeper, to properties that no other such subschema applies to.
    Property,
    /// One level deeper, to properties whatever else applies to them.
    EachProperty,
    Element,
    EachElement,
    /// One level deeper, to what no other keyword of the schema applied to.
    Unevaluated,
}

impl Applied {
    fn is_deeper(self) -> bool {
        !matches!(self, Self::Here | Self::Alternative)
    }
}

#[derive(Default)]
struct Sum {
    here: Costs,
    property: Costs,
    each_property: Costs,
    element: Costs,
    each_element: Costs,
    unevaluated: Option<Costs>,
}

impl Sum {
    fn add(&mut self, applied: Applied, costs: Costs) {
        match applied {
            Applied::Here | Applied::Alternative => self.here.add_here(costs),
            Applied::Property => self.property.or_below(costs),
            Applied::EachProperty => self.each_property.add_below(costs),
            Applied::Element => self.element.or_below(costs),
            Applied::EachElement => self.each_element.add_below(costs),
            Applied::Unevaluated => self.unevaluated.get_or_insert_default().add_below(costs),
        }
    }

    fn total(mut self) -> Costs {
        let mut total = self.here;
        total.here = total.here.saturating_add(1);
        total.nesting = total.nesting.max(1);
        // No place is both a property and an element.
        self.each_property.add_below(self.property);
        self.each_element.add_below(self.element);
        self.each_property.or_below(self.each_element);
        total.add_below(self.each_property);
        if let Some(unevaluated) = self.unevaluated {
            // To know what is unevaluated, everything beside it is evaluated once more.
            total.here = total.here.saturating_mul(2);
            total.below = total.below.saturating_mul(2);
            total.again = total.again.saturating_mul(2);
            total.add_below(unevaluated);
        }
        total
    }
}

/// A subschema and the resource, the nearest schema with an identifier, that its references count from.
#[derive(Clone, Copy)]
struct Place<'a> {
    schema: &'a Value,
    resource: &'a Value,
}

struct Walk<'a> {
    root: &'a Value,
    id_key: &'static str,
    /// What references may name besides pointers: every identifier and every anchor.
    identifiers: Vec<(&'a str, Place<'a>)>,
    anchors: Vec<(&'a str, Place<'a>)>,
    known: HashMap<*const Value, Costs>,
    /// The subschemas being visited, and whether each applies one level deeper than the one before.
    path: Vec<(*const Value, bool)>,
    patterns: usize,
    collects: bool,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Value) -> Self {
        let is_draft_4 = root["$schema"]
            .as_str()
            .is_some_and(|dialect| dialect.contains("draft-04"));
        let mut walk = Self {
            root,
            id_key: if is_draft_4 { "id" } else { "$id" },
            identifiers: Vec::new(),
            anchors: Vec::new(),
            known: HashMap::new(),
            path: Vec::new(),
            patterns: 0,
            collects: false,
        };
        walk.collect_names();
        walk
    }

    fn collect_names(&mut self) {
        let mut open = vec![Place {
            schema: self.root,
            resource: self.root,
        }];
        while let Some(place) = open.pop() {
            let place = self.entered(place.schema, place.resource);
            match place.schema {
                Value::Object(keywords) => {
                    let id = keywords.get(self.id_key).and_then(Value::as_str);
                    match id.map(|id| (id, id.strip_prefix('#'))) {
                        Some((_, Some(anchor))) => self.anchors.push((anchor, place)),
                        Some((id, None)) => {
                            self.identifiers.push((id.trim_end_matches('#'), place))
                        }
                        None => {}
                    }
                    for keyword in ["$anchor", "$dynamicAnchor"] {
                        if let Some(name) = keywords.get(keyword).and_then(Value::as_str) {
                            self.anchors.push((name, place));
                        }
                    }
                    let resource = place.resource;
                    open.extend(keywords.values().map(|schema| Place { schema, resource }));
                }
                Value::Array(schemas) => {
                    let resource = place.resource;
                    open.extend(schemas.iter().map(|schema| Place { schema, resource }));
                }
                _ => {}
            }
        }
    }

    fn entered(&self, schema: &'a Value, resource: &'a Value) -> Place<'a> {
        let begins_resource = schema
            .get(self.id_key)
            .and_then(Value::as_str)
            .is_some_and(|id| !id.starts_with('#'));
        Place {
            schema,
            resource: if begins_resource { schema } else { resource },
        }
    }

    fn visit(
        &mut self,
        schema: &'a Value,
        resource: &'a Value,
        deeper: bool,
    ) -> Result<Costs, String> {
        let Value::Object(keywords) = schema else {
            return Ok(Costs::ONE);
        };
        let identity = std::ptr::from_ref(schema);
        if let Some(known) = self.known.get(&identity) {
            return Ok(*known);
        }
        if let Some(at) = self.path.iter().position(|(open, _)| *open == identity) {
            let descends = deeper || self.path[at + 1..].iter().any(|(_, deeper)| *deeper);
            if !descends {
                return Err("it contains itself without end".to_owned());
            }
            return Ok(Costs {
                again: 1,
                ..Costs::ONE
            });
        }
        if self.path.len() == MAX_CHAIN {
            return Err(format!(
                "its subschemas and references chain more than {MAX_CHAIN} deep"
            ));
        }
        self.path.push((identity, deeper));
        let place = self.entered(schema, resource);
        let mut sum = Sum::default();
        // Few locals here: this is what recurses.
        for (applied, part) in self.parts(keywords, place.resource, &mut sum)? {
            let costs = self.visit(part.schema, part.resource, applied.is_deeper())?;
            self.collects |= applied == Applied::Alternative && costs.below > 0;
            sum.add(applied, costs);
        }
        self.path.pop();
        let costs = sum.total();
        self.known.insert(identity, costs);
        Ok(costs)
    }

    /// The subschemas of a schema, and what its other keywords cost.
    fn parts(
        &mut self,
        keywords: &'a Map<String, Value>,
        resource: &'a Value,
        sum: &mut Sum,
    ) -> Result<Vec<(Applied, Place<'a>)>, String> {
        let mut parts = Vec::new();
        let place = |schema| Place { schema, resource };
        for (keyword, value) in keywords {
            let applied = match keyword.as_str() {
                "allOf" | "not" | "if" | "then" | "else" | "dependentSchemas" | "dependencies" => {
                    Applied::Here
                }
                "anyOf" | "oneOf" => Applied::Alternative,
                "properties" | "additionalProperties" => Applied::Property,
                "patternProperties" | "propertyNames" => Applied::EachProperty,
                "items" | "prefixItems" | "additionalItems" => Applied::Element,
                "contains" | "contentSchema" => Applied::EachElement,
                "unevaluatedItems" | "unevaluatedProperties" => Applied::Unevaluated,
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    if let Some(reference) = value.as_str() {
                        let targets = self.targets(reference, resource)?;
                        parts.extend(targets.into_iter().map(|target| (Applied::Here, target)));
                    }
                    continue;
                }
                "pattern" => {
                    sum.here.here += self.pattern(value.as_str().unwrap_or_default())?;
                    continue;
                }
                "enum" | "required" => {
                    sum.here.here += sixteenth(value.as_array().map_or(0, Vec::len));
                    continue;
                }
                _ => continue,
            };
            match (keyword.as_str(), value) {
                (
                    "properties" | "patternProperties" | "dependentSchemas" | "dependencies",
                    Value::Object(schemas),
                ) => {
                    sum.here.here += sixteenth(schemas.len());
                    parts.extend(schemas.values().map(|schema| (applied, place(schema))));
                }
                (_, Value::Array(schemas)) => {
                    parts.extend(schemas.iter().map(|schema| (applied, place(schema))));
                }
                (_, schema) => parts.push((applied, place(schema))),
            }
            if let ("patternProperties", Value::Object(schemas)) = (keyword.as_str(), value) {
                for pattern in schemas.keys() {
                    sum.each_property.below += self.pattern(pattern)?;
                }
            }
        }
        Ok(parts)
    }

    fn pattern(&mut self, pattern: &str) -> Result<u64, String> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return Err(format!("it has more than {MAX_PATTERNS} patterns"));
        }
        Ok(if backtracks(pattern) { BACKTRACKING } else { 1 })
    }

    /// Everything that a reference may mean: where names are not unique, all that bear them.
    fn targets(&self, reference: &str, resource: &'a Value) -> Result<Vec<Place<'a>>, String> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_decoded(fragment);
        let targets: Vec<_> = if !fragment.is_empty() && !fragment.starts_with('/') {
            named(&self.anchors, |name| name == fragment).collect()
        } else if uri.is_empty() {
            let here = Place {
                schema: resource,
                resource,
            };
            self.follow(here, &fragment).into_iter().collect()
        } else {
            named(&self.identifiers, |id| {
                id == uri || is_tail(uri, id) || is_tail(id, uri)
            })
            .filter_map(|base| self.follow(base, &fragment))
            .collect()
        };
        if targets.is_empty() {
            let reference: String = reference.chars().take(MAX_QUOTED).collect();
            return Err(format!(
                "it refers to '{reference}', which is not in it and is not fetched"
            ));
        }
        Ok(targets)
    }

    fn follow(&self, base: Place<'a>, pointer: &str) -> Option<Place<'a>> {
        pointer.split('/').skip(1).try_fold(base, |place, token| {
            let token = token.replace("~1", "/").replace("~0", "~");
            let schema = match place.schema {
                Value::Object(members) => members.get(&token)?,
                Value::Array(elements) => elements.get(token.parse::<usize>().ok()?)?,
                _ => return None,
            };
            Some(self.entered(schema, place.resource))
        })
    }
}

fn named<'a, 'b>(
    names: &'b [(&'a str, Place<'a>)],
    fits: impl Fn(&str) -> bool + 'b,
) -> impl Iterator<Item = Place<'a>> + 'b {
    names
        .iter()
        .filter(move |(name, _)| fits(name))
        .map(|(_, place)| *place)
}

/// Whether `path` ends in `/tail`, as an absolute identifier does in the relative one that names it.
fn is_tail(tail: &str, path: &str) -> bool {
    path.strip_suffix(tail.trim_start_matches("./"))
        .is_some_and(|rest| rest.ends_with(['/', ':']))
}

fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let escaped = (*first == b'%')
            .then(|| tail.get(..2))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Long lists of plain options are cheap, but not free.
fn sixteenth(length: usize) -> u64 {
    length as u64 / 16
}

/// Whether the engine can match a pattern only by backtracking: look-around, backreferences,
/// atomic groups and possessive quantifiers.
fn backtracks(pattern: &str) -> bool {
    let constructs = ["(?=", "(?!", "(?<", "(?>", "++", "*+", "?+", "}+", "\\k"];
    constructs
        .iter()
        .any(|construct| pattern.contains(construct))
        || pattern
            .as_bytes()
            .windows(2)
            .any(|pair| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    #[rustfmt::skip]
    fn checks_are_counted_at_the_dearest_place() {
        // contract: R9, R11
        let leaf = || json!({"type": "string"});
        let cases = [
            (json!(true), 1),
            (leaf(), 1),
            // One property is one place, however many there are.
            (json!({"properties": {"a": leaf(), "b": leaf()}}), 1),
            (json!({"allOf": [leaf(), leaf()]}), 3),
            (json!({"properties": {"a": {"allOf": [leaf(), leaf()]}}}), 3),
            (json!({"allOf": [{"items": {"not": leaf()}}, {"items": {"not": leaf()}}]}), 4),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [leaf(), leaf(), leaf()]}}}), 5),
            (json!({"$ref": "#/$defs/a~1%62", "$defs": {"a/b": leaf()}}), 2),
            (json!({"$ref": "#here", "$defs": {"a": {"$anchor": "here"}}}), 2),
            (json!({"$ref": "b.json", "$id": "http://h/a.json", "$defs": {"a": {"$id": "b.json"}}}), 2),
            (json!({"$ref": "http://h/a.json#/$defs/a", "$id": "http://h/a.json", "$defs": {"a": leaf()}}), 2),
            (json!({"items": {"$ref": "#"}}), 2),
            (json!({"properties": {"a": {"not": leaf()}}, "additionalProperties": {"not": leaf()}, "items": {"not": leaf()}}), 2),
            (json!({"patternProperties": {"^a": leaf()}, "additionalProperties": {"not": leaf()}}), 4),
            (json!({"contains": leaf(), "items": {"not": leaf()}, "prefixItems": [leaf()]}), 3),
            (json!({"pattern": "^a+$"}), 2),
            (json!({"pattern": "^(?=a)"}), 1001),
            // A pointer counts from the nearest identifier.
            (json!({"$ref": "b", "x": {"allOf": [leaf(), leaf(), leaf()]}, "$defs": {"b": {"$id": "b", "$ref": "#/x", "x": leaf()}}}), 3),
        ];
        for (schema, checks) in cases {
            assert_eq!(Cost::of(&schema).unwrap().checks, checks, "{schema}");
        }
    }

    #[test]
    #[rustfmt::skip]
    fn recursion_is_counted_by_the_ways_to_one_place() {
        // contract: R11
        let again = || json!({"$ref": "#"});
        let cases = [
            (json!({"properties": {"a": {"type": "string"}}}), 0),
            (json!({"properties": {"a": again(), "b": again()}, "additionalProperties": again(), "items": again()}), 1),
            (json!({"anyOf": [{"items": again()}, {"properties": {"a": again()}}]}), 2),
            (json!({"contains": again(), "items": again()}), 2),
            (json!({"unevaluatedProperties": again(), "properties": {"a": again()}}), 3),
        ];
        for (schema, ways) in cases {
            assert_eq!(Cost::of(&schema).unwrap().again, ways, "{schema}");
        }
    }

    #[test]
    #[rustfmt::skip]
    fn what_cannot_be_enforced_says_why() {
        // contract: R9
        let cases = [
            (json!({"$ref": "http://h/a"}), "it refers to 'http://h/a', which is not in it and is not fetched"),
            (json!({"$ref": "#/nowhere"}), "it refers to '#/nowhere', which is not in it and is not fetched"),
            (json!({"$ref": "#nowhere"}), "it refers to '#nowhere', which is not in it and is not fetched"),
            (json!({"$ref": "#"}), "it contains itself without end"),
            (json!({"anyOf": [{"not": {"$ref": "#/anyOf/0"}}]}), "it contains itself without end"),
        ];
        for (schema, reason) in cases {
            assert_eq!(Cost::of(&schema).unwrap_err(), reason, "{schema}");
        }
        let pattern = |n: usize| (format!("^{n}"), json!(true));
        let patterns: Map<_, _> = (0..=MAX_PATTERNS).map(pattern).collect();
        let schema = json!({"patternProperties": patterns});
        assert_eq!(
            Cost::of(&schema).unwrap_err(),
            "it has more than 200 patterns"
        );
        let link = |n: usize| (n.to_string(), json!({"$ref": format!("#/$defs/{}", n + 1)}));
        let chain: Map<_, _> = (0..MAX_CHAIN).map(link).collect();
        let schema = json!({"$ref": "#/$defs/0", "$defs": chain});
        let reason = "its subschemas and references chain more than 400 deep";
        assert_eq!(Cost::of(&schema).unwrap_err(), reason);
    }
}
