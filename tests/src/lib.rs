//! warpfold's tests across crates: the programs `cpu`, `gpu` and `guest`, in folders next to this file's. They share
//! the crate `support`, which is optimised. `compile_fail` and `fake_driver` are separate packages.
