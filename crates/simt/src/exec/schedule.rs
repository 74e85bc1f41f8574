//! The order in which lanes run.

/// Which lane runs next when several could. The results of a correct kernel do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schedule {
    /// In the order of their indices, each until it waits. This is the fastest.
    #[default]
    InOrder,
    /// In a random order that also switches lanes before memory accesses. A seed gives the same order within each block
    /// on every machine. Blocks still run on several cores.
    Seed(u64),
}
