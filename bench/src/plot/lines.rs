//! Bandwidth over length, a line for each library.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Bound, FRAME_COLOR, MESH_COLOR, failed};

/// The chart's height in units of 1/96 inch.
pub(super) const HEIGHT: u32 = 460;

/// A chart of lines over the number of elements, in powers of two.
pub struct Lines {
    pub title: String,
    pub lines: Vec<Line>,
    pub bounds: Vec<Bound>,
}

/// The results of one library.
pub struct Line {
    pub name: &'static str,
    pub color: RGBColor,
    /// Elements, and GB/s.
    pub points: Vec<(usize, f64)>,
}

impl Lines {
    pub(super) fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: u32) -> anyhow::Result<()>
    where
        B::ErrorType: 'static,
    {
        let log = |elements: usize| (elements.max(1) as f64).log2();
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let (first, last) = all().fold((f64::MAX, f64::MIN), |(first, last), (elements, _)| {
            (first.min(log(*elements)), last.max(log(*elements)))
        });
        if first > last {
            return Ok(());
        }
        let fastest = all().map(|(_, bandwidth)| *bandwidth).fold(0.0, f64::max);
        let end = self.bounds.iter().map(|(_, value, _)| *value).fold(fastest, f64::max).max(1e-6) * 1.08;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 17 * scale))
            .margin(12 * scale)
            .set_label_area_size(LabelAreaPosition::Left, 70 * scale)
            .set_label_area_size(LabelAreaPosition::Bottom, 42 * scale)
            .build_cartesian_2d(first - 0.2..last + 0.2, 0.0..end)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(MESH_COLOR.stroke_width(scale))
            .axis_style(BLACK.stroke_width(scale))
            .set_all_tick_mark_size(5 * scale)
            .x_desc("elements")
            .y_desc("GB/s")
            .x_labels(((last - first) as usize + 1).min(24))
            .x_label_formatter(&|log| format!("2^{log:.0}"))
            .label_style(("sans-serif", 13 * scale))
            .draw()
            .map_err(failed)?;
        for line in &self.lines {
            let color = line.color;
            let points: Vec<_> = line.points.iter().map(|(elements, bandwidth)| (log(*elements), *bandwidth)).collect();
            chart
                .draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2 * scale)))
                .map_err(failed)?
                .label(line.name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18 * scale as i32, y)], color.stroke_width(3 * scale))
                });
            chart
                .draw_series(points.iter().map(|point| Circle::new(*point, 3 * scale, color.filled())))
                .map_err(failed)?;
        }
        for &(name, value, color) in &self.bounds {
            let ends = [(first - 0.2, value), (last + 0.2, value)];
            chart
                .draw_series(DashedLineSeries::new(ends, 6 * scale, 4 * scale, color.stroke_width(2 * scale)))
                .map_err(failed)?
                .label(format!("{name}, {value:.0} GB/s"))
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18 * scale as i32, y)], color.stroke_width(scale))
                });
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .margin(8 * scale)
            .legend_area_size(26 * scale)
            .background_style(WHITE.mix(0.85))
            .border_style(FRAME_COLOR)
            .label_font(("sans-serif", 12 * scale))
            .draw()
            .map_err(failed)
    }
}
