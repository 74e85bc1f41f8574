//! Samples mutants from all sites, by a seed.

use std::collections::BTreeMap;

use super::mutations::{apply, one_line};
use super::sites::{Edit, Site};

/// A source and its sites.
#[derive(Debug)]
pub struct Source {
    /// The path from the workspace's root.
    pub path: String,
    pub text: String,
    pub sites: Vec<Site>,
}

/// A site with one of its mutations.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The number that activates it at run time: 1 for the first of the sample, and so on.
    pub number: u32,
    pub path: String,
    pub site: Site,
    /// The index of the mutation.
    mutation: usize,
    pub line: usize,
    pub column: usize,
    /// The source line, trimmed.
    pub line_text: String,
    /// The original text and its replacement, shortened with dots.
    pub from: String,
    pub to: String,
    /// The number of earlier mutants in the same file with the same line and mutation.
    occurrence: usize,
}

impl Mutant {
    pub fn edits(&self) -> &[Edit] {
        &self.site.mutations[self.mutation]
    }

    /// Path, line and column.
    pub fn location(&self) -> String {
        format!("{}:{}:{}", self.path, self.line, self.column)
    }

    /// A unique key, which does not change when lines move.
    pub fn key(&self) -> String {
        format!("{} | {} | {} -> {} | {}", self.path, self.line_text, self.from, self.to, self.occurrence)
    }

    /// The mutation as text.
    pub fn mutation(&self) -> String {
        format!("{} -> {}", self.from, self.to)
    }

    /// The source's folder, under which the summary counts the mutant.
    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

/// The first `count` sites in the seed's order, each with one of its mutations. The order of two sites, and their
/// mutations, do not depend on other sites.
pub fn sample(sources: &[Source], seed: u64, count: usize) -> Vec<Mutant> {
    let mut sampled: Vec<(u64, Mutant)> = Vec::new();
    for source in sources {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for site in &source.sites {
            let (line, column, line_text) = position(&source.text, site.focus);
            let before = &source.text[site.range.clone()];
            let same = seen.entry(format!("{line_text}\n{before}\n{}", site.kind)).or_default();
            let hash = hash(&format!("{seed}\n{}\n{line_text}\n{before}\n{}\n{same}", source.path, site.kind));
            *same += 1;
            // The high bits of the hash determine the order, the low bits the mutation.
            let mutation = (hash % 1024) as usize % site.mutations.len();
            // The result may not be Rust, as in a macro that repeats half of an expression.
            if one_line(&apply(&source.text, &site.range, &site.mutations[mutation])).is_none() {
                continue;
            }
            let shown: Vec<_> =
                site.mutations[mutation].iter().filter(|e| !["(", ")"].contains(&&*e.text)).cloned().collect();
            let to = apply(&source.text, &site.range, &shown);
            let mutant = Mutant {
                number: 0,
                path: source.path.clone(),
                site: site.clone(),
                mutation,
                line,
                column,
                line_text,
                from: short(before),
                to: if to.is_empty() { "(nothing)".to_owned() } else { short(&to) },
                occurrence: *same - 1,
            };
            sampled.push((hash, mutant));
        }
    }
    sampled.sort_by(|a, b| (a.0, &a.1.path, a.1.site.range.start).cmp(&(b.0, &b.1.path, b.1.site.range.start)));
    let numbered = (1..).zip(sampled).map(|(number, (_, mutant))| Mutant { number, ..mutant });
    numbered.take(count).collect()
}

/// The text as one line of at most 72 characters, with dots for the middle.
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

/// The line and the column, both counted from 1, and the text of the line.
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
