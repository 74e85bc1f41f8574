//! Bandwidths as a chart: a bar for each kernel, the device's peak and its copy as lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;

use crate::files;
use crate::report::{Report, Section};

/// Where a plot goes, and as what.
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

/// A file's ending that says nothing of what to draw.
#[derive(Debug, thiserror::Error)]
#[error("plots are drawn as SVG or PNG: name a file that ends in .svg or .png")]
pub struct UnknownPicture;

impl FromStr for PlotFile {
    type Err = UnknownPicture;

    fn from_str(text: &str) -> Result<Self, UnknownPicture> {
        let path = PathBuf::from(text);
        let picture = match path.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => Picture::Svg,
            Some("png") => Picture::Png,
            _ => return Err(UnknownPicture),
        };
        Ok(Self { path, picture })
    }
}

/// Sizes in units of 1/96 inch, which are an SVG's pixels.
const WIDTH: u32 = 900;
const BAR: u32 = 26;
/// Title, axis and margins of a chart.
const FRAME: u32 = 110;

/// A PNG's pixels in such a unit: 288 to the inch, which prints well.
const PNG_SCALE: u32 = 3;
const PNG_PIXELS_PER_METER: u32 = (96.0 * PNG_SCALE as f64 / 0.0254) as u32;

const BAR_COLOR: RGBColor = RGBColor(70, 110, 160);
const WRONG_COLOR: RGBColor = RGBColor(190, 50, 40);
const MESH_COLOR: RGBColor = RGBColor(220, 220, 220);
const PEAK_COLOR: RGBColor = RGBColor(60, 60, 60);
const COPY_COLOR: RGBColor = RGBColor(200, 120, 20);

/// Draws every section of a report, one below the other. A drawing that fails leaves no half file.
pub fn draw(report: &Report, file: &PlotFile) -> anyhow::Result<()> {
    // In the program itself, because a machine with a GPU has often no font.
    register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).map_err(|_| failed("no font"))?;
    let contents = match file.picture {
        Picture::Svg => svg(report)?.into_bytes(),
        Picture::Png => png(report)?,
    };
    write(&file.path, &contents).with_context(|| format!("cannot write `{}`", file.path.display()))
}

fn write(path: &Path, contents: &[u8]) -> std::io::Result<()> {
    let temporary = files::temporary(path)?;
    fs::write(temporary.path(), contents)?;
    temporary.persist(path)?;
    Ok(())
}

fn svg(report: &Report) -> anyhow::Result<String> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size(report, 1)).into_drawing_area();
    sections(area, report, 1)?;
    Ok(svg)
}

fn png(report: &Report) -> anyhow::Result<Vec<u8>> {
    let (width, height) = size(report, PNG_SCALE);
    let mut pixels = vec![0; 3 * width as usize * height as usize];
    let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
    sections(area, report, PNG_SCALE)?;

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

fn height(section: &Section) -> u32 {
    FRAME + BAR * section.rows.len() as u32
}

fn size(report: &Report, scale: u32) -> (u32, u32) {
    (scale * WIDTH, scale * report.sections.iter().map(height).sum::<u32>().max(FRAME))
}

fn sections<B: DrawingBackend>(mut rest: DrawingArea<B, Shift>, report: &Report, scale: u32) -> anyhow::Result<()>
where
    B::ErrorType: 'static,
{
    rest.fill(&WHITE).map_err(failed)?;
    for section in &report.sections {
        let (area, below) = rest.split_vertically(scale * height(section));
        section_chart(&area, report, section, scale)?;
        rest = below;
    }
    rest.present().map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw the plot: {error}")
}

fn section_chart<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    report: &Report,
    section: &Section,
    scale: u32,
) -> anyhow::Result<()>
where
    B::ErrorType: 'static,
{
    let bars = section.rows.len() as i32;
    let lines = [
        ("theoretical peak", report.device.peak_gigabytes_per_second, PEAK_COLOR),
        ("copy on the device", report.copy_gigabytes_per_second, COPY_COLOR),
    ];
    let fastest = section.rows.iter().map(|row| row.gigabytes_per_second).fold(0.0, f64::max);
    let end = lines.iter().filter_map(|(_, value, _)| *value).fold(fastest, f64::max).max(1e-6) * 1.08;
    let title = format!("{} of {}, {}", section.family, section.input, report.device.name);
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 17 * scale))
        .margin(12 * scale)
        .set_label_area_size(LabelAreaPosition::Left, 190 * scale)
        .set_label_area_size(LabelAreaPosition::Bottom, 42 * scale)
        .build_cartesian_2d(0.0..end, (0..bars - 1).into_segmented())
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(WHITE)
        .bold_line_style(MESH_COLOR.stroke_width(scale))
        .axis_style(BLACK.stroke_width(scale))
        .set_all_tick_mark_size(5 * scale)
        .x_desc("GB/s")
        .y_labels(section.rows.len())
        .y_label_formatter(&|place| match place {
            // The first kernel stands at the top.
            SegmentValue::CenterOf(i) => {
                let row = usize::try_from(bars - 1 - i).ok().and_then(|i| section.rows.get(i));
                row.map(|row| row.kernel.clone()).unwrap_or_default()
            }
            _ => String::new(),
        })
        .label_style(("sans-serif", 13 * scale))
        .draw()
        .map_err(failed)?;
    chart
        .draw_series(section.rows.iter().enumerate().map(|(i, row)| {
            let place = bars - 1 - i as i32;
            let color = if row.correct { BAR_COLOR } else { WRONG_COLOR };
            let (low, high) = (SegmentValue::Exact(place), SegmentValue::Exact(place + 1));
            let mut bar = Rectangle::new([(0.0, low), (row.gigabytes_per_second, high)], color.filled());
            bar.set_margin(4 * scale, 4 * scale, 0, 0);
            bar
        }))
        .map_err(failed)?;
    let mut has_lines = false;
    for (name, value, color) in lines {
        let Some(value) = value else { continue };
        has_lines = true;
        let ends = [(value, SegmentValue::Exact(0)), (value, SegmentValue::Exact(bars))];
        chart
            .draw_series(std::iter::once(PathElement::new(ends.to_vec(), color.stroke_width(2 * scale))))
            .map_err(failed)?
            .label(format!("{name}, {value:.0} GB/s"))
            .legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 18 * scale as i32, y)], color.stroke_width(2 * scale))
            });
    }
    if has_lines {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .margin(5 * scale)
            .legend_area_size(26 * scale)
            .background_style(WHITE.mix(0.85))
            .border_style(PEAK_COLOR)
            .label_font(("sans-serif", 12 * scale))
            .draw()
            .map_err(failed)?;
    }
    Ok(())
}
