//! Cells of tables, and fields of CSV.

use std::borrow::Cow;

use comfy_table::{Cell, CellAlignment, Color};

/// A cell with a number.
pub fn right(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// A cell with a number, or a dash.
pub fn or_dash(text: Option<String>) -> Cell {
    right(text.unwrap_or_else(|| "-".to_owned()))
}

/// A cell with the verdict on a result; `none` without a result.
pub fn verdict(correct: Option<bool>) -> Cell {
    match correct {
        Some(true) => Cell::new("right"),
        Some(false) => Cell::new("WRONG").fg(Color::Red),
        None => Cell::new("none").fg(Color::Yellow),
    }
}

/// A cell with a peer's time divided by warpfold's, coloured if warpfold is slower.
pub fn times(ratio: Option<f64>) -> Cell {
    let cell = or_dash(ratio.map(|ratio| format!("{ratio:.2} x")));
    if ratio.is_some_and(|ratio| ratio < 1.0) { cell.fg(Color::Yellow) } else { cell }
}

/// A field of CSV, quoted if necessary (RFC 4180).
pub fn csv_field(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

/// A bandwidth in GB/s, with three significant digits.
pub fn bandwidth(gigabytes_per_second: f64) -> String {
    match gigabytes_per_second {
        small if small < 10.0 => format!("{small:.3}"),
        medium if medium < 100.0 => format!("{medium:.1}"),
        large => format!("{large:.0}"),
    }
}

/// A time with its unit.
pub fn time(microseconds: f64) -> String {
    match microseconds {
        us if us < 1e3 => format!("{us:.2} us"),
        us if us < 1e6 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.2} s ", us / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_csv_are_quoted_if_necessary() {
        assert_eq!(csv_field("a b"), "a b");
        assert_eq!(csv_field("a, \"b\""), "\"a, \"\"b\"\"\"");
    }
}
