//! Transposes. [`ladder`] has the rungs; [`vectorized`] is the last of them, and the kernel that the library calls.

pub mod ladder;
pub mod vectorized;
