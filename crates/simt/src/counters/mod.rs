//! Counts the operations of lanes: requests of warps, sectors, bank conflicts, barriers.
//!
//! | module | what it does |
//! |---|---|
//! | `access_log` | each lane's last accesses, which `exec` appends to without calling the recorder |
//! | `coalesce` | combines the logs of a warp's lanes into requests |
//! | `request` | one request of a warp: its lanes and addresses |
//! | `sectors` | sectors of global memory that a request touches |
//! | `banks` | passes through shared memory that a request takes |
//! | `count` | adds a request to counters |
//! | `recorder` | one core's counters, by site |
//! | `launch` | a launch's counters: the sum over its cores |
//! | `traffic` | the counters' public types |
//! | `profile` | counters by kernel and source line |
//! | `advice` | what costs time at a line, and what to do |
//! | `display` | a profile as text |

pub(crate) mod access_log;
pub(crate) mod advice;
mod banks;
mod coalesce;
mod count;
mod display;
pub(crate) mod launch;
pub(crate) mod profile;
pub(crate) mod recorder;
mod request;
mod sectors;
pub(crate) mod traffic;
