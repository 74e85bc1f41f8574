//! The value of `--shape`.

use std::str::FromStr;

use anyhow::{Context, bail};
use warpfold::Layout;

use super::extent::Extent;
use crate::axes::{self, AxisList};
use crate::options::count;

/// Arrays, of which several are vectors with lengths in steps of four; or segments by offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shapes {
    Arrays(Vec<Layout>),
    Segments { count: usize, mean: usize },
}

impl Shapes {
    /// The reductions along these axes; `None` are all.
    pub fn extents(&self, axes: Option<&AxisList>) -> anyhow::Result<Vec<Extent>> {
        match self {
            Self::Arrays(layouts) => {
                let along = |&layout| Extent::along(layout, axes).with_context(|| format!("--shape {layout}"));
                layouts.iter().map(along).collect()
            }
            Self::Segments { .. } if axes.is_some() => {
                bail!("--axis is for arrays, and --shape names segments by offsets: leave out one of them")
            }
            Self::Segments { count, mean } => Ok(vec![Extent::segments(*count, *mean)]),
        }
    }
}

impl FromStr for Shapes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((first, last)) = text.split_once("..") {
            let (first, last) = (count(first)?, count(last)?);
            if first == 0 || last < first {
                return Err("the first length must be more than 0, and the last at least the first".to_owned());
            }
            let longer = |len: &usize| len.checked_mul(4).filter(|&len| len <= last);
            let lengths = std::iter::successors(Some(first), longer);
            let layouts = lengths.map(|len| Layout::contiguous(&[len]).map_err(|error| error.to_string()));
            return Ok(Self::Arrays(layouts.collect::<Result<_, _>>()?));
        }
        let Some((sides, suffix)) = text.split_once(':') else {
            return Ok(Self::Arrays(vec![axes::layout(text)?]));
        };
        if suffix != "skewed" {
            let other = "segments are COUNTxMEAN:skewed; for the rows of a matrix give --axis 1, and for its columns 0";
            return Err(format!("expected `skewed` after the colon, not `{suffix}`: {other}"));
        }
        let layout = axes::layout(sides)?;
        match *layout.extents() {
            [count, mean] if count > 0 && mean > 0 => Ok(Self::Segments { count, mean }),
            _ => Err("segments are COUNTxMEAN:skewed, with at least one segment of one element".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_parsed() {
        let all = |text: &str| text.parse::<Shapes>().unwrap().extents(None).unwrap();
        assert_eq!(all("2^28"), [Extent::all(1 << 28)]);
        assert_eq!(all("3x2^4x5")[0].extents(), [3, 16, 5]);
        assert_eq!(all("2^10..2^30").len(), 11);
        assert_eq!(all("2^20x256:skewed"), [Extent::segments(1 << 20, 256)]);
        let axes = AxisList(vec![1]);
        assert_eq!("3x4".parse::<Shapes>().unwrap().extents(Some(&axes)).unwrap(), [Extent::rows(3, 4)]);
        for text in ["2^10..2^12", "3x4:skewed"] {
            let error = format!("{:#}", text.parse::<Shapes>().unwrap().extents(Some(&axes)).unwrap_err());
            assert!(error.contains("--axis") && error.contains("--shape"), "{error}");
        }
        for wrong in ["", "x", "3x4:rows", "2^30..2^10", "0..2^10", "2^40x2^40", "0x3:skewed", "2x3x4:skewed"] {
            assert!(wrong.parse::<Shapes>().is_err(), "{wrong}");
        }
    }
}
