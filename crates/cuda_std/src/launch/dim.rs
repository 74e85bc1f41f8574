//! The shape of a grid or block, where there is no executor to define it.

use core::fmt;

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
