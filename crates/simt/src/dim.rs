//! The shape of a grid or block, or an index in it.

use std::fmt;

/// The maximum number of threads of a block.
pub(crate) const MAX_THREADS: usize = 1024;

/// A shape or an index with components x, y and z. x varies fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dim3 {
    /// Along x.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

impl Dim3 {
    /// The shape or index with these components.
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// The number of blocks of a grid of this shape, or of threads of a block.
    pub const fn count(self) -> u128 {
        self.x as u128 * self.y as u128 * self.z as u128
    }

    /// The three-dimensional index of the linear index `linear` in this shape.
    pub(crate) const fn index_of(self, linear: u64) -> Self {
        let (x, y) = (self.x as u64, self.y as u64);
        Self { x: (linear % x) as u32, y: (linear / x % y) as u32, z: (linear / x / y) as u32 }
    }

    /// An index, as CUDA writes it: `3, 0, 0`.
    pub(crate) fn as_index(self) -> String {
        format!("{}, {}, {}", self.x, self.y, self.z)
    }
}

/// A shape, as a launch would write it: `256`, `32 x 8`, `8 x 8 x 8`.
impl fmt::Display for Dim3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { x, y: 1, z: 1 } => write!(f, "{x}"),
            Self { x, y, z: 1 } => write!(f, "{x} x {y}"),
            Self { x, y, z } => write!(f, "{x} x {y} x {z}"),
        }
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self::new(x, 1, 1)
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Self::new(x, y, 1)
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self::new(x, y, z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_indices_count_x_first() {
        let shape = Dim3::new(3, 2, 2);
        let indices: Vec<_> = (0..12).map(|i| shape.index_of(i)).collect();
        assert_eq!(indices[1], Dim3::new(1, 0, 0));
        assert_eq!(indices[3], Dim3::new(0, 1, 0));
        assert_eq!(indices[11], Dim3::new(2, 1, 1));
    }

    #[test]
    fn trailing_ones_are_not_shown() {
        assert_eq!(Dim3::from(256).to_string(), "256");
        assert_eq!(Dim3::from((32, 8)).to_string(), "32 x 8");
        assert_eq!(Dim3::new(1, 1, 4).to_string(), "1 x 1 x 4");
    }
}
