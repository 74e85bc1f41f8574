//! Bandwidths as a chart: a bar for each kernel, the device's peak and its copy as lines.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use plotters::prelude::*;

use crate::files;
use crate::report::{Report, Section};

/// Sizes in pixels; an SVG scales to any paper.
const WIDTH: u32 = 900;
const BAR: u32 = 26;
/// Title, axis and margins of a chart.
const FRAME: u32 = 110;

const BAR_COLOR: RGBColor = RGBColor(70, 110, 160);
const WRONG_COLOR: RGBColor = RGBColor(190, 50, 40);
const PEAK_COLOR: RGBColor = RGBColor(60, 60, 60);
const COPY_COLOR: RGBColor = RGBColor(200, 120, 20);

/// Draws every section of a report to `file`, one below the other. A drawing that fails leaves no half file.
pub fn draw(report: &Report, file: &Path) -> anyhow::Result<()> {
    let heights: Vec<u32> = report.sections.iter().map(|section| FRAME + BAR * section.rows.len() as u32).collect();
    let mut svg = String::new();
    {
        let size = (WIDTH, heights.iter().sum::<u32>().max(FRAME));
        let mut rest = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        rest.fill(&WHITE).map_err(failed)?;
        for (section, height) in report.sections.iter().zip(&heights) {
            let (area, below) = rest.split_vertically(*height);
            section_chart(&area, report, section)?;
            rest = below;
        }
        rest.present().map_err(failed)?;
    }
    let shown = file.display();
    let temporary = files::temporary(file).with_context(|| format!("cannot write `{shown}`"))?;
    fs::write(temporary.path(), svg).with_context(|| format!("cannot write `{shown}`"))?;
    temporary.persist(file).map_err(|error| error.error).with_context(|| format!("cannot write `{shown}`"))?;
    Ok(())
}

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw the plot: {error}")
}

fn section_chart<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    report: &Report,
    section: &Section,
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
        .caption(title, ("sans-serif", 17))
        .margin(12)
        .set_label_area_size(LabelAreaPosition::Left, 190)
        .set_label_area_size(LabelAreaPosition::Bottom, 42)
        .build_cartesian_2d(0.0..end, (0..bars - 1).into_segmented())
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(WHITE)
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
        .label_style(("sans-serif", 13))
        .draw()
        .map_err(failed)?;
    chart
        .draw_series(section.rows.iter().enumerate().map(|(i, row)| {
            let place = bars - 1 - i as i32;
            let color = if row.correct { BAR_COLOR } else { WRONG_COLOR };
            let (low, high) = (SegmentValue::Exact(place), SegmentValue::Exact(place + 1));
            let mut bar = Rectangle::new([(0.0, low), (row.gigabytes_per_second, high)], color.filled());
            bar.set_margin(4, 4, 0, 0);
            bar
        }))
        .map_err(failed)?;
    let mut has_lines = false;
    for (name, value, color) in lines {
        let Some(value) = value else { continue };
        has_lines = true;
        let ends = [(value, SegmentValue::Exact(0)), (value, SegmentValue::Exact(bars))];
        chart
            .draw_series(std::iter::once(PathElement::new(ends.to_vec(), color.stroke_width(2))))
            .map_err(failed)?
            .label(format!("{name}, {value:.0} GB/s"))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    if has_lines {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(PEAK_COLOR)
            .label_font(("sans-serif", 12))
            .draw()
            .map_err(failed)?;
    }
    Ok(())
}
