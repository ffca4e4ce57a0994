//! JSON as Python source: names and literals.

use serde_json::Value;

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

pub(super) fn is_keyword(name: &str) -> bool {
    KEYWORDS.contains(&name)
}

/// Whether a parameter of this name can be written in a call. Python folds other scripts' letters
/// before it compares, so only ASCII is safe; `__debug__` may not be assigned to.
pub(super) fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name != "__debug__"
}

pub(super) fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            '\n' => literal.push_str("\\n"),
            // Line ends of any kind would end a comment, and control characters hide.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                literal.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

/// A JSON value as Python source; `None` where it would be long.
pub(super) fn literal(value: &Value) -> Option<String> {
    const LONG: usize = 200;
    const DEEP: usize = 4;
    fn write(value: &Value, into: &mut String, depth: usize) -> Option<()> {
        if into.len() > LONG || depth > DEEP {
            return None;
        }
        match value {
            Value::Null => into.push_str("None"),
            Value::Bool(true) => into.push_str("True"),
            Value::Bool(false) => into.push_str("False"),
            Value::Number(number) => into.push_str(&number.to_string()),
            Value::String(text) if text.len() > LONG => return None,
            Value::String(text) => into.push_str(&quoted(text)),
            Value::Array(items) => {
                into.push('[');
                for (at, item) in items.iter().enumerate() {
                    into.push_str(if at > 0 { ", " } else { "" });
                    write(item, into, depth + 1)?;
                }
                into.push(']');
            }
            Value::Object(members) => {
                into.push('{');
                for (at, (key, item)) in members.iter().enumerate() {
                    into.push_str(if at > 0 { ", " } else { "" });
                    into.push_str(&quoted(key));
                    into.push_str(": ");
                    write(item, into, depth + 1)?;
                }
                into.push('}');
            }
        }
        Some(())
    }
    let mut text = String::new();
    write(value, &mut text, 0)?;
    (text.len() <= LONG).then_some(text)
}
