//! Charts of lines, one for each library: bandwidths over lengths, or over numbers of exponents.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Bound, FRAME_COLOR, MESH_COLOR, failed, tick};

/// The chart's height in units of 1/96 inch.
pub(super) const HEIGHT: u32 = 460;

/// The quantity on the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Horizontal {
    /// Numbers of elements, in powers of two.
    Elements,
    /// Numbers of exponents.
    Exponents,
}

impl Horizontal {
    fn position(self, number: usize) -> f64 {
        match self {
            Self::Elements => (number.max(1) as f64).log2(),
            Self::Exponents => number as f64,
        }
    }

    fn label(self, position: f64) -> String {
        match self {
            Self::Elements => format!("2^{position:.0}"),
            Self::Exponents => format!("{position:.0}"),
        }
    }

    fn labels(self, first: f64, last: f64) -> usize {
        match self {
            Self::Elements => ((last - first) as usize + 1).min(24),
            Self::Exponents => 12,
        }
    }
}

/// A chart of lines.
pub struct Lines {
    pub title: String,
    pub horizontal: Horizontal,
    pub lines: Vec<Line>,
    pub bounds: Vec<Bound>,
}

/// The results of one library.
pub struct Line {
    pub name: &'static str,
    pub color: RGBColor,
    /// Each point is the number on the horizontal axis, and the bandwidth in GB/s.
    pub points: Vec<(usize, f64)>,
}

impl Lines {
    pub(super) fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: u32) -> anyhow::Result<()>
    where
        B::ErrorType: 'static,
    {
        let horizontal = self.horizontal;
        let position = |number: usize| horizontal.position(number);
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let (first, last) = all().fold((f64::MAX, f64::MIN), |(first, last), (number, _)| {
            (first.min(position(*number)), last.max(position(*number)))
        });
        if first > last {
            return Ok(());
        }
        let (start, stop) = (first - 0.01 * (last - first) - 0.01, last + 0.01 * (last - first) + 0.01);
        let fastest = all().map(|(_, bandwidth)| *bandwidth).fold(0.0, f64::max);
        let end = self.bounds.iter().map(|(_, value, _)| *value).fold(fastest, f64::max).max(1e-6) * 1.08;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 17 * scale))
            .margin(12 * scale)
            .set_label_area_size(LabelAreaPosition::Left, 70 * scale)
            .set_label_area_size(LabelAreaPosition::Bottom, 42 * scale)
            .build_cartesian_2d(start..stop, 0.0..end)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(MESH_COLOR.stroke_width(scale))
            .axis_style(BLACK.stroke_width(scale))
            .set_all_tick_mark_size(5 * scale)
            .x_desc(match horizontal {
                Horizontal::Elements => "elements",
                Horizontal::Exponents => "exponents of the elements",
            })
            .y_desc("GB/s")
            .x_labels(horizontal.labels(first, last))
            .x_label_formatter(&|position| horizontal.label(*position))
            .y_label_formatter(&|value| tick(*value))
            .label_style(("sans-serif", 13 * scale))
            .draw()
            .map_err(failed)?;
        for line in &self.lines {
            let color = line.color;
            let points: Vec<_> =
                line.points.iter().map(|(number, bandwidth)| (position(*number), *bandwidth)).collect();
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
            let ends = [(start, value), (stop, value)];
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
            .position(match horizontal {
                Horizontal::Elements => SeriesLabelPosition::UpperLeft,
                Horizontal::Exponents => SeriesLabelPosition::LowerLeft,
            })
            .margin(8 * scale)
            .legend_area_size(26 * scale)
            .background_style(WHITE.mix(0.85))
            .border_style(FRAME_COLOR)
            .label_font(("sans-serif", 12 * scale))
            .draw()
            .map_err(failed)
    }
}
