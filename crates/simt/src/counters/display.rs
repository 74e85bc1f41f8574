//! A profile as text: a table of each kernel's lines, and the advice on them.

use std::fmt::{self, Write as _};

use super::profile::{KernelProfile, Line, Profile};
use super::traffic::Counters;
use crate::text::counted;

/// The header of a kernel's table.
const HEADER: [&str; 7] = ["where", "requests", "lanes", "load", "store", "conflicts", "sync"];

/// A table for each kernel, in lines of about 100 characters, and what to change, the worst first.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, kernel) in self.kernels.iter().enumerate() {
            writeln!(f, "{}{kernel}", if i == 0 { "" } else { "\n" })?;
        }
        let all = self.advice();
        if !all.is_empty() {
            write!(f, "\nWhat to change, the worst first:")?;
        }
        for advice in all {
            write!(f, "\n{advice}")?;
        }
        Ok(())
    }
}

/// The table of the kernel's lines, the one with most requests first.
impl fmt::Display for KernelProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kernel, counted(self.grid, "block", "blocks"))?;
        write!(f, " of {}", counted(self.block, "thread", "threads"))?;
        if self.launches > 1 {
            write!(f, ", {} launches", self.launches)?;
        }
        let barriers = (10.0 * self.barriers_per_block()).round() / 10.0;
        write!(f, ", {} in each block", counted(barriers, "barrier", "barriers"))?;
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.counters.requests()));
        let rows: Vec<[String; 7]> = lines.into_iter().map(cells).collect();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([HEADER[column].len()]).max().unwrap_or(0)
        };
        let widths: [usize; 7] = std::array::from_fn(width);
        for row in [HEADER.map(str::to_owned)].into_iter().chain(rows) {
            let mut text = String::new();
            for (i, (cell, width)) in row.iter().zip(widths).enumerate() {
                // Words are on the left, numbers on the right.
                match i {
                    0 => write!(text, "{cell:width$}")?,
                    6 => write!(text, "  {cell}")?,
                    _ => write!(text, "  {cell:>width$}")?,
                }
            }
            write!(f, "\n  {}", text.trim_end())?;
        }
        Ok(())
    }
}

/// A row of the table.
fn cells(line: &Line) -> [String; 7] {
    let Line { counters, .. } = line;
    let percent = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{share:.1} %"));
    [
        line.to_string(),
        counters.requests().to_string(),
        counters.lanes_active().map_or_else(|| "-".to_owned(), |lanes| format!("{lanes:.1}")),
        percent(counters.global_loads.efficiency()),
        percent(counters.global_stores.efficiency()),
        counters.bank_conflicts().to_string(),
        synchronization(counters),
    ]
}

/// The operations that synchronize lanes: `2 barriers, 1 vote`.
fn synchronization(counters: &Counters) -> String {
    let kinds = [
        (counters.barriers, "barrier", "barriers"),
        (counters.warp_barriers, "warp barrier", "warp barriers"),
        (counters.shuffles, "shuffle", "shuffles"),
        (counters.votes, "vote", "votes"),
    ];
    let some = kinds.into_iter().filter(|(count, ..)| *count > 0);
    some.map(|(count, one, many)| counted(count, one, many)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::lane::{self, Access, Space};
    use crate::{Launch, Profile, profile};

    #[test]
    fn a_profile_is_a_table_with_advice() {
        let launch = Launch::new("strided", 2, 64);
        let strided = || lane::access(Space::Global, Access::Load, 4096 + 64 * lane::lane_id() as usize, 4);
        let (here, text) = (line!() - 1, profile(&launch, &strided).unwrap().to_string());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "strided: 2 blocks of 64 threads, 0 barriers in each block");
        assert!(lines[1].contains("requests  lanes"), "{text}");
        assert!(lines[2].contains(&format!("display.rs:{here}")) && lines[2].contains("12.5 %"), "{text}");
        assert_eq!(lines[4], "What to change, the worst first:");
        assert!(lines[5].contains("64 bytes apart"), "{text}");
        assert_eq!(Profile::default().to_string(), "");
    }

    #[test]
    fn a_coalesced_kernel_needs_no_advice() {
        let coalesced = || lane::access(Space::Global, Access::Load, 4096 + 4 * lane::lane_id() as usize, 4);
        let text = profile(&Launch::new("k", 1, 32), &coalesced).unwrap().to_string();
        assert!(text.contains("1 block of 32 threads") && !text.contains("What to change"), "{text}");
    }
}
