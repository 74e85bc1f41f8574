//! PTX as text: items, symbols and labels.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The items at module scope: one-line directives, declarations up to their `;`, definitions up to their `}`.
pub(crate) fn top_level_items(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    let mut item = String::new();
    let mut depth = 0_usize;
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        if item.is_empty() && code.trim().is_empty() {
            continue;
        }
        item.push_str(line);
        item.push('\n');
        let had_body = depth > 0 || code.contains('{');
        depth = (depth + code.matches('{').count()).saturating_sub(code.matches('}').count());
        let code = code.trim_end();
        let is_header = [".version", ".target", ".address_size"].iter().any(|word| item.trim_start().starts_with(word));
        if depth == 0 && (is_header || (had_body && code.ends_with(['}', ';'])) || code.ends_with(';')) {
            items.push(std::mem::take(&mut item));
        }
    }
    items
}

/// All words of a text that could be symbols.
pub(super) fn symbols(text: &str) -> BTreeSet<&str> {
    text.split(is_symbol_end).filter(|word| !word.is_empty()).collect()
}

fn is_symbol_end(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.'))
}

/// The text with a symbol renamed.
pub(super) fn with_symbol_renamed(text: &str, name: &str, new: &str) -> String {
    let words = text.split_inclusive(is_symbol_end).map(|word| match word.strip_prefix(name) {
        Some(rest) if rest.chars().all(is_symbol_end) => format!("{new}{rest}"),
        _ => word.to_owned(),
    });
    words.collect()
}

/// The text with `number` in all labels of basic blocks: `$L__BB12_3` becomes `$L__BB7_3`.
pub(super) fn with_labels_numbered(text: &str, number: usize) -> String {
    const LABEL: &str = "$L__BB";
    let mut pieces = text.split(LABEL);
    let mut numbered = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_digit());
        let _ = write!(numbered, "{LABEL}{number}{rest}");
    }
    numbered
}

pub(super) fn symbol_after(item: &str, directive: &str) -> String {
    let rest = item.split_once(directive).map_or("", |(_, rest)| rest);
    rest.trim_start().chars().take_while(|&c| c.is_ascii_alphanumeric() || c == '_' || c == '$').collect()
}

pub(super) fn function_name(item: &str) -> String {
    let rest = item.split_once(".func").map_or("", |(_, rest)| rest).trim_start();
    // The result, if any, is in parentheses before the name.
    let rest = if rest.starts_with('(') { rest.split_once(')').map_or("", |(_, rest)| rest) } else { rest };
    rest.trim_start().chars().take_while(|&c| c.is_ascii_alphanumeric() || c == '_' || c == '$').collect()
}

/// The name in `.global .align 4 .b8 NAME[16] = {...};`, with any spacing.
pub(crate) fn variable_name(item: &str) -> Option<String> {
    let declaration = item.split(['=', '[', ';']).next()?;
    let name = declaration.split_whitespace().last()?;
    (!name.starts_with('.')).then(|| name.to_owned())
}
