//! Transposes of matrices of long contiguous segments: each segment is copied, and none is staged in shared memory.
//!
//! | module | segments begin and end |
//! |---|---|
//! | [`elements`] | at multiples of an access of 4, 8 or 16 bytes |
//! | [`vectors`] | anywhere |

pub mod elements;
pub mod vectors;
