//! Words for messages.

use std::fmt;

/// A count with its noun: `1 block`, `2 blocks`.
pub(crate) fn counted(count: impl fmt::Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { one } else { many };
    format!("{count} {noun}")
}
