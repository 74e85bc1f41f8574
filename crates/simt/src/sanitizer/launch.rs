//! The state that the checks of a launch share between cores.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::argument_shadow::ArgumentShadow;
use super::epochs::EpochTable;
use super::exact_memory::ExactMemory;
use super::releases::Releases;
pub(crate) use super::report::Reports;
use crate::memory::Argument;

/// The shadow memory and findings of a launch.
pub(crate) struct LaunchSanitizer {
    /// Whether cores may use their [`AccessCache`](super::access_cache::AccessCache).
    pub(super) may_cache: bool,
    pub(super) epochs: EpochTable,
    pub(super) arguments: ArgumentShadow,
    pub(super) exact: ExactMemory,
    releases: Mutex<Releases>,
    pub reports: Reports,
}

impl LaunchSanitizer {
    /// `arguments` get shadow memory. `has_one_core` promises that a single core runs the launch.
    pub fn new(reports: Reports, arguments: &[Argument<'_>], has_one_core: bool, may_cache: bool) -> Self {
        Self {
            may_cache,
            epochs: EpochTable::new(),
            arguments: ArgumentShadow::new(arguments, has_one_core),
            exact: ExactMemory::new(),
            releases: Mutex::default(),
            reports,
        }
    }

    pub(super) fn releases(&self) -> MutexGuard<'_, Releases> {
        self.releases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
