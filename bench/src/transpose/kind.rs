//! The operations of `bench transpose`: transposes, scaled transposes, transposes in place, and permutations of three
//! axes.

use clap::ValueEnum;
use serde::Serialize;
use warpfold::{ArrayView, ArrayViewMut, Buffer, Error, Gpu, Plain};

use super::shape::Shape;

/// The operation on the matrices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Each matrix becomes its transpose
    #[default]
    Transpose,
    /// Each matrix becomes -2 times its transpose; elements of 4, 8 and 16 bytes are f32, f64 and complex f64
    Scaled,
    /// Each matrix, which must be square, becomes its transpose, in place
    InPlace,
    /// An array of COUNTxROWSxCOLUMNS becomes one of ROWSxCOUNTxCOLUMNS
    #[value(name = "permute-102")]
    #[serde(rename = "permute-102")]
    Permute102,
    /// An array of COUNTxROWSxCOLUMNS becomes one of COLUMNSxROWSxCOUNT
    #[value(name = "permute-210")]
    #[serde(rename = "permute-210")]
    Permute210,
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
            Self::Permute102 => "permute-102",
            Self::Permute210 => "permute-210",
        }
    }

    /// What a report adds to the shape.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Transpose => "",
            Self::Scaled => ", scaled",
            Self::InPlace => ", in place",
            Self::Permute102 => ", axes 1 0 2",
            Self::Permute210 => ", axes 2 1 0",
        }
    }

    /// Checks that the operation is possible for matrices of this shape with elements of `size` bytes.
    pub fn fits(self, shape: &Shape, size: usize) -> Result<(), String> {
        match self {
            Self::Scaled if size < 4 => {
                Err(format!("--kind scaled takes elements of 4, 8 and 16 bytes (f32, f64, complex f64), not of {size}"))
            }
            Self::InPlace if shape.rows != shape.columns => {
                Err(format!("--kind in-place takes square matrices, and {shape} is not square"))
            }
            _ => Ok(()),
        }
    }

    /// The permutation of the axes: for each of the output's axes, the input's axis.
    pub const fn axes(self) -> [isize; 3] {
        match self {
            Self::Transpose | Self::Scaled | Self::InPlace => [0, 2, 1],
            Self::Permute102 => [1, 0, 2],
            Self::Permute210 => [2, 1, 0],
        }
    }

    /// Starts the operation. [`Kind::Scaled`] is started elsewhere, because it needs the type of the elements.
    pub fn start<T: Plain>(
        self,
        gpu: &Gpu,
        shape: &Shape,
        input: &mut Buffer<T>,
        output: &mut Buffer<T>,
    ) -> Result<(), Error> {
        if self == Self::InPlace {
            return gpu.transpose_in_place(input.view_mut().reshape(&shape.extents())?);
        }
        let (from, to) = self.arrays(shape, input, output)?;
        gpu.copy_array(from, to)
    }

    /// The input with its axes in the output's order, and the output.
    pub fn arrays<'a, T: Plain>(
        self,
        shape: &Shape,
        input: &'a Buffer<T>,
        output: &'a mut Buffer<T>,
    ) -> Result<(ArrayView<'a, T>, ArrayViewMut<'a, T>), Error> {
        let from = input.view().reshape(&shape.extents())?.permute_axes(&self.axes())?;
        let to = output.view_mut().reshape(from.extents())?;
        Ok((from, to))
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
    fn names_are_the_same_on_the_command_line_and_in_json() {
        for kind in Kind::value_variants() {
            let value = kind.to_possible_value().unwrap();
            assert_eq!(value.get_name(), kind.name());
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
