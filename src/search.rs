//! Ranked search over tools: BM25 over the words of their names, descriptions and parameters.
//!
//! Pure, and ignorant of tools: it ranks documents made of weighted texts. Built anew for each
//! query, since lists change and ten thousand tools take milliseconds. Written out because the one
//! library of this size stands on an unmaintained hasher, and the formula is four lines.

use std::collections::HashMap;

/// The usual constants: how soon repetition stops counting, and how much length is held against a
/// text.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Words of one text that are looked at; the rest of an enormous description says nothing new.
const MAX_WORDS: usize = 2_000;

/// What can be found: texts, each with the weight of a word in it.
pub struct Document<'a> {
    pub texts: Vec<(&'a str, f64)>,
}

/// The positions of the documents that share a word with the query, the best first; equals stay in
/// the order in which they came.
pub fn rank(query: &str, documents: &[Document<'_>]) -> Vec<usize> {
    let mut query = words(query);
    query.sort();
    query.dedup();
    let counted: Vec<(HashMap<String, f64>, f64)> = documents.iter().map(count).collect();
    let total: f64 = counted.iter().map(|(_, length)| length).sum();
    let mean = (total / documents.len().max(1) as f64).max(1.0);

    let mut scores = vec![0.0; documents.len()];
    for word in &query {
        let holders = counted
            .iter()
            .filter(|(words, _)| words.contains_key(word))
            .count() as f64;
        let rarity = (1.0 + (documents.len() as f64 - holders + 0.5) / (holders + 0.5)).ln();
        for (score, (words, length)) in scores.iter_mut().zip(&counted) {
            let times = words.get(word).copied().unwrap_or(0.0);
            *score += rarity * times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length / mean));
        }
    }
    let mut found: Vec<usize> = (0..documents.len())
        .filter(|&at| scores[at] > 0.0)
        .collect();
    found.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    found
}

/// How often each word occurs, by weight, and the whole length.
fn count(document: &Document<'_>) -> (HashMap<String, f64>, f64) {
    let (mut counts, mut length) = (HashMap::new(), 0.0);
    for (text, weight) in &document.texts {
        for word in words(text) {
            *counts.entry(word).or_insert(0.0) += weight;
            length += weight;
        }
    }
    (counts, length)
}

/// The words of a text, in the form in which they are compared: `getUserIDs` and `user_id` share
/// "user" and "id".
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut characters = text.chars().peekable();
    let mut before = ' ';
    while let Some(now) = characters.next() {
        let next = characters.peek().copied().unwrap_or(' ');
        // `aB` begins a word, and so does the last capital of `ABc`; a plural's `s` does not.
        let hump = now.is_uppercase()
            && (before.is_lowercase()
                || before.is_ascii_digit()
                || before.is_uppercase() && next.is_lowercase() && next != 's');
        if !now.is_alphanumeric() || hump {
            push(&mut words, &mut word);
        }
        if now.is_alphanumeric() {
            word.extend(now.to_lowercase());
        }
        if words.len() >= MAX_WORDS {
            return words;
        }
        before = now;
    }
    push(&mut words, &mut word);
    words
}

fn push(words: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        words.push(stem(&std::mem::take(word)).to_owned());
    }
}

/// Takes off what English adds most: plurals, `-ed`, `-ing`. Both sides of a comparison lose the
/// same, so that a crude cut does no harm.
fn stem(word: &str) -> &str {
    let long_enough = |stem: &&str| stem.chars().count() >= 3;
    let cut = |ending| word.strip_suffix(ending).filter(long_enough);
    if word.ends_with("ss") || word.ends_with("us") {
        return word;
    }
    let stem = cut("ies")
        .or_else(|| cut("ing"))
        .or_else(|| cut("ed"))
        .or_else(|| word.strip_suffix('s').filter(|stem| stem.len() >= 2))
        .or_else(|| cut("y"))
        .unwrap_or(word);
    stem.strip_suffix('e')
        .filter(|stem| stem.len() >= 3)
        .unwrap_or(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document<'a>(name: &'a str, description: &'a str) -> Document<'a> {
        Document {
            texts: vec![(name, 3.0), (description, 1.0)],
        }
    }

    // contract: M1
    #[test]
    fn words_are_found_however_they_are_written() {
        for (text, expected) in [
            ("mcp__git_hub__listIssues", "mcp git hub list issu"),
            ("getUserIDs", "get user id"),
            ("HTTPServer v2", "http server v2"),
            ("filing filed files", "fil fil fil"),
            ("category categories", "categor categor"),
            ("address status is", "address status is"),
            ("Ändern, 表格!", "ändern 表格"),
            ("", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    // contract: M1
    #[test]
    fn the_best_match_comes_first() {
        let tools = [
            ("mcp__hr__list_engineers", "All engineers, with budgets."),
            ("mcp__hr__get_expenses", "One employee's expense lines."),
            (
                "mcp__git__log",
                "Commits. Mentions expenses once in passing, among very many other words that \
                 make it long and say nothing.",
            ),
            ("mcp__fs__read_file", "Reads a file."),
        ];
        let documents: Vec<_> = tools.iter().map(|(n, d)| document(n, d)).collect();
        for (query, expected) in [
            ("expense", &[1, 2][..]),
            ("Engineers' budget", &[0]),
            ("reading files", &[3]),
            ("get the expenses of an employee", &[1, 2]),
            ("nothing_of_the_kind whatsoever", &[2]),
            ("zebra", &[]),
            ("", &[]),
        ] {
            let found = rank(query, &documents);
            assert!(found.starts_with(expected), "{query}: {found:?}");
            if expected.is_empty() {
                assert!(found.is_empty(), "{query}: {found:?}");
            }
        }
        assert!(rank("x", &[]).is_empty());
    }

    // contract: M1
    #[test]
    fn equals_keep_their_order_and_enormous_texts_are_bounded() {
        let long = "word ".repeat(1_000_000);
        let documents: Vec<_> = (0..5).map(|_| document("same name", &long)).collect();
        assert_eq!(rank("name", &documents), [0, 1, 2, 3, 4]);
    }
}
