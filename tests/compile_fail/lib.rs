//! The cases of `compile_fail.rs`, which need a package to belong to.
