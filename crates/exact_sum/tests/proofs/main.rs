//! Exact results compared with big integers: random cases, hard cases, and the fuzzer's corpus.
//!
//! By default a small share of the cases is tried.
//! `WARPFOLD_TESTS=all cargo test -p warpfold-exact-sum --test proofs` tries all of them, in some minutes.

#[path = "../../../../fuzz/fuzz_targets/bytes_check.rs"]
mod bytes_check;
mod check;
mod corpus;
mod data;
mod fast;
mod hard;
mod integers;
mod random;
#[path = "../../../../fuzz/fuzz_targets/sums_check.rs"]
mod sums_check;

/// `few`, or `all` if the environment asks for all cases.
fn times<N>(few: N, all: N) -> N {
    if std::env::var("WARPFOLD_TESTS").is_ok_and(|tests| tests == "all") { all } else { few }
}
