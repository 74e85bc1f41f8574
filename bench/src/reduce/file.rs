//! Options for the array of a file: the axis to reduce, and the file for the results.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;

use super::extent::Extent;
use crate::effect::Mode;
use crate::npy::{self, Array};
use crate::number::counted;
use crate::outcome::Outcome;

/// The options of `bench sum` and `bench reduce` for the array of `--input`.
#[derive(Debug, Args)]
pub struct FileArguments {
    /// Reduces along this axis of the file's array, counted from 0, or from -1 at the end, as in NumPy [default: the
    /// whole array]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = axis)]
    pub axis: Option<isize>,
    /// Writes the results for the array of --input to this NumPy file: an array of the other axes, of the type of the
    /// operator's results; the array of min-max has one more axis, of 2
    #[arg(long, value_name = "FILE.npy")]
    pub output: Option<PathBuf>,
    /// Replaces the output file if it exists
    #[arg(long)]
    pub force: bool,
}

/// An axis: a whole number.
fn axis(text: &str) -> Result<isize, String> {
    text.parse().map_err(|_| {
        let is_list = text.contains([',', '(', ' ']);
        let why = if is_list { ", because one axis is reduced at a time" } else { "" };
        format!("expected one whole number, such as 0 for the first axis or -1 for the last{why}")
    })
}

impl FileArguments {
    /// The options that have no effect without others of these.
    pub fn modes(&self) -> Option<Mode> {
        self.output.is_none().then(|| Mode::without("output", &["force"]))
    }

    /// Refuses an output file that cannot be written.
    pub fn check_output(&self) -> anyhow::Result<()> {
        self.output.as_ref().map_or(Ok(()), |file| npy::check_writable(file, self.force))
    }

    /// The extent to reduce, of an array with these extents.
    pub fn extent(&self, input: &Path, extents: &[usize]) -> anyhow::Result<Extent> {
        let Some(axis) = self.axis else { return Ok(Extent::all(extents.iter().product())) };
        let (input, axes) = (npy::name(input), extents.len());
        ensure!(axes > 0, "--axis {axis}: {input} has no axes; leave --axis out");
        let from_start = if axis < 0 { axes.checked_add_signed(axis) } else { Some(axis.unsigned_abs()) };
        let from_start = from_start.filter(|&axis| axis < axes).with_context(|| {
            let (axes, last) = (counted(axes, "axis", "axes"), axes - 1);
            format!("--axis {axis}: {input} has {axes}; choose from 0 to {last}, or from -1 to -{}", last + 1)
        })?;
        Ok(Extent::of_axis(extents, from_start)?)
    }

    /// The extents of the array of results. Each result has `each` numbers.
    fn extents_of_results(&self, extents: &[usize], each: usize) -> Vec<usize> {
        let mut others = Vec::new();
        if let Some(axis) = self.axis {
            others.extend_from_slice(extents);
            others.remove(axis.rem_euclid(extents.len() as isize).unsigned_abs());
        }
        others.extend((each > 1).then_some(each));
        others
    }

    /// Writes the results for an array with these extents, if the options name a file and the results are right. Each
    /// result has `each` numbers.
    pub fn write(&self, outcome: &mut Outcome, mut results: Array, extents: &[usize], each: usize, are_right: bool) {
        if let Some(file) = &self.output {
            results.shape = self.extents_of_results(extents, each);
            npy::write_if_right(outcome, file, &results, self.force, are_right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn along(axis: Option<isize>) -> FileArguments {
        FileArguments { axis, output: None, force: false }
    }

    #[test]
    fn axes_count_from_either_end() {
        let extents = [2, 3, 5];
        for (axis, shown, others) in [
            (Some(0), "2 x 15 columns", &[3, 5][..]),
            (Some(1), "2 x 3 x 5 along axis 1", &[2, 5]),
            (Some(2), "6 x 5 rows", &[2, 3]),
            (Some(-1), "6 x 5 rows", &[2, 3]),
            (Some(-3), "2 x 15 columns", &[3, 5]),
            (None, "30", &[]),
        ] {
            let arguments = along(axis);
            assert_eq!(arguments.extent(Path::new("a.npy"), &extents).unwrap().to_string(), shown, "{axis:?}");
            assert_eq!(arguments.extents_of_results(&extents, 1), others, "{axis:?}");
            assert_eq!(arguments.extents_of_results(&extents, 2), [others, &[2]].concat(), "{axis:?}");
        }
    }

    #[test]
    fn one_axis_is_a_number() {
        assert_eq!((axis("2"), axis("-1")), (Ok(2), Ok(-1)));
        for (text, is_list) in [("0,1", true), ("(0, 1)", true), ("0 1", true), ("x", false), ("", false), ("-", false)]
        {
            let error = axis(text).unwrap_err();
            assert!(error.contains("one whole number") && error.contains("at a time") == is_list, "{text}: {error}");
        }
    }

    #[test]
    fn axes_that_do_not_exist() {
        let error =
            |axis, extents: &[usize]| along(Some(axis)).extent(Path::new("a.npy"), extents).unwrap_err().to_string();
        for axis in [2, -3, isize::MIN, isize::MAX] {
            let error = error(axis, &[2, 3]);
            assert!(error.contains("`a.npy` has 2 axes; choose from 0 to 1, or from -1 to -2"), "{error}");
        }
        assert!(error(0, &[]).contains("`a.npy` has no axes"));
    }
}
