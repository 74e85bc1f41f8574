//! Tables that fit in the terminal: each column has a rank, and the columns of the highest ranks are left out first.

use std::cell::RefCell;
use std::io;

use comfy_table::{Cell, ContentArrangement, Table, presets};

use crate::options::{Format, Output};

/// The width of a line if standard output is not a terminal.
const WIDTH: usize = 100;
/// The width of tables for narrower terminals, which then break the lines.
const MIN_WIDTH: usize = 80;

/// The style and width of tables, and the columns that did not fit.
pub struct Layout {
    preset: &'static str,
    /// The width of a line; `None` if everything is shown.
    width: Option<usize>,
    left_out: RefCell<Vec<&'static str>>,
}

impl Layout {
    pub fn of(output: &Output) -> Self {
        // The tables of a Markdown document are laid out by its viewer.
        let (preset, is_narrow) = match output.format {
            Format::Markdown => (presets::ASCII_MARKDOWN, false),
            _ => (presets::UTF8_BORDERS_ONLY, !output.wide),
        };
        let terminal = || Table::new().width().map_or(WIDTH, usize::from).max(MIN_WIDTH);
        Self::new(preset, is_narrow.then(terminal))
    }

    pub fn new(preset: &'static str, width: Option<usize>) -> Self {
        Self { preset, width, left_out: RefCell::default() }
    }

    /// A paragraph, wrapped at the width of the tables. Line breaks in `text` are kept.
    pub fn paragraph(&self, text: &str) -> String {
        let lines = text.lines().map(|line| {
            let mut broken = String::new();
            let mut used = 0;
            for word in line.split(' ') {
                let len = word.chars().count();
                let is_full = self.width.is_some_and(|width| used > 0 && used + 1 + len > width);
                if used > 0 {
                    broken.push(if is_full { '\n' } else { ' ' });
                }
                used = if is_full || used == 0 { len } else { used + 1 + len };
                broken.push_str(word);
            }
            broken
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Prints which columns did not fit. To be called after all tables.
    pub fn write_left_out(&self, out: &mut impl io::Write) -> io::Result<()> {
        let left_out = self.left_out.borrow();
        if left_out.is_empty() {
            return Ok(());
        }
        let text = format!("Left out to fit the width: {}. --wide shows all columns.", left_out.join(", "));
        writeln!(out, "\n{}", self.paragraph(&text))
    }
}

/// The columns of a table.
#[derive(Default)]
pub struct Columns(Vec<Column>);

struct Column {
    name: &'static str,
    rank: u8,
    cells: Vec<Cell>,
}

impl Columns {
    /// Adds a column on the right. If not all columns fit, those of the lowest ranks are shown; columns of rank 0
    /// always are.
    pub fn add(&mut self, rank: u8, name: &'static str, cells: impl Iterator<Item = Cell>) -> &mut Self {
        self.0.push(Column { name, rank, cells: cells.collect() });
        self
    }

    /// The table of the columns that fit.
    pub fn table(self, layout: &Layout) -> Table {
        let mut table = Table::new();
        table.load_preset(layout.preset);
        let is_shown = match layout.width {
            None => {
                table.set_content_arrangement(ContentArrangement::Disabled);
                vec![true; self.0.len()]
            }
            Some(width) => {
                table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width as u16);
                self.fitting(width)
            }
        };
        let (shown, left_out): (Vec<_>, Vec<_>) = self.0.into_iter().zip(is_shown).partition(|(_, is_shown)| *is_shown);
        for (Column { name, .. }, _) in left_out {
            let mut names = layout.left_out.borrow_mut();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        table.set_header(shown.iter().map(|(column, _)| column.name));
        let mut cells: Vec<_> = shown.into_iter().map(|(column, _)| column.cells.into_iter()).collect();
        // All columns have the same number of cells.
        while let Some(row) =
            cells.iter_mut().map(Iterator::next).collect::<Option<Vec<_>>>().filter(|row| !row.is_empty())
        {
            table.add_row(row);
        }
        table
    }

    /// Which columns fit in a line of `width` characters.
    fn fitting(&self, width: usize) -> Vec<bool> {
        let mut by_rank: Vec<usize> = (0..self.0.len()).collect();
        by_rank.sort_by_key(|&i| self.0[i].rank);
        let mut is_shown = vec![false; self.0.len()];
        // The left border. Each column has a space on either side, and a line to its right.
        let mut used = 1;
        for i in by_rank {
            used += 3 + self.0[i].width();
            // After a column that does not fit, all columns of higher ranks are left out, so that tables of the same
            // kind have the same columns.
            if self.0[i].rank > 0 && used > width {
                break;
            }
            is_shown[i] = true;
        }
        is_shown
    }
}

impl Column {
    fn width(&self) -> usize {
        let lines = self.cells.iter().map(Cell::content);
        lines.map(|text| text.chars().count()).max().unwrap_or(0).max(self.name.chars().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Columns {
        let mut columns = Columns::default();
        let cells = |text: &'static str| std::iter::repeat_n(text, 2).map(Cell::new);
        columns.add(0, "kernel", cells("kernel_name_"));
        columns.add(3, "why", cells("because of this and of that"));
        columns.add(1, "time", cells("10.00 us"));
        columns.add(2, "share", cells("90.0 %"));
        columns
    }

    #[test]
    fn the_columns_of_the_lowest_ranks_are_shown() {
        for (width, header, left_out) in [
            (Some(100), "kernel why time share", ""),
            (Some(66), "kernel why time share", ""),
            (Some(65), "kernel time share", "why"),
            (Some(30), "kernel time", "why share"),
            (Some(16), "kernel", "why time share"),
            (None, "kernel why time share", ""),
        ] {
            let layout = Layout::new(presets::UTF8_BORDERS_ONLY, width);
            let table = columns().table(&layout);
            let names: Vec<_> = table.header().unwrap().cell_iter().map(Cell::content).collect();
            assert_eq!(names.join(" "), header, "{width:?}");
            assert_eq!(layout.left_out.borrow().join(" "), left_out, "{width:?}");
            let longest = table.to_string().lines().map(|line| line.chars().count()).max().unwrap();
            assert!(width.is_none_or(|width| longest <= width), "{width:?}: {table}");
            assert_eq!(table.row_iter().count(), 2);
        }
        assert_eq!(Columns::default().table(&Layout::new("", None)).row_iter().count(), 0);
    }

    #[test]
    fn paragraphs_are_as_wide_as_tables() {
        let layout = Layout::new("", Some(10));
        assert_eq!(layout.paragraph("one two three four"), "one two\nthree four");
        assert_eq!(layout.paragraph("one\ntwo"), "one\ntwo");
        assert_eq!(layout.paragraph("a_very_long_word and"), "a_very_long_word\nand");
        assert_eq!(Layout::new("", None).paragraph("one two three four"), "one two three four");
    }
}
