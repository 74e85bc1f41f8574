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
pub(crate) fn symbols(text: &str) -> BTreeSet<&str> {
    text.split(is_symbol_end).filter(|word| !word.is_empty()).collect()
}

fn is_symbol_end(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.'))
}

/// The text with a symbol renamed.
pub(crate) fn with_symbol_renamed(text: &str, name: &str, new: &str) -> String {
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

/// Whether one of the first words of an item is this directive.
pub(crate) fn has_directive(item: &str, directive: &str) -> bool {
    item.split_whitespace().take(8).any(|word| word == directive)
}

/// The declaration of a function, from its definition; `None` for other items.
pub(crate) fn prototype(item: &str) -> Option<String> {
    let (head, _) = item.split_once('{').filter(|_| has_directive(item, ".func"))?;
    Some(format!("{}\n;\n", head.trim_end()))
}

/// A definition that other modules do not see.
pub(crate) fn without_linkage(item: &str) -> String {
    let item = item.trim_start();
    let hidden = [".visible", ".weak"].iter().find_map(|linkage| item.strip_prefix(linkage));
    hidden.unwrap_or(item).trim_start().to_owned()
}

/// The name in `.func (.param .b32 result) NAME(...)`.
pub(crate) fn function_name(item: &str) -> String {
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
