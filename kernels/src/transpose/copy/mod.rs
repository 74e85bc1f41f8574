//! Transposes of matrices of long contiguous segments: each segment is copied, and none is staged in shared memory.
//!
//! | module | segments begin and end |
//! |---|---|
//! | [`elements`] | at multiples of a 4-, 8- or 16-byte access |
//! | [`vectors`] | at any address |

pub mod elements;
pub mod vectors;
