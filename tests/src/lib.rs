//! warpfold's tests across crates: the programs `cpu` and `gpu`, in folders next to this file's. They share the crate
//! `support`, which is optimised. `compile_fail` is a separate package.
