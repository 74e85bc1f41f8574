//! Numbers in JSON and CSV, and in sentences.

use std::fmt;

use serde::{Serialize, Serializer};

/// A result that may be infinite or no number. JSON has no such numbers: there it is the string `"inf"`, `"-inf"` or
/// `"nan"`, and in CSV the same word. Programs read them as they are: `float("inf")` of Python, `strtod` of C.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A NaN's sign says nothing.
        if self.0.is_nan() { f.pad("nan") } else { self.0.fmt(f) }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() { serializer.serialize_f64(self.0) } else { serializer.collect_str(self) }
    }
}

/// A number of things: `1 block`, `2 blocks`.
pub fn counted(count: impl fmt::Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { one } else { many };
    format!("{count} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(counted(0, "block", "blocks"), "0 blocks");
        assert_eq!(counted(1_u64, "pass", "passes"), "1 pass");
        assert_eq!(counted(1.0, "barrier", "barriers"), "1 barrier");
        assert_eq!(counted("1 x 2", "block", "blocks"), "1 x 2 blocks");
    }

    #[test]
    fn what_is_no_number_in_json_is_a_string() {
        for (number, json, csv) in [
            (1.5, "1.5", "1.5"),
            (f64::INFINITY, "\"inf\"", "inf"),
            (f64::NEG_INFINITY, "\"-inf\"", "-inf"),
            (f64::NAN, "\"nan\"", "nan"),
            (-f64::NAN, "\"nan\"", "nan"),
        ] {
            assert_eq!(serde_json::to_string(&Number(number)).unwrap(), json);
            assert_eq!(Number(number).to_string(), csv);
        }
    }
}
