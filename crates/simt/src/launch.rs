//! A launch: its shape, its limits, and how its blocks are spread over the cores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::context::MOST_THREADS;
use crate::fault::Fault;
use crate::profile::Profile;
use crate::schedule::Schedule;
use crate::waiting::Running;
use crate::watch::{LaunchWatch, Watch};
use crate::worker::Worker;
use crate::{Dim3, cores, lane};

/// What is to be run: a kernel's name, for messages, and the shape of the grid.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The kernel's name.
    pub kernel: &'a str,
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Bytes of shared memory beside the kernel's own arrays.
    pub dynamic_shared: usize,
    /// What is allowed.
    pub limits: Limits,
    /// What it is watched for.
    pub watch: Watch,
    /// The order in which lanes run.
    pub schedule: Schedule,
    /// The kernel's memory by name, for findings.
    pub arguments: &'a [Argument<'a>],
}

/// A kernel's parameter that is memory.
#[derive(Clone, Copy, Debug)]
pub struct Argument<'a> {
    /// The parameter's name.
    pub name: &'a str,
    /// Where the memory begins.
    pub address: usize,
    /// How long it is.
    pub bytes: usize,
    /// Bytes of an element.
    pub element: usize,
}

impl<'a> Launch<'a> {
    /// A launch without dynamic shared memory, within CUDA's limits, that nobody watches.
    pub fn new(kernel: &'a str, grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        Self {
            kernel,
            grid: grid.into(),
            block: block.into(),
            dynamic_shared: 0,
            limits: Limits::default(),
            watch: Watch::NOTHING,
            schedule: Schedule::InOrder,
            arguments: &[],
        }
    }

    /// Whether the launch is within its limits.
    ///
    /// # Errors
    /// [`Fault::InvalidLaunch`], which names what is not.
    pub fn check(&self) -> Result<(), Fault> {
        let invalid = |what, value: String, limit: String| {
            Err(Fault::InvalidLaunch { kernel: self.kernel.to_owned(), what, value, limit })
        };
        let limits = &self.limits;
        let sides = [
            ("the grid's size along x", self.grid.x, limits.grid.x),
            ("the grid's size along y", self.grid.y, limits.grid.y),
            ("the grid's size along z", self.grid.z, limits.grid.z),
            ("the block's size along x", self.block.x, limits.block.x),
            ("the block's size along y", self.block.y, limits.block.y),
            ("the block's size along z", self.block.z, limits.block.z),
        ];
        for (what, value, limit) in sides {
            if value == 0 || value > limit {
                return invalid(what, value.to_string(), format!("1 to {limit}"));
            }
        }
        if self.block.count() > u128::from(limits.threads_per_block) {
            return invalid(
                "the block",
                format!("{} threads", self.block.count()),
                limits.threads_per_block.to_string(),
            );
        }
        if self.grid.count() > u128::from(u64::MAX) {
            return invalid("the grid", format!("{} blocks", self.grid.count()), u64::MAX.to_string());
        }
        if self.dynamic_shared > limits.shared_bytes {
            return invalid(
                "dynamic shared memory",
                format!("{} bytes", self.dynamic_shared),
                format!("{} bytes", limits.shared_bytes),
            );
        }
        Ok(())
    }
}

/// What a launch may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Threads of a block in all. The executor takes no more than 1024, whatever is said here.
    pub threads_per_block: u32,
    /// Threads of a block along each axis.
    pub block: Dim3,
    /// Blocks along each axis.
    pub grid: Dim3,
    /// Bytes of shared memory of a block, the kernel's arrays and the launch's dynamic part together. The executor has
    /// no more than 1 MiB, whatever is said here.
    pub shared_bytes: usize,
}

/// CUDA's limits, which all of its devices have had since compute capability 3.0.
impl Default for Limits {
    fn default() -> Self {
        Self {
            threads_per_block: 1024,
            block: Dim3::new(1024, 1024, 64),
            grid: Dim3::new(i32::MAX as u32, 65535, 65535),
            shared_bytes: 48 * 1024,
        }
    }
}

impl Limits {
    /// These limits, but none above what the executor has room for.
    fn of_executor(self) -> Self {
        Self {
            threads_per_block: self.threads_per_block.min(MOST_THREADS as u32),
            shared_bytes: self.shared_bytes.min(crate::shared::MOST_BYTES),
            ..self
        }
    }
}

/// Calls `thread` once for each thread of the grid, in the way that the crate's documentation describes.
///
/// # Errors
/// A launch outside of its limits, started from inside of another, or a [`Fault`] of one of its threads. If several
/// blocks have one, it is that of the block with the lowest index, whatever the order that they ran in; then blocks
/// after it may or may not have run. If the launch is checked, [`Fault::Mistakes`] says what was found when it came to
/// its end, and [`Fault::AfterMistakes`] when it did not.
///
/// # Panics
/// If the process cannot start a single thread to run blocks on.
pub fn run(launch: &Launch<'_>, thread: &(dyn Fn() + Sync)) -> Result<(), Fault> {
    run_watched(launch, thread).map(|_| ())
}

/// [`run`], which counts what the lanes do.
///
/// ```
/// use simt::lane::{self, Access, Space};
///
/// // A warp stores its lanes' numbers, each to the start of its own 32 bytes.
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
/// As [`run`].
///
/// # Panics
/// As [`run`].
pub fn profile(launch: &Launch<'_>, thread: &(dyn Fn() + Sync)) -> Result<Profile, Fault> {
    let launch = Launch { watch: Watch { counters: true, ..launch.watch }, ..launch.clone() };
    let watch = run_watched(&launch, thread)?;
    Ok(Profile { kernels: watch.iter().map(|watch| watch.profile()).collect() })
}

fn run_watched(launch: &Launch<'_>, thread: &(dyn Fn() + Sync)) -> Result<Option<Arc<LaunchWatch>>, Fault> {
    let launch = &Launch { limits: launch.limits.of_executor(), ..launch.clone() };
    if lane::is_running() {
        return Err(Fault::InvalidLaunch {
            kernel: launch.kernel.to_owned(),
            what: "a launch from inside of a kernel",
            value: "one".to_owned(),
            limit: "none".to_owned(),
        });
    }
    launch.check()?;
    let blocks = launch.grid.count() as u64;
    let next = AtomicU64::new(0);
    let first_fault = FirstFault::default();
    // Lanes that change at accesses have to be told of them, too.
    let is_heard = launch.watch.is_on() || launch.schedule != Schedule::InOrder;
    // Enough pieces that the cores finish together, and large enough that they seldom meet at the counter. They are
    // taken in order, so that a block may wait for those before it, as kernels with a chained scan do.
    let piece = (blocks / 1024).clamp(1, 64);
    let pieces = blocks.div_ceil(piece);
    let watch = launch.watch.is_on().then(|| Arc::new(LaunchWatch::new(launch, cores::parts(pieces) == 1)));
    cores::run(pieces, &|worker: &Worker| {
        let _watched = worker.watch(watch.as_ref());
        let _hearing = is_heard.then(|| worker.hear());
        loop {
            let from = next.fetch_add(piece, Ordering::Relaxed);
            for index in from..from.saturating_add(piece).min(blocks) {
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
    // Blocks behind the one with the fault may or may not have run: what was found there would not be found in every
    // run.
    let findings = watch.as_ref().and_then(|watch| watch.findings(block));
    match (fault, findings) {
        (Some(fault), Some(findings)) => Err(Fault::AfterMistakes { fault: Box::new(fault), findings }),
        (Some(fault), None) => Err(fault),
        (None, Some(findings)) => Err(Fault::Mistakes(findings)),
        (None, None) => Ok(watch),
    }
}

/// The fault of the lowest block so far.
#[derive(Default)]
struct FirstFault {
    running: Running,
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

    /// The block and its fault; without one, the number of no block.
    fn into_parts(self) -> (u64, Option<Fault>) {
        (self.running.first_fault.into_inner(), self.fault.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
