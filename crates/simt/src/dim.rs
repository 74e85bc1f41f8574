//! The size of a grid or block, or a place in it.

use std::fmt;

/// Three numbers: along x, which varies fastest, y and z.
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
    /// The three numbers in order.
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// How many places a grid or block of this size has.
    pub const fn count(self) -> u128 {
        self.x as u128 * self.y as u128 * self.z as u128
    }

    /// The place with the linear index `index` in a grid or block of this size, x first.
    pub(crate) const fn place(self, index: u64) -> Self {
        let (x, y) = (self.x as u64, self.y as u64);
        Self { x: (index % x) as u32, y: (index / x % y) as u32, z: (index / x / y) as u32 }
    }
}

/// As it would be written in a launch: `256`, `32 x 8`, `8 x 8 x 8`.
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
    fn places_count_x_first() {
        let size = Dim3::new(3, 2, 2);
        let places: Vec<_> = (0..12).map(|i| size.place(i)).collect();
        assert_eq!(places[1], Dim3::new(1, 0, 0));
        assert_eq!(places[3], Dim3::new(0, 1, 0));
        assert_eq!(places[11], Dim3::new(2, 1, 1));
    }

    #[test]
    fn sides_of_one_are_not_shown() {
        assert_eq!(Dim3::from(256).to_string(), "256");
        assert_eq!(Dim3::from((32, 8)).to_string(), "32 x 8");
        assert_eq!(Dim3::new(1, 1, 4).to_string(), "1 x 1 x 4");
    }
}
