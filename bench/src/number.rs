//! Numbers in JSON, CSV and sentences.

use std::fmt;

use serde::{Serialize, Serializer};

/// A number that is printed so that reading it back gives the same bits. A float has as few digits as possible, but
/// enough to distinguish it from others of its type, whether it is read as that type or, as in JSON, as `f64`.
///
/// JSON has no infinities and no NaN: they are the strings `"inf"`, `"-inf"` and `"nan"`, and in CSV the same words.
/// Programs can read these words, for example by Python's `float("inf")` and C's `strtod`.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    I64(i64),
    U64(u64),
    F32(f32),
    F64(f64),
}

impl Value {
    /// The number, if it is an integer.
    pub fn whole(self) -> Option<i128> {
        match self {
            Self::I64(number) => Some(number.into()),
            Self::U64(number) => Some(number.into()),
            Self::F32(_) | Self::F64(_) => None,
        }
    }

    /// The same number, as an `f64` if its shortest digits as an `f32` would give another number when they are read as
    /// `f64` and then rounded to `f32`. An example is 7.038531e-26: the `f64` nearest to these digits lies halfway
    /// between two `f32`.
    fn printable(self) -> Self {
        match self {
            Self::F32(number) => {
                let read = format!("{number:?}").parse::<f64>();
                let is_same = read.is_ok_and(|read| read as f32 == number) || number.is_nan();
                if is_same { self } else { Self::F64(number.into()) }
            }
            other => other,
        }
    }

    /// The bits; for an `f32` the lowest 32.
    pub fn bits(self) -> u64 {
        match self {
            Self::I64(number) => number as u64,
            Self::U64(number) => number,
            Self::F32(number) => number.to_bits().into(),
            Self::F64(number) => number.to_bits(),
        }
    }

    /// The bits in hexadecimal: `0x3f800000`.
    pub fn hex(self) -> String {
        let digits = if matches!(self, Self::F32(_)) { 8 } else { 16 };
        format!("0x{:0digits$x}", self.bits())
    }

    /// The nearest `f64`.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::I64(number) => number as f64,
            Self::U64(number) => number as f64,
            Self::F32(number) => number.into(),
            Self::F64(number) => number,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.printable() {
            // A NaN's sign has no meaning.
            _ if self.to_f64().is_nan() => f.write_str("nan"),
            Self::I64(number) => write!(f, "{number}"),
            Self::U64(number) => write!(f, "{number}"),
            Self::F32(number) => write!(f, "{number:?}"),
            Self::F64(number) => write!(f, "{number:?}"),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.printable() {
            Self::I64(number) => serializer.serialize_i64(number),
            Self::U64(number) => serializer.serialize_u64(number),
            Self::F32(number) if number.is_finite() => serializer.serialize_f32(number),
            Self::F64(number) if number.is_finite() => serializer.serialize_f64(number),
            _ => serializer.collect_str(self),
        }
    }
}

/// The results of a reduction: in JSON a number, or a list; in CSV separated by spaces.
#[derive(Clone, Debug)]
pub struct Results(pub Vec<Value>);

impl Results {
    /// The first results, for one line.
    pub fn shown(&self) -> String {
        const MOST: usize = 8;
        let Self(all) = self;
        let first = joined(&all[..all.len().min(MOST)]);
        if all.len() > MOST { format!("{first} ... ({} results)", all.len()) } else { first }
    }
}

fn joined(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.0))
    }
}

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(serializer),
            all => all.serialize(serializer),
        }
    }
}

/// A count with its noun: `1 block`, `2 blocks`.
pub fn counted(count: impl fmt::Display, one: &str, many: &str) -> String {
    let count = count.to_string();
    let noun = if count == "1" { one } else { many };
    format!("{count} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!(counted(0, "block", "blocks"), "0 blocks");
        assert_eq!(counted(1_u64, "pass", "passes"), "1 pass");
        assert_eq!(counted(1.0, "barrier", "barriers"), "1 barrier");
        assert_eq!(counted("1 x 2", "block", "blocks"), "1 x 2 blocks");
    }

    #[test]
    fn values_read_back_to_the_same_bits() {
        for (value, json, csv) in [
            (Value::F64(1.5), "1.5", "1.5"),
            (Value::F64(0.1 + 0.2), "0.30000000000000004", "0.30000000000000004"),
            (Value::F32(0.1), "0.1", "0.1"),
            (Value::F32(-0.0), "-0.0", "-0.0"),
            (Value::U64(u64::MAX), "18446744073709551615", "18446744073709551615"),
            (Value::I64(i64::MIN), "-9223372036854775808", "-9223372036854775808"),
            (Value::F32(f32::INFINITY), "\"inf\"", "inf"),
            (Value::F64(f64::NEG_INFINITY), "\"-inf\"", "-inf"),
            (Value::F64(f64::NAN), "\"nan\"", "nan"),
            (Value::F32(-f32::NAN), "\"nan\"", "nan"),
        ] {
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
            assert_eq!(value.to_string(), csv);
        }
        for bits in (0..u32::MAX).step_by(9_999_991).chain([7.038_531e-26_f32.to_bits()]) {
            let (number, text) = (f32::from_bits(bits), Value::F32(f32::from_bits(bits)).to_string());
            for read in [text.parse::<f32>().unwrap(), text.parse::<f64>().unwrap() as f32] {
                assert!(read.to_bits() == bits || read.is_nan() && number.is_nan(), "{text}");
            }
        }
    }

    #[test]
    fn one_result_is_a_number_and_several_a_list() {
        let of = |count: u64| Results((0..count).map(Value::U64).collect());
        let json = |results: &Results| serde_json::to_string(results).unwrap();
        assert_eq!((json(&of(1)), json(&of(3)), json(&of(0))), ("0".into(), "[0,1,2]".into(), "[]".into()));
        assert_eq!((of(3).to_string(), of(8).shown()), ("0 1 2".into(), "0 1 2 3 4 5 6 7".into()));
        assert_eq!(of(100).shown(), "0 1 2 3 4 5 6 7 ... (100 results)");
    }
}
