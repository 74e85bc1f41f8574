//! All tests that need no GPU, in one program, which is linked once and shares the cores among the tests.
//!
//! `cargo xtask test --test cpu transposes` runs one module of it.
//!
//! | module | tests |
//! |---|---|
//! | `arrays` | arrays of any layout: copies, and reductions along axes |
//! | `bits` | the bits of results, compared with stored hashes |
//! | `by_length` | orders of reduction that depend only on the length |
//! | `cases` | reductions of any layout along any axes, with results that Python computed |
//! | `partials` | reductions whose blocks exchange partial results |
//! | `reductions`, `transposes` | the library in the executor, against references on the CPU |
//! | `exact`, `exact_sums` | exact sums of floats, on the host and on the device |
//! | `host` | reductions in host memory |
//! | `custom` | custom operators and custom exact sums |
//! | `exact_columns` | exact sums of columns with elements outside their windows |
//! | `exact_cross` | every shape, kind of data, type and operator of exact sums |
//! | `exact_consequences` | the bits of an exact sum depend only on the elements |
//! | `exact_edges` | exact sums at the edges of windows, bins, lanes and blocks |
//! | `exact_launches` | exact sums with launches that plans rarely make, and with rare data |
//! | `exact_segments` | exact sums of segments in which one element decides |
//! | `exact_ways` | the ways of adding up wide data, for squares and sums |
//! | `exact_wide` | exact sums of wide data, in the lanes' superaccumulators |
//! | `soundness` | several threads, faults, and kernels of any kind on one device |
//! | `simt` | the ladders and the device library in the executor |
//! | `counters` | the executor's counters |
//! | `corpus` | broken kernels, and the checks that must report them |
//! | `ptx` | the PTX itself |
//! | `rust_cuda` | kernels of the kinds that Rust-CUDA has, ported from it |
//! | `entries` | the entries in the PTX of a library user |
//! | `examples` | the examples, run as a user does |

mod arrays;
mod bits;
mod by_length;
mod cases;
mod chunks;
mod corpus;
mod counters;
mod custom;
mod entries;
mod exact;
mod exact_columns;
mod exact_consequences;
mod exact_cross;
mod exact_edges;
mod exact_launches;
mod exact_rows;
mod exact_segments;
mod exact_sums;
mod exact_ways;
mod exact_wide;
mod examples;
mod host;
mod interop;
mod partials;
mod ptx;
mod reductions;
mod rust_cuda;
mod simt;
mod soundness;
mod transposes;
