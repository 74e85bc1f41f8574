//! warpfold's tests across crates: the programs `cpu` and `gpu` beside this file's folder, and what they share in
//! `support`, a crate of its own, which is compiled to be fast. `compile_fail` is a package of its own.
