//! Arrays on GPUs.
//!
//! `array.rs` reads an array, and knows the stream in which its library works; `handles.rs` keeps a handle of warpfold
//! for each such stream, and `work.rs` puts a call's work there. `target.rs` makes the arrays for results, and checks
//! `out`; `owned.rs` is the class of arrays for libraries that cannot be asked for one. `reduce.rs`, `segments.rs` and
//! `permute.rs` are the functions, and `exact_sums.rs` has the sums that stay on a GPU.

pub mod array;
pub mod elements;
pub mod exact_sums;
pub mod handles;
pub mod library;
pub mod owned;
pub mod permute;
pub mod reduce;
pub mod segments;
pub mod target;
pub mod work;
