//! Transposes. [`ladder`] has the rungs.

pub mod ladder;
