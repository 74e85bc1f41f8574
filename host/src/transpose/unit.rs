//! The unit in which elements are moved.

/// The bytes that one access moves. Elements of this size are moved by one access; elements of other sizes are several
/// units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    One,
    Two,
    Four,
    Eight,
    Sixteen,
}

impl Unit {
    /// The largest unit that divides `bytes`. `bytes` may be the OR of several numbers, all of which the unit divides.
    pub const fn dividing(bytes: u64) -> Self {
        match bytes.trailing_zeros() {
            0 => Self::One,
            1 => Self::Two,
            2 => Self::Four,
            3 => Self::Eight,
            4.. => Self::Sixteen,
        }
    }

    /// The number of bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
            Self::Sixteen => 16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_divides_the_size_and_the_addresses() {
        let bytes = |bytes: u64| Unit::dividing(bytes).bytes();
        assert_eq!([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64].map(bytes), [1, 2, 1, 4, 2, 8, 4, 16, 8, 16, 16, 16]);
        assert_eq!([0, 0x100, 16 | 0x104, 12 | 0x102].map(bytes), [16, 16, 4, 2]);
    }
}
