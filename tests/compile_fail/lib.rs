//! The library of a package for the cases of `compile_fail.rs`.
