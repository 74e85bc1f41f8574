//! The reduction ladder in shared memory: each rung is one kernel that changes one thing of the rung before.
//!
//! Every rung does the same work. A block takes a run of the input, one element or two for each thread, folds it to one
//! number in shared memory, and writes that to `partials` at its block's index. The host launches the same rung over the
//! partials until one number is left.
//!
//! | rung | changes | removes |
//! |---|---|---|
//! | [`divergent_modulo`](fn@divergent_modulo) | | |
//! | [`strided_index`](fn@strided_index) | which threads work | divergent warps |
//! | [`sequential`](fn@sequential) | which elements they add | bank conflicts |
//! | [`first_add_on_load`](fn@first_add_on_load) | two elements a thread | threads that only load |
//! | [`unroll_last_warp`](fn@unroll_last_warp) | the last 64 elements | block barriers |
//! | [`complete_unroll`](fn@complete_unroll) | the loop | loop arithmetic |
//!
//! Lengths are free: past the end of the input a thread takes the neutral element.

mod rung1_divergent_modulo;
mod rung2_strided_index;
mod rung3_sequential;
mod rung4_first_add_on_load;
mod rung5_unroll_last_warp;
mod rung6_complete_unroll;

pub use rung1_divergent_modulo::divergent_modulo;
pub use rung2_strided_index::strided_index;
pub use rung3_sequential::sequential;
pub use rung4_first_add_on_load::first_add_on_load;
pub use rung5_unroll_last_warp::unroll_last_warp;
pub use rung6_complete_unroll::complete_unroll;
