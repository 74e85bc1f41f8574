//! Shapes and axes on the command line.

use std::str::FromStr;

use warpfold::Layout;

use crate::options::count;

/// The layout of an array in C order, by its extents: `2x3x4`, `2^20`.
pub fn layout(text: &str) -> Result<Layout, String> {
    let extents = text.split('x').map(count).collect::<Result<Vec<_>, _>>()?;
    Layout::contiguous(&extents).map_err(|error| error.to_string())
}

/// Axes, counted from 0, or from -1 at the end: `0,2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisList(pub Vec<isize>);

impl FromStr for AxisList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let axes: Result<Vec<isize>, _> = text.split(',').map(str::parse).collect();
        axes.map(Self).map_err(|_| "expected whole numbers joined by commas, such as 0,2 or -1".to_owned())
    }
}

/// The value of `--permute`: an order of axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation(pub Vec<isize>);

impl FromStr for Permutation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let axes: Option<Vec<isize>> = match text.contains(',') {
            true => text.parse().ok().map(|AxisList(axes)| axes),
            false => text.chars().map(|digit| Some(digit.to_digit(10)? as isize)).collect(),
        };
        let axes = axes.filter(|axes| !axes.is_empty());
        axes.map(Self).ok_or_else(|| {
            "expected each axis once, as digits such as 0231, or joined by commas such as 0,2,3,1".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        assert_eq!(layout("3x2^4x1").unwrap().extents(), [3, 16, 1]);
        for wrong in ["", "x", "3x", "-1x2", "2^40x2^40", &["2"; 33].join("x")] {
            assert!(layout(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_of_axes() {
        assert_eq!("2".parse(), Ok(AxisList(vec![2])));
        assert_eq!("0,-1,2".parse(), Ok(AxisList(vec![0, -1, 2])));
        for wrong in ["", "x", "0,", "(0, 1)", "0 1", "-", "99999999999999999999"] {
            assert!(wrong.parse::<AxisList>().is_err_and(|error| error.contains("joined by commas")), "{wrong}");
        }
    }

    #[test]
    fn permutations() {
        assert_eq!("0231".parse(), Ok(Permutation(vec![0, 2, 3, 1])));
        assert_eq!("0,2,-1,1".parse(), Ok(Permutation(vec![0, 2, -1, 1])));
        assert_eq!("10,0".parse(), Ok(Permutation(vec![10, 0])));
        for wrong in ["", "02a1", "0 2", "-1", "0,", "0.2"] {
            assert!(wrong.parse::<Permutation>().is_err_and(|error| error.contains("such as 0,2,3,1")), "{wrong}");
        }
    }
}
