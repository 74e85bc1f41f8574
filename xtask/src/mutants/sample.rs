//! Draws the errors to plant from all places, by a seed.

use std::collections::BTreeMap;

use super::changes::{edited, one_line};
use super::places::{Edit, Place};

/// A source and its places.
#[derive(Debug)]
pub struct Source {
    /// The path from the workspace's root.
    pub path: String,
    pub text: String,
    pub places: Vec<Place>,
}

/// An error at a place.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The number that selects it at run time, from 1 on in the order of the draw.
    pub number: u32,
    pub path: String,
    pub place: Place,
    choice: usize,
    pub line: usize,
    pub column: usize,
    /// The source line, trimmed.
    pub line_text: String,
    /// The original text and its replacement, shortened with dots.
    pub from: String,
    pub to: String,
    /// The number of earlier mutants in the same file with the same line and change.
    occurrence: usize,
}

impl Mutant {
    pub fn edits(&self) -> &[Edit] {
        &self.place.changes[self.choice]
    }

    /// Path, line and column.
    pub fn location(&self) -> String {
        format!("{}:{}:{}", self.path, self.line, self.column)
    }

    /// A unique key, stable when lines move.
    pub fn key(&self) -> String {
        format!("{} | {} | {} -> {} | {}", self.path, self.line_text, self.from, self.to, self.occurrence)
    }

    /// The change, for people.
    pub fn change(&self) -> String {
        format!("{} -> {}", self.from, self.to)
    }

    /// The folder under which a summary counts it.
    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// The first `count` places in the seed's order, each with one of its changes. Other places do not affect a place's
/// position in that order.
pub fn draw(sources: &[Source], seed: u64, count: usize) -> Vec<Mutant> {
    let mut drawn: Vec<(u64, Mutant)> = Vec::new();
    for source in sources {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for place in &source.places {
            let (line, column, line_text) = position(&source.text, place.focus);
            let before = &source.text[place.range.clone()];
            let same = seen.entry(format!("{line_text}\n{before}\n{}", place.kind)).or_default();
            let hash = hash(&format!("{seed}\n{}\n{line_text}\n{before}\n{}\n{same}", source.path, place.kind));
            *same += 1;
            // The high bits determine the order, the low bits the choice.
            let choice = (hash % 1024) as usize % place.changes.len();
            // Not Rust, as in a macro that repeats half of an expression.
            if one_line(&edited(&source.text, &place.range, &place.changes[choice])).is_none() {
                continue;
            }
            let shown: Vec<_> =
                place.changes[choice].iter().filter(|e| !["(", ")"].contains(&&*e.text)).cloned().collect();
            let to = edited(&source.text, &place.range, &shown);
            let mutant = Mutant {
                number: 0,
                path: source.path.clone(),
                place: place.clone(),
                choice,
                line,
                column,
                line_text,
                from: short(before),
                to: if to.is_empty() { "(nothing)".to_owned() } else { short(&to) },
                occurrence: *same - 1,
            };
            drawn.push((hash, mutant));
        }
    }
    drawn.sort_by(|a, b| (a.0, &a.1.path, a.1.place.range.start).cmp(&(b.0, &b.1.path, b.1.place.range.start)));
    let numbered = (1..).zip(drawn).map(|(number, (_, mutant))| Mutant { number, ..mutant });
    numbered.take(count).collect()
}

/// The text as one line of at most 72 characters, with the middle left out.
fn short(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let characters: Vec<char> = text.chars().collect();
    match characters.len() {
        0..=72 => text,
        len => characters[..44]
            .iter()
            .chain(" ... ".chars().collect::<Vec<_>>().iter())
            .chain(&characters[len - 23..])
            .collect(),
    }
}

/// Line and column, from 1, and the text of the line.
fn position(text: &str, at: usize) -> (usize, usize, String) {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default().trim();
    (text[..start].matches('\n').count() + 1, text[start..at].chars().count() + 1, line.to_owned())
}

/// A 64-bit hash: FNV-1a, then SplitMix64's mixing. The same on every machine and with every compiler.
pub fn hash(text: &str) -> u64 {
    let fnv = text
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
