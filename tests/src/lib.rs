//! warpfold's tests across crates: the programs `cpu`, `gpu` and `compile_fail` beside this file's folder, and what they share
//! in `support`, a crate of its own, which is compiled to be fast.
