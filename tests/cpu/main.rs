//! All tests that need no GPU, as one program: it is linked once, and its tests share the cores.
//!
//! `cargo xtask test --test cpu transposes` runs one module of it.
//!
//! | module | what is tested |
//! |---|---|
//! | `by_length` | orders of combining that the length alone decides |
//! | `partials` | reductions whose blocks leave states for each other |
//! | `reductions`, `transposes` | the library in the executor, against references on the CPU |
//! | `exact`, `exact_sums`, `exact_terms` | exact sums of floats, that stay on the device, of custom terms |
//! | `exact_consequences` | that the elements alone decide an exact sum's bits |
//! | `soundness` | what several threads, faults and kernels of any kind may do to one device |
//! | `simt` | the ladders and the device library in the executor |
//! | `counters` | what the executor counts |
//! | `corpus` | broken kernels, and the checks that tell them |
//! | `ptx` | the PTX itself |
//! | `entries` | which entries a library user's PTX has |
//! | `examples` | the examples, as a person runs them |

mod by_length;
mod corpus;
mod counters;
mod entries;
mod exact;
mod exact_consequences;
mod exact_sums;
mod exact_terms;
mod examples;
mod partials;
mod ptx;
mod reductions;
mod simt;
mod soundness;
mod transposes;
