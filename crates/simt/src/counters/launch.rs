//! The counters of a launch, which all of its cores add to.

use std::sync::{Mutex, PoisonError};

use super::profile::{Line, by_line};
use super::traffic::Counters;
use crate::events::sites::SiteTable;

/// The counters of a launch, by site.
#[derive(Default)]
pub(crate) struct LaunchCounters(Mutex<Vec<Counters>>);

impl LaunchCounters {
    /// Adds one core's counters.
    pub fn add(&self, of_core: &[Counters]) {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counters.len() < of_core.len() {
            counters.resize_with(of_core.len(), Counters::default);
        }
        counters.iter_mut().zip(of_core).for_each(|(sum, &own)| *sum += own);
    }

    /// The counters of each source line that has any.
    pub fn lines(&self, sites: &SiteTable) -> Vec<Line> {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = counters.iter().enumerate().filter(|(_, counters)| **counters != Counters::default());
        by_line(counted.map(|(site, &counters)| {
            let location = sites.location(site as u32);
            Line { file: location.file(), line: location.line(), counters }
        }))
    }
}
