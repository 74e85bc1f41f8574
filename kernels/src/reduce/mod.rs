//! Reductions.
//!
//! [`ladder`] has the rungs from the textbook's slowest to its fastest, [`device`] the kernel that the library calls,
//! [`block`] what they share: the sum of the values that the threads of one block hold.

pub mod block;
pub mod device;
pub mod ladder;
