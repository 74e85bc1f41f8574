//! The operations of `bench transpose`: transposes, scaled transposes, transposes in place, and permutations of axes.

use clap::ValueEnum;
use warpfold::{Layout, Plain};

/// The operation on an array, each of whose matrices is along the last two axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Each matrix becomes its transpose
    #[default]
    Transpose,
    /// Each matrix becomes -2 times its transpose; elements of 4, 8 and 16 bytes are f32, f64 and complex f64
    Scaled,
    /// Each matrix, which must be square, becomes its transpose, in place
    InPlace,
    /// The axes change their order, by `--permute`
    #[value(skip)]
    Permute,
}

/// The factor of [`Kind::Scaled`]. Products with it are exact, and differ from the elements.
pub const FACTOR: f64 = -2.0;

impl Kind {
    /// The name in `--kind`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transpose => "transpose",
            Self::Scaled => "scaled",
            Self::InPlace => "in-place",
            Self::Permute => "permute",
        }
    }

    /// Checks that the operation is possible for an array of this layout with elements of `size` bytes.
    pub fn fits(self, input: &Layout, size: usize) -> Result<(), String> {
        match (self, input.extents()) {
            (Self::Scaled, _) if size < 4 => {
                Err(format!("--kind scaled takes elements of 4, 8 and 16 bytes (f32, f64, complex f64), not of {size}"))
            }
            (Self::InPlace, [.., rows, columns]) if rows != columns => {
                Err(format!("--kind in-place takes square matrices, and {input} is not square"))
            }
            _ => Ok(()),
        }
    }

    /// The element of the output that corresponds to an element of the input.
    pub fn expected_element<T: Plain>(self, element: T) -> T {
        let bits = element.to_pair();
        let times = |bits: u64| (f64::from_bits(bits) * FACTOR).to_bits();
        let pair = match (self, size_of::<T>()) {
            (Self::Scaled, 4) => [u64::from((f32::from_bits(bits[0] as u32) * FACTOR as f32).to_bits()), 0],
            (Self::Scaled, 8) => [times(bits[0]), 0],
            (Self::Scaled, _) => bits.map(times),
            _ => bits,
        };
        T::from_pair(pair)
    }

    /// An element with random bits. For [`Kind::Scaled`] it is a small integer, whose product is exact and not NaN.
    pub fn random_element<T: Plain>(self, random: [u64; 2]) -> T {
        let number = |bits: u64| f64::from(bits as u16 | 1).to_bits();
        T::from_pair(match (self, size_of::<T>()) {
            (Self::Scaled, 4) => [u64::from(f32::from(random[0] as u16 | 1).to_bits()), 0],
            (Self::Scaled, 8) => [number(random[0]), 0],
            (Self::Scaled, _) => [number(random[0]), number(random[1])],
            _ => random,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for kind in Kind::value_variants() {
            let value = kind.to_possible_value().unwrap();
            assert_eq!(value.get_name(), kind.name());
        }
    }
}
