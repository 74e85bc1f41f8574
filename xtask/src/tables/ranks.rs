//! The page of sums and all-reduces over several GPUs, from the reports of `python -m warpfold.bench_ranks`.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::markdown::{Table, digits, or_dash, paragraph};
use super::page::bold_if_slower;
use super::runs::Run;

/// A report of `bench_ranks.py`, of one number of ranks.
#[derive(Debug, Deserialize)]
struct Report {
    ranks: usize,
    /// The number of GPUs that they have together; 0 on the host.
    gpus: usize,
    device: String,
    backend: String,
    /// Whether NCCL was allowed NVLink multicast.
    multicast: bool,
    versions: BTreeMap<String, String>,
    /// The number of elements of each rank's sums.
    elements: usize,
    runs: usize,
    /// The number of all-reduces in a row. Older reports have none.
    in_a_row: Option<usize>,
    hash: String,
    sums: Vec<Sum>,
    all_reduces: Vec<AllReduce>,
}

/// A sum over all ranks, and that of one rank's elements alone.
#[derive(Debug, Deserialize)]
struct Sum {
    case: String,
    us: f64,
    alone_us: f64,
}

/// An all-reduce of a tensor.
#[derive(Debug, Deserialize)]
struct AllReduce {
    dtype: String,
    mebibytes: usize,
    engine_us: f64,
    us: f64,
    /// The times of each of several all-reduces in a row.
    engine_us_in_a_row: Option<f64>,
    us_in_a_row: Option<f64>,
}

/// The assumptions of docs/notes/distributed.md: two small collectives with the host's wait, and the rate of a kernel.
const COLLECTIVES_US: f64 = 100.0;
const BYTES_PER_US: f64 = 4e6;

impl Report {
    /// Whether the times are those of GPUs that nothing shares.
    fn has_times(&self) -> bool {
        self.gpus == self.ranks
    }
}

/// Writes the page.
pub fn write(runs: &[Run]) -> anyhow::Result<String> {
    let read = |run| Ok((run, Run::report::<Report>(run)?));
    let mut all = runs.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    all.sort_by_key(|(_, report)| report.ranks);
    let has_times = all.iter().filter(|(_, report)| report.has_times());
    let (run, first) = has_times.clone().chain(&all).next().context("no runs")?;
    for (other, report) in has_times {
        let of_run = |run: &Run| (run.commit.clone(), run.date.clone(), run.driver.clone());
        let is_same = of_run(other) == of_run(run)
            && (&report.device, &report.versions, report.elements, report.runs)
                == (&first.device, &first.versions, first.elements, first.runs);
        ensure!(is_same, "the runs of {} and {} ranks differ in more than that", first.ranks, report.ranks);
    }
    let reports: Vec<&Report> = all.iter().map(|(_, report)| report).collect();
    for report in &reports {
        ensure!(report.hash == first.hash, "{} and {} ranks have other hashes", first.ranks, report.ranks);
    }
    let versions: Vec<String> = first.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let mut lines = vec!["# Sums and all-reduces over several GPUs".to_owned(), String::new()];
    let texts = [
        format!(
            "{}; {}, CUDA {}. Measured on {} at commit {}.",
            first.device,
            versions.join(", "),
            or_dash(run.driver.clone()),
            run.date,
            run.commit
        ),
        format!(
            "Each time is the median of {} runs, of each of which the time of the slowest rank counts, with the host's \
             part. {} \"Predicted\" is by the rules of [the note on ranks](../notes/distributed.md).",
            first.runs,
            multicast(&reports)
        ),
    ];
    for text in texts {
        lines.extend(paragraph(&text));
        lines.push(String::new());
    }
    section(&mut lines, "One hash", HASHES, hashes(&reports));
    let elements = first.elements;
    let shown = if elements.is_power_of_two() { format!("2^{}", elements.ilog2()) } else { elements.to_string() };
    let text = format!(
        "Microseconds for {shown} `float32` on each GPU. \"Scaling\" is the time of one GPU over that of all; the goal \
         is 0.95."
    );
    section(&mut lines, "Weak scaling", &text, scaling(&reports));
    let in_a_row = first.in_a_row.map(|count| format!(", and of each of {count} in a row, as in a step of training"));
    let text = format!(
        "Microseconds of one all-reduce{}. \"x\" is the engine's time over that of `warpfold.torch.all_reduce`, whose \
         sums are exact; the goal is 0.7.",
        in_a_row.unwrap_or_default()
    );
    section(&mut lines, "All-reduces of tensors", &text, all_reduces(&reports));
    let missing: Vec<String> = [1, 2, 4, 8]
        .into_iter()
        .filter(|&ranks| !reports.iter().any(|report| report.ranks == ranks && report.has_times()))
        .map(|ranks| ranks.to_string())
        .collect();
    if !missing.is_empty() {
        lines.extend(["## Not run".to_owned(), String::new()]);
        lines.extend(paragraph(&format!("These numbers of GPUs of one host: {}.", missing.join(", "))));
        lines.push(String::new());
    }
    lines.extend(["## Run".to_owned(), String::new()]);
    lines.extend(paragraph(&format!(
        "`{}`, and the same for other numbers of ranks; `./run.sh ranks` in an unpacked bundle runs them. `cargo xtask \
         tables ranks FOLDER` wrote this page.",
        run.command
    )));
    Ok(lines.join("\n") + "\n")
}

const HASHES: &str = "The first digits of the SHA-256 of the sums, means and norms of one array of each type of \
    floats, 2^20 + 12345 elements, whose shards the ranks have. Ranks may share a GPU.";

fn multicast(reports: &[&Report]) -> &'static str {
    match reports.iter().any(|report| report.has_times() && report.multicast) {
        true => "NCCL was allowed NVLink multicast.",
        false => "NVLink multicast was off (`NCCL_NVLS_ENABLE=0`): NCCL may be faster with it, and was not run so.",
    }
}

/// A heading, a text and a table, if the table has rows.
fn section(lines: &mut Vec<String>, heading: &str, text: &str, table: Table) {
    if table.is_empty() {
        return;
    }
    lines.extend([format!("## {heading}"), String::new()]);
    lines.extend(paragraph(text));
    lines.push(String::new());
    lines.extend(table.lines());
    lines.push(String::new());
}

fn hashes(reports: &[&Report]) -> Table {
    let mut table = Table::new(["ranks", "GPUs", "backend", "hash"]);
    for Report { ranks, gpus, backend, hash, .. } in reports {
        let hash: String = hash.chars().take(16).collect();
        table.push([ranks.to_string(), gpus.to_string(), backend.clone(), format!("`{hash}`")]);
    }
    table
}

fn scaling(reports: &[&Report]) -> Table {
    let mut table = Table::new(["", "GPUs", "over all, us", "one alone, us", "scaling", "predicted"]);
    for report in reports.iter().filter(|report| report.has_times()) {
        for Sum { case, us, alone_us } in &report.sums {
            let predicted = if report.ranks == 1 { 1.0 } else { alone_us / (alone_us + COLLECTIVES_US) };
            let gpus = report.gpus.to_string();
            table.push([case.clone(), gpus, digits(*us), digits(*alone_us), digits(alone_us / us), digits(predicted)]);
        }
    }
    table
}

fn all_reduces(reports: &[&Report]) -> Table {
    let columns = ["dtype", "MiB", "GPUs", "engine", "exact", "x", "predicted", "in a row: engine", "exact", "x"];
    let mut table = Table::new(columns);
    // With one rank there is nothing to send.
    for report in reports.iter().filter(|report| report.has_times() && report.ranks > 1) {
        for AllReduce { dtype, mebibytes, engine_us, us, engine_us_in_a_row, us_in_a_row } in &report.all_reduces {
            let bytes = (mebibytes << 20) as f64 * (1.0 + 1.0 / report.ranks as f64);
            let predicted = engine_us / (engine_us + bytes / BYTES_PER_US);
            table.push([
                dtype.clone(),
                mebibytes.to_string(),
                report.gpus.to_string(),
                digits(*engine_us),
                digits(*us),
                bold_if_slower(engine_us / us),
                digits(predicted),
                or_dash(engine_us_in_a_row.map(digits)),
                or_dash(us_in_a_row.map(digits)),
                or_dash(engine_us_in_a_row.zip(*us_in_a_row).map(|(engine, us)| bold_if_slower(engine / us))),
            ]);
        }
    }
    table
}
