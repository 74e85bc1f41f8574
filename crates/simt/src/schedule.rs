//! The order in which lanes run.

/// Which lane runs when several could. Results of a correct kernel do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schedule {
    /// In the order of their numbers, each until it waits: the fastest.
    #[default]
    InOrder,
    /// In a random order, with changes from lane to lane before accesses of memory. The same number gives the same
    /// order within each block, on every machine; blocks still run on several cores.
    Seed(u64),
}

/// Random numbers, the same everywhere for one seed (SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom
/// Number Generators", 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// For the block with that number in the grid.
    pub fn new(seed: u64, block: u64) -> Self {
        let mut random = Self(seed);
        random.0 = random.next() ^ block.wrapping_mul(0xD134_2543_DE82_EF95);
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}
