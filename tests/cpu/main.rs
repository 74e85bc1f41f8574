//! All tests that need no GPU, in one program: it is linked once, and its tests share the cores.
//!
//! `cargo xtask test --test cpu transposes` runs one module of it.
//!
//! | module | tests |
//! |---|---|
//! | `by_length` | orders of reduction that depend only on the length |
//! | `partials` | reductions whose blocks publish partial results for each other |
//! | `reductions`, `transposes` | the library in the executor, against references on the CPU |
//! | `exact`, `exact_sums` | exact sums of floats, on the host and on the device |
//! | `custom` | custom operators and custom exact sums |
//! | `exact_consequences` | that an exact sum's bits depend only on the elements |
//! | `exact_edges` | exact sums at the edges of windows, bins, lanes and blocks |
//! | `exact_launches` | exact sums by launches and with data that plans and random data seldom lead to |
//! | `soundness` | several threads, faults, and kernels of any kind on one device |
//! | `simt` | the ladders and the device library in the executor |
//! | `counters` | what the executor counts |
//! | `corpus` | broken kernels, and the checks that must report them |
//! | `ptx` | the PTX itself |
//! | `rust_cuda` | kernels of the kinds that Rust-CUDA has, as they are ported |
//! | `entries` | which entries a library user's PTX has |
//! | `examples` | the examples as a user runs them |

mod by_length;
mod corpus;
mod counters;
mod custom;
mod entries;
mod exact;
mod exact_consequences;
mod exact_edges;
mod exact_launches;
mod exact_sums;
mod examples;
mod partials;
mod ptx;
mod reductions;
mod rust_cuda;
mod simt;
mod soundness;
mod transposes;
