//! Copies by the output's order, of which none is staged in shared memory.
//!
//! | module | takes |
//! |---|---|
//! | [`elements`] | matrices of long contiguous segments that begin and end at multiples of 4, 8 or 16 bytes |
//! | [`vectors`] | matrices of long contiguous segments that begin and end at any address |
//! | [`strided`] | elements at any strides, on both sides or in place |

pub mod elements;
pub mod strided;
pub mod vectors;
