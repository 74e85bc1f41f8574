//! Markdown tables and paragraphs, and the format of numbers.

use super::MAX_COLUMNS;

/// A table: a header, and rows that have as many cells as the header.
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    pub fn push(&mut self, row: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(row.into_iter().map(Into::into).collect());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table's lines. The cells are padded if the lines then fit in the maximum width.
    pub fn lines(mut self) -> Vec<String> {
        // A column that has only dashes is left out.
        let has_content = |i: usize| self.rows.iter().any(|row| row[i] != "-");
        let kept: Vec<bool> = (0..self.header.len()).map(|i| i == 0 || has_content(i)).collect();
        for row in std::iter::once(&mut self.header).chain(&mut self.rows) {
            let mut kept = kept.iter();
            row.retain(|_| *kept.next().unwrap_or(&true));
        }
        // Numbers are right-aligned.
        let is_number = |text: &String| text.chars().all(|c| c.is_ascii_digit() || "., ()*-".contains(c));
        let is_right: Vec<bool> =
            (0..self.header.len()).map(|i| i > 0 && self.rows.iter().all(|row| is_number(&row[i]))).collect();
        let rule: Vec<String> = is_right.iter().map(|&right| if right { "---:" } else { "---" }.to_owned()).collect();
        let all: Vec<&Vec<String>> = std::iter::once(&self.header).chain([&rule]).chain(&self.rows).collect();
        let width = |i: usize| all.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let is_padded = widths.iter().sum::<usize>() + 3 * widths.len() < MAX_COLUMNS;
        let cell = |i: usize, text: &String| match (is_padded, is_right[i]) {
            (false, _) => text.clone(),
            (true, false) => format!("{text:0$}", widths[i]),
            (true, true) => format!("{text:>0$}", widths[i]),
        };
        let line = |row: &&Vec<String>| {
            let cells: Vec<String> = row.iter().enumerate().map(|(i, text)| cell(i, text)).collect();
            format!("| {} |", cells.join(" | "))
        };
        all.iter().map(line).collect()
    }
}

/// A paragraph, wrapped at the maximum width.
pub fn paragraph(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("`lines` is never empty");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= MAX_COLUMNS {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// The anchor that GitHub generates for a heading.
pub fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_')).collect::<String>().replace(' ', "-")
}

/// A number with three digits, or more if its integer part has more.
pub fn digits(number: f64) -> String {
    match number {
        number if number < 9.995 => format!("{number:.2}"),
        number if number < 99.95 => format!("{number:.1}"),
        number => format!("{number:.0}"),
    }
}

/// The text, or a dash for a missing value.
pub fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.876, 9.994, 9.996, 99.94, 99.96, 1234.5].map(digits);
        assert_eq!(shown, ["0.88", "9.99", "10.0", "99.9", "100", "1234"]);
    }

    #[test]
    fn columns_without_numbers_are_left_out() {
        let mut table = Table::new(["shape", "time", "CUB"]);
        table.push(["2^10", "1.23", "-"]);
        table.push(["2^20", "10.5", "-"]);
        assert_eq!(table.lines(), ["| shape | time |", "| ---   | ---: |", "| 2^10  | 1.23 |", "| 2^20  | 10.5 |"]);
    }

    #[test]
    fn anchors_equal_those_of_github() {
        assert_eq!(anchor("Sums of f32"), "sums-of-f32");
        assert_eq!(anchor("Rows, and columns"), "rows-and-columns");
    }

    #[test]
    fn paragraphs_break_between_words() {
        let lines = paragraph(&"word ".repeat(60));
        assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [119, 119, 59]);
    }
}
