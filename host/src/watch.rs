//! Examines kernels in the executor: counters, checks, and the order of lanes.

use simt::{Profile, Schedule};

use crate::{Error, Gpu};

/// How the executor runs kernels: see [`Gpu::simt_with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimtOptions {
    /// Whether each launch is checked.
    ///
    /// Checks find races in shared and global memory, reads of unwritten shared memory, misaligned accesses, barriers
    /// in divergent code, shuffles from inactive lanes, and masks with inactive lanes. Findings are the launch's error
    /// ([`simt::Fault::findings`], in [`Error::Fault`]). (Indices outside of views are always errors.)
    ///
    /// On in [`Gpu::simt`], off where the executor replaces a device ([`Gpu::first_or_simt`]): checks make kernels
    /// several times slower.
    pub checks: bool,
    /// The order in which lanes run.
    pub schedule: Schedule,
}

impl Default for SimtOptions {
    fn default() -> Self {
        Self { checks: true, schedule: Schedule::InOrder }
    }
}

impl Gpu {
    /// Counts the lanes' operations in all kernels that `work` launches.
    ///
    /// The counters are memory requests, sectors, bank conflicts, barriers and so on, by kernel and source line. The
    /// counts are the same on every machine and in every run.
    ///
    /// ```
    /// use cuda_std::prelude::*;
    /// use warpfold::Gpu;
    ///
    /// /// Doubles every element.
    /// #[kernel]
    /// pub fn double(numbers: GlobalMut<f32>) {
    ///     let i = thread::index_1d_wide();
    ///     if i < numbers.len() {
    ///         numbers.store(i, 2.0 * numbers.load(i));
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), warpfold::Error> {
    /// let gpu = Gpu::simt();
    /// let mut numbers = gpu.upload(&[1.0_f32; 1024])?;
    ///
    /// let kernel = double::handle().with_block(256);
    /// let profile = gpu.profile(|| gpu.launch(kernel, 4, double::Args { numbers: numbers.view_mut() }))?;
    /// assert_eq!(profile.bank_conflicts(), 0);
    /// assert_eq!(profile.load_efficiency(), 100.0);
    /// println!("{profile}"); // a table of the kernel's source lines, and advice
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// An error of `work`, and [`Error::NoCounters`] on a CUDA device.
    pub fn profile(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<Profile, Error> {
        let mut work = Some(work);
        self.backend().profile(&mut || work.take().map_or(Ok(()), |work| work()))
    }
}

/// Runs `test` in the executor with checks, once for each of `orders` different orders of the lanes.
///
/// A kernel that is right only because its lanes run in the order of their indices is likely to fail in one of these
/// orders.
///
/// ```
/// use warpfold::under_schedules;
///
/// under_schedules(20, |gpu| {
///     let x = gpu.upload(&[1.0_f32, 2.0, 4.0])?;
///     assert_eq!(gpu.sum(&x)?, 7.0);
///     Ok(())
/// })?;
/// # Ok::<(), warpfold::Error>(())
/// ```
///
/// # Errors
/// The first error of `test`, with the seed of its order ([`Error::Schedule`]).
pub fn under_schedules(orders: u64, mut test: impl FnMut(&Gpu) -> Result<(), Error>) -> Result<(), Error> {
    (0..orders).try_for_each(|seed| {
        let options = SimtOptions { checks: true, schedule: Schedule::Seed(seed) };
        test(&Gpu::simt_with(options)).map_err(|error| Error::Schedule { seed, error: Box::new(error) })
    })
}
