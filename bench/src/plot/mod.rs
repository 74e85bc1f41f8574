//! Charts as SVG and as PNG: [`bars`] has charts with a bar for each kernel, [`lines`] has bandwidths over lengths or
//! over numbers of exponents.

mod bars;
mod lines;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;

pub use bars::{Bar, Bars};
pub use lines::{Horizontal, Line, Lines};

use crate::files::{self, Existing};

/// The file and the format of a plot.
#[derive(Clone, Debug)]
pub struct PlotFile {
    path: PathBuf,
    picture: Picture,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Picture {
    Svg,
    Png,
}

/// The file extension is not that of a supported format.
#[derive(Debug, thiserror::Error)]
#[error("plots are drawn as SVG or PNG: name a file that ends in .svg or .png")]
pub struct UnknownPicture;

impl TryFrom<OsString> for PlotFile {
    type Error = UnknownPicture;

    fn try_from(path: OsString) -> Result<Self, UnknownPicture> {
        let path = PathBuf::from(path);
        let picture = match path.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => Picture::Svg,
            Some("png") => Picture::Png,
            _ => return Err(UnknownPicture),
        };
        Ok(Self { path, picture })
    }
}

impl PlotFile {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks whether the file can be written.
    pub fn check(&self) -> anyhow::Result<()> {
        files::check_writable(&self.path)
    }
}

/// The width of a picture in units of 1/96 inch, which are the pixels of an SVG. All sizes are in these units.
const WIDTH: u32 = 900;

/// A PNG's pixels per unit: 288 per inch, for printing.
const PNG_SCALE: u32 = 3;
const PNG_PIXELS_PER_METER: u32 = (96.0 * PNG_SCALE as f64 / 0.0254) as u32;

const MESH_COLOR: RGBColor = RGBColor(220, 220, 220);
const FRAME_COLOR: RGBColor = RGBColor(60, 60, 60);

/// A line across a chart: its name, its bandwidth in GB/s, and its color.
pub type Bound = (&'static str, f64, RGBColor);

/// The device's theoretical peak.
pub const PEAK_COLOR: RGBColor = FRAME_COLOR;
/// The measured maximum bandwidth of memory.
pub const CEILING_COLOR: RGBColor = RGBColor(200, 120, 20);

/// One chart of a picture.
pub enum Chart {
    Bars(Bars),
    Lines(Lines),
}

impl Chart {
    /// The chart's height in units of 1/96 inch.
    fn height(&self) -> u32 {
        match self {
            Self::Bars(bars) => bars.height(),
            Self::Lines(_) => lines::HEIGHT,
        }
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: u32) -> anyhow::Result<()>
    where
        B::ErrorType: 'static,
    {
        match self {
            Self::Bars(bars) => bars.draw(area, scale),
            Self::Lines(lines) => lines.draw(area, scale),
        }
    }
}

/// Draws charts, one below the other. On failure there is no partial file.
pub fn draw(charts: &[Chart], file: &PlotFile) -> anyhow::Result<()> {
    // The font is built in, because a machine with a GPU often has no fonts.
    register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).map_err(|_| failed("no font"))?;
    let contents = match file.picture {
        Picture::Svg => svg(charts)?.into_bytes(),
        Picture::Png => png(charts)?,
    };
    files::write(&file.path, Existing::Replace, |out| out.write_all(&contents))
}

fn svg(charts: &[Chart]) -> anyhow::Result<String> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size(charts, 1)).into_drawing_area();
    all(area, charts, 1)?;
    Ok(svg)
}

fn png(charts: &[Chart]) -> anyhow::Result<Vec<u8>> {
    let (width, height) = size(charts, PNG_SCALE);
    let mut pixels = vec![0; 3 * width as usize * height as usize];
    let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
    all(area, charts, PNG_SCALE)?;

    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let (xppu, yppu) = (PNG_PIXELS_PER_METER, PNG_PIXELS_PER_METER);
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu, yppu, unit: png::Unit::Meter }));
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(file)
}

fn size(charts: &[Chart], scale: u32) -> (u32, u32) {
    (scale * WIDTH, scale * charts.iter().map(Chart::height).sum::<u32>().max(1))
}

fn all<B: DrawingBackend>(mut rest: DrawingArea<B, Shift>, charts: &[Chart], scale: u32) -> anyhow::Result<()>
where
    B::ErrorType: 'static,
{
    rest.fill(&WHITE).map_err(failed)?;
    for chart in charts {
        let (area, below) = rest.split_vertically(scale * chart.height());
        chart.draw(&area, scale)?;
        rest = below;
    }
    rest.present().map_err(failed)
}

/// The label of a tick: `1,000,000` or `0.5`.
fn tick(value: f64) -> String {
    // Ticks are round numbers, and a float's sum of steps may miss them by a little.
    let rounded = (value * 1e6).round() / 1e6;
    let text = rounded.abs().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut label = if rounded < 0.0 { "-".to_owned() } else { String::new() };
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            label.push(',');
        }
        label.push(digit);
    }
    if !fraction.is_empty() {
        label.push('.');
        label.push_str(fraction);
    }
    label
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw the plot: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Charts like those of measurements on a GPU, for a test that has none.
    fn charts() -> [Chart; 3] {
        let bounds = vec![("theoretical peak", 4814.0, PEAK_COLOR)];
        let bar = |name: &str, value, correct| Bar { name: name.to_owned(), value, correct };
        let bars = vec![bar("sequential", 822.0, true), bar("single_launch", 3379.0, false)];
        let points = (6..=12).step_by(2).map(|log| (1 << log, f64::from(log) * 100.0)).collect();
        let lines = |title: &str, horizontal, points| {
            let lines = vec![Line { name: "warpfold", color: PEAK_COLOR, points }];
            Chart::Lines(Lines { title: title.to_owned(), horizontal, lines, bounds: bounds.clone() })
        };
        [
            Chart::Bars(Bars { title: "Sums".to_owned(), quantity: "GB/s", bars, bounds: bounds.clone() }),
            lines("Lengths", Horizontal::Elements, points),
            lines("Kinds", Horizontal::Exponents, vec![(8, 4000.0), (250, 2000.0)]),
        ]
    }

    #[test]
    fn ticks_have_no_needless_digits() {
        for (value, label) in [
            (0.0, "0"),
            (-0.0, "0"),
            (0.5, "0.5"),
            (0.1 + 0.2, "0.3"),
            (200.0, "200"),
            (1000.0, "1,000"),
            (1e6, "1,000,000"),
            (123_456.5, "123,456.5"),
            (-2000.0, "-2,000"),
        ] {
            assert_eq!(tick(value), label, "{value}");
        }
    }

    #[test]
    fn charts_have_names_axes_and_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.svg");
        draw(&charts(), &PlotFile::try_from(file.clone().into_os_string()).unwrap()).unwrap();
        let svg = std::fs::read_to_string(&file).unwrap();
        for part in [
            "<svg",
            "Sums",
            "sequential",
            "single_launch",
            "GB/s",
            "4,000",
            "theoretical peak, 4814 GB/s",
            "Lengths",
            "elements",
            "warpfold",
            "2^12",
            "Kinds",
            "exponents of the elements",
        ] {
            assert!(svg.contains(part), "{part} is not in the chart");
        }
        assert!(!svg.contains(".0\n"), "a tick has needless digits: {svg}");
        // A folder instead of a file: an error, and no partial file.
        let folder = file.join("b.svg");
        assert!(draw(&charts(), &PlotFile::try_from(folder.into_os_string()).unwrap()).is_err());
    }
}
