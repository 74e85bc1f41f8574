//! Runs a launch: spreads its blocks over the cores, and gathers their faults and findings.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::deadlock::RunningBlocks;
use super::fault::Fault;
use super::launch::{Launch, Watch};
use super::monitor::LaunchMonitor;
use super::schedule::Schedule;
use super::worker::Worker;
use super::{context, pool};
use crate::counters::profile::Profile;

/// Calls `thread` once for each thread of the grid, as the crate's documentation describes.
///
/// # Errors
/// An invalid launch, a launch from inside a kernel, or a [`Fault`] of a thread. If several blocks have faults, it is
/// the fault of the block with the lowest index, whatever the order of execution; later blocks may or may not have run.
/// If the launch is checked, [`Fault::Mistakes`] holds the findings of a launch that ran to its end, and
/// [`Fault::AfterMistakes`] those of one that did not.
///
/// # Panics
/// If the process cannot start a single thread to run blocks on.
pub fn run(launch: &Launch<'_>, thread: &(dyn Fn() + Sync)) -> Result<(), Fault> {
    run_monitored(launch, thread).map(|_| ())
}

/// [`run`] that also counts the operations of the lanes.
///
/// ```
/// use simt::lane::{self, Access, Space};
///
/// // Each lane of a warp stores 4 bytes, 32 bytes apart from its neighbours.
/// let launch = simt::Launch::new("strided", 1, 32);
/// let profile = simt::profile(&launch, &|| {
///     lane::access(Space::Global, Access::Store, 4096 + 32 * lane::lane_id() as usize, 4);
/// })?;
/// assert_eq!(profile.total().global_stores.sectors, 32);
/// assert_eq!(profile.store_efficiency(), 12.5);
/// # Ok::<(), simt::Fault>(())
/// ```
///
/// # Errors
/// As for [`run`].
///
/// # Panics
/// As for [`run`].
pub fn profile(launch: &Launch<'_>, thread: &(dyn Fn() + Sync)) -> Result<Profile, Fault> {
    let launch = Launch { watch: Watch { counters: true, ..launch.watch }, ..launch.clone() };
    let monitor = run_monitored(&launch, thread)?;
    Ok(Profile { kernels: monitor.iter().map(|monitor| monitor.profile(&launch)).collect() })
}

fn run_monitored(launch: &Launch<'_>, thread: &(dyn Fn() + Sync)) -> Result<Option<Arc<LaunchMonitor>>, Fault> {
    let launch = &Launch { limits: launch.limits.of_executor(), ..launch.clone() };
    if context::is_running() {
        return Err(Fault::InvalidLaunch {
            kernel: launch.kernel.to_owned(),
            what: "a launch from inside a kernel",
            value: "one".to_owned(),
            limit: "none".to_owned(),
        });
    }
    launch.check()?;
    let blocks = launch.grid.count() as u64;
    let next = AtomicU64::new(0);
    let first_fault = FirstFault::default();
    // In a random order, each access may switch lanes, so lanes must report it.
    let is_listening = launch.watch.is_on() || launch.schedule != Schedule::InOrder;
    // Chunks small enough that the cores finish together, and large enough that they rarely contend for the counter.
    // They are taken in order, so that a block may wait for earlier ones, as decoupled look-back does.
    let chunk = (blocks / 1024).clamp(1, 64);
    let chunks = blocks.div_ceil(chunk);
    let monitor = launch.watch.is_on().then(|| Arc::new(LaunchMonitor::new(launch, pool::threads(chunks) == 1)));
    pool::run(chunks, &|worker: &Worker| {
        let _monitored = worker.monitor(monitor.as_ref());
        let _listening = is_listening.then(|| worker.listen());
        loop {
            let from = next.fetch_add(chunk, Ordering::Relaxed);
            for index in from..from.saturating_add(chunk).min(blocks) {
                if !first_fault.is_after(index) {
                    return;
                }
                if let Err(fault) = worker.run_block(launch, index, &first_fault.running, thread) {
                    first_fault.report(index, fault);
                }
            }
            if from >= blocks {
                return;
            }
        }
    });
    let (block, fault) = first_fault.into_parts();
    // Blocks after the one with the fault may or may not have run. Their findings would differ from run to run.
    let findings = monitor.as_ref().and_then(|monitor| monitor.findings_up_to(block));
    match (fault, findings) {
        (Some(fault), Some(findings)) => Err(Fault::AfterMistakes { fault: Box::new(fault), findings }),
        (Some(fault), None) => Err(fault),
        (None, Some(findings)) => Err(Fault::Mistakes(findings)),
        (None, None) => Ok(monitor),
    }
}

/// The fault of the lowest block so far.
#[derive(Default)]
struct FirstFault {
    running: RunningBlocks,
    fault: Mutex<Option<Fault>>,
}

impl FirstFault {
    /// Whether no block up to `block` is known to have a fault.
    fn is_after(&self, block: u64) -> bool {
        block < self.running.first_fault.load(Ordering::Relaxed)
    }

    fn report(&self, block: u64, fault: Fault) {
        let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_after(block) {
            self.running.first_fault.store(block, Ordering::Relaxed);
            *first = Some(fault);
        }
    }

    /// The block and its fault; `u64::MAX` and `None` if there is none.
    fn into_parts(self) -> (u64, Option<Fault>) {
        (self.running.first_fault.into_inner(), self.fault.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
