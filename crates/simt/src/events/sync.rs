//! Events that order or join lanes: fences and operations of a warp.

/// A memory fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fence {
    /// The fence orders only threads of one block.
    pub is_of_block: bool,
    /// The fence is sequentially consistent (`fence.sc`).
    pub is_sequential: bool,
}

/// The warp operations that `sanitizer` and `counters` distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collective {
    Shuffle,
    Vote,
    SyncWarp,
}
