//! How a tile is loaded from global memory and stored to it.
//!
//! | module | rows begin and end |
//! |---|---|
//! | `aligned` | at multiples of 16 bytes |
//! | `unaligned` | at any address |
//! | [`sector_aligned`] | at any address; a tile ends where a sector of the output ends |
//! | [`word`] | at any address; accesses of 4 or 8 bytes |

pub(in crate::transpose) mod aligned;
pub mod sector_aligned;
pub(in crate::transpose) mod unaligned;
pub mod word;
