//! The axes to reduce, and the file for the results.

use std::path::PathBuf;

use clap::Args;
use warpfold::Layout;

use super::extent::Extent;
use crate::axes::AxisList;
use crate::effect::Mode;
use crate::npy::{self, Array};
use crate::outcome::Outcome;
use crate::streamed;

/// The axes, and the options of `bench sum` and `bench reduce` for the array of `--input`.
#[derive(Debug, Args)]
pub struct FileArguments {
    /// Reduces along these axes, joined by commas and counted from 0, or from -1 at the end, as in NumPy [default: all]
    #[arg(long, value_name = "N,...", allow_hyphen_values = true)]
    pub axis: Option<AxisList>,
    /// Writes the results for the array of --input to this NumPy file: an array of the other axes, of the type of the
    /// operator's results; the array of min-max has one more axis, of 2
    #[arg(long, value_name = "FILE.npy")]
    pub output: Option<PathBuf>,
    /// Keeps the reduced axes in the output file, with an extent of 1
    #[arg(long)]
    pub keep_dims: bool,
    /// Replaces the output file if it exists
    #[arg(long)]
    pub force: bool,
    /// Reads the array of --input a chunk at a time, in this much memory (`512M`, `2G`; powers of 1,024), for sums,
    /// means, sums of squares and norms of files that are larger than memory. Floats are summed by a GPU if there is
    /// one, else by all cores. The results are not compared with the CPU's, and nothing is timed twice
    #[arg(long, value_name = "SIZE", value_parser = streamed::size)]
    pub memory: Option<usize>,
}

impl FileArguments {
    /// The options that have no effect without others of these.
    pub fn modes(&self) -> impl Iterator<Item = Mode> + use<> {
        let without_output = self.output.is_none().then(|| Mode::without("output", &["keep-dims", "force"]));
        let with_memory = self.memory.is_some().then(|| Mode::with("memory", streamed::USELESS));
        without_output.into_iter().chain(with_memory)
    }

    /// Refuses an output file that cannot be written.
    pub fn check_output(&self) -> anyhow::Result<()> {
        self.output.as_ref().map_or(Ok(()), |file| npy::check_writable(file, self.force))
    }

    /// Writes the results of a reduction, if the options name a file and the results are right. Each result has `each`
    /// numbers.
    pub fn write(&self, outcome: &mut Outcome, mut results: Array, extent: &Extent, each: usize, are_right: bool) {
        if let Some(file) = &self.output {
            let mut extents = extent.extents_of_results(self.keep_dims);
            extents.extend((each > 1).then_some(each));
            results.layout = Layout::contiguous(&extents).expect("memory has the results");
            npy::write_if_right(outcome, file, &results, self.force, are_right);
        }
    }
}
