//! Charts of bars, one for each kernel.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::{Bound, FRAME_COLOR, MESH_COLOR, failed, tick};

const BAR: u32 = 26;
/// Title, axis and margins of a chart.
const FRAME: u32 = 110;

const BAR_COLOR: RGBColor = RGBColor(70, 110, 160);
const WRONG_COLOR: RGBColor = RGBColor(190, 50, 40);

/// A chart of bars, the first at the top.
pub struct Bars {
    pub title: String,
    /// The unit of a bar's length: `GB/s`.
    pub quantity: &'static str,
    pub bars: Vec<Bar>,
    pub bounds: Vec<Bound>,
}

/// A kernel and its measurement.
pub struct Bar {
    pub name: String,
    pub value: f64,
    pub correct: bool,
}

impl Bars {
    pub(super) fn height(&self) -> u32 {
        FRAME + BAR * self.bars.len() as u32
    }

    pub(super) fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: u32) -> anyhow::Result<()>
    where
        B::ErrorType: 'static,
    {
        let bars = self.bars.len() as i32;
        let fastest = self.bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
        let end = self.bounds.iter().map(|(_, value, _)| *value).fold(fastest, f64::max).max(1e-6) * 1.08;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 17 * scale))
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
            .x_desc(self.quantity)
            .x_label_formatter(&|value| tick(*value))
            .y_labels(self.bars.len())
            .y_label_formatter(&|place| match place {
                // The first kernel is at the top.
                SegmentValue::CenterOf(i) => {
                    let bar = usize::try_from(bars - 1 - i).ok().and_then(|i| self.bars.get(i));
                    bar.map(|bar| bar.name.clone()).unwrap_or_default()
                }
                _ => String::new(),
            })
            .label_style(("sans-serif", 13 * scale))
            .draw()
            .map_err(failed)?;
        chart
            .draw_series(self.bars.iter().enumerate().map(|(i, row)| {
                let place = bars - 1 - i as i32;
                let color = if row.correct { BAR_COLOR } else { WRONG_COLOR };
                let (low, high) = (SegmentValue::Exact(place), SegmentValue::Exact(place + 1));
                let mut bar = Rectangle::new([(0.0, low), (row.value, high)], color.filled());
                bar.set_margin(4 * scale, 4 * scale, 0, 0);
                bar
            }))
            .map_err(failed)?;
        for &(name, value, color) in &self.bounds {
            let ends = [(value, SegmentValue::Exact(0)), (value, SegmentValue::Exact(bars))];
            chart
                .draw_series(std::iter::once(PathElement::new(ends.to_vec(), color.stroke_width(2 * scale))))
                .map_err(failed)?
                .label(format!("{name}, {value:.0} GB/s"))
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18 * scale as i32, y)], color.stroke_width(2 * scale))
                });
        }
        if !self.bounds.is_empty() {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperRight)
                .margin(5 * scale)
                .legend_area_size(26 * scale)
                .background_style(WHITE.mix(0.85))
                .border_style(FRAME_COLOR)
                .label_font(("sans-serif", 12 * scale))
                .draw()
                .map_err(failed)?;
        }
        Ok(())
    }
}
