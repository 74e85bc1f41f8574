//! Checks the operations of lanes: races, reads of unwritten memory, barriers, masks.
//!
//! Each access is compared with the earlier accesses of the same address that shadow memory holds. Vector clocks say
//! which of these happen before it.
//!
//! | module | what it does |
//! |---|---|
//! | `checker` | one core's checks of memory accesses |
//! | `convergence` | one core's checks of barriers, shuffles, votes and masks |
//! | `launch` | what the checks of a launch share between cores |
//! | `stamp` | who accessed memory, when, where and how |
//! | `clocks` | happens-before within a block |
//! | `releases` | happens-before between blocks: fences and atomics |
//! | `epochs` | interned warp timestamps, and stamps packed into a shadow cell |
//! | `access_cache` | a cache of shadow memory for each call site: the fastest path, which most accesses take |
//! | `argument_shadow` | shadow memory of the kernel's arguments, one or two cells for each element |
//! | `element_cell` | the shadow cells of one element |
//! | `cell_pool` | allocates shadow cells |
//! | `exact_cell` | the exact access history of one word or byte |
//! | `exact_memory` | exact shadow memory, for shared memory and for what `argument_shadow` cannot express |
//! | `report` | collects findings |
//! | `findings` | the findings' public types |

pub(crate) mod access_cache;
mod argument_shadow;
mod cell_pool;
pub(crate) mod checker;
mod clocks;
pub(crate) mod convergence;
mod element_cell;
mod epochs;
mod exact_cell;
mod exact_memory;
pub(crate) mod findings;
pub(crate) mod launch;
mod releases;
mod report;
mod stamp;
