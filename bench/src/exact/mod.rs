//! `bench exact`: shows what an exact sum is, and compares exact results with those of other machines.

mod hashes;
mod numbers;
mod operations;
mod orders;

use std::io::{self, StdoutLock, Write};

use comfy_table::Cell;
use serde::Serialize;

use crate::cells::{csv_field, or_dash, right, verdict};
use crate::device::Device;
use crate::number::Value;
use crate::options::{Format, Opened, Output};
use crate::outcome::{Outcome, finish};
use crate::table::{Columns, Layout};
use hashes::Hashed;
pub use numbers::{Kind, OfBits, Random, vectors};
use orders::{Row, Table};

/// The output of the command.
#[derive(Serialize)]
struct Report {
    device: Device,
    tables: Vec<Table>,
    hashes: Vec<Hashed>,
    hashes_stored_by: &'static str,
}

pub fn run(gpu: &Opened, output: &Output) -> anyhow::Result<Outcome> {
    let report = Report {
        device: Device::of(gpu)?,
        tables: vec![orders::cancellation(gpu)?, orders::orders(gpu)?, orders::neighbours(gpu)?],
        hashes: hashes::all(gpu)?,
        hashes_stored_by: hashes::STORED_BY,
    };
    let write = |out: &mut StdoutLock<'_>| match output.format {
        Format::Table | Format::Markdown => report.write_tables(out, &Layout::of(output)),
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &report).map_err(Into::into).and_then(|()| writeln!(out))
        }
        Format::Csv => report.write_csv(out),
    };
    Ok(finish(write, report.is_correct(), output, Vec::new))
}

impl Report {
    fn is_correct(&self) -> bool {
        self.tables.iter().flat_map(|table| &table.rows).all(|row| row.correct)
            && self.hashes.iter().all(|hashed| hashed.correct)
    }

    fn write_tables(&self, out: &mut impl Write, layout: &Layout) -> io::Result<()> {
        writeln!(out, "{}", self.device.name)?;
        for table in &self.tables {
            writeln!(out, "\nSum of {}\n{}", table.input, of_sums(&table.rows).table(layout))?;
            for row in table.rows.iter().filter(|row| !row.correct) {
                writeln!(out, "WRONG: {}: the bits should be {}", row.case, row.expected_bits)?;
            }
            writeln!(out, "{}", layout.paragraph(table.note))?;
        }
        writeln!(out, "\nHashes of exact results\n{}", of_hashes(&self.hashes).table(layout))?;
        for hashed in self.hashes.iter().filter(|hashed| !hashed.correct) {
            writeln!(out, "WRONG: {}: {}", hashed.dtype, hashed.wrong.as_deref().unwrap_or("the hash"))?;
        }
        let note = format!(
            "The inputs are fixed: vectors, rows and columns of ordinary, wide, subnormal and cancelling numbers. The \
             results are sums, means, sums of squares, norms and dot products. Each was compared with the host's. A \
             hash is the CRC-32 of the bits of all results of a type. The stored hashes are those of {}.",
            self.hashes_stored_by
        );
        writeln!(out, "{}", layout.paragraph(&note))?;
        layout.write_left_out(out)
    }

    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "table,case,f32_loop,f64_loop,exact,bits,expected_bits,correct")?;
        for (table, row) in self.tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row))) {
            let (case, shown) =
                (csv_field(row.case), |value: Option<Value>| value.map_or_else(String::new, |value| value.to_string()));
            let (f32_loop, f64_loop) = (shown(row.f32_loop), shown(row.f64_loop));
            let Row { exact, bits, expected_bits, correct, .. } = row;
            writeln!(out, "{},{case},{f32_loop},{f64_loop},{exact},{bits},{expected_bits},{correct}", table.name)?;
        }
        for Hashed { dtype, hash, stored, correct, .. } in &self.hashes {
            writeln!(out, "hashes,{dtype},,,,{hash:#010x},{stored:#010x},{correct}")?;
        }
        Ok(())
    }
}

fn of_sums(rows: &[Row]) -> Columns {
    let mut columns = Columns::default();
    columns.add(0, "elements", rows.iter().map(|row| Cell::new(row.case)));
    if rows.iter().any(|row| row.f32_loop.is_some()) {
        let shown = |value: Option<Value>| or_dash(value.map(|value| value.to_string()));
        columns.add(0, "loop in f32", rows.iter().map(|row| shown(row.f32_loop)));
        columns.add(1, "loop in f64", rows.iter().map(|row| shown(row.f64_loop)));
    }
    columns.add(0, "exact sum", rows.iter().map(|row| right(row.exact)));
    columns.add(0, "its bits", rows.iter().map(|row| right(&row.bits)));
    columns.add(0, "result", rows.iter().map(|row| verdict(Some(row.correct))));
    columns
}

fn of_hashes(hashes: &[Hashed]) -> Columns {
    let mut columns = Columns::default();
    columns.add(0, "type", hashes.iter().map(|hashed| Cell::new(hashed.dtype)));
    columns.add(0, "results", hashes.iter().map(|hashed| right(hashed.results)));
    columns.add(0, "hash", hashes.iter().map(|hashed| right(format!("{:#010x}", hashed.hash))));
    columns.add(0, "stored", hashes.iter().map(|hashed| right(format!("{:#010x}", hashed.stored))));
    columns.add(0, "result", hashes.iter().map(|hashed| verdict(Some(hashed.correct))));
    columns
}
