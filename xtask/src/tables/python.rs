//! The page of the Python package, from the report of `python/benchmarks/measure.py`.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde::Deserialize;

use super::markdown::{Table, digits, or_dash, paragraph};
use super::page::bold_if_slower;
use super::runs::{Run, present};

/// A report of `measure.py`.
#[derive(Debug, Deserialize)]
struct Report {
    #[serde(deserialize_with = "present")]
    gpu: Option<String>,
    cpu: String,
    cores: usize,
    versions: BTreeMap<String, String>,
    calls: Vec<Call>,
    bandwidths: Vec<Bandwidth>,
    host: Vec<OnHost>,
    overrides: Vec<Override>,
}

/// What a call costs the host.
#[derive(Debug, Deserialize)]
struct Call {
    case: String,
    peer_call: String,
    call: String,
    peer_us: f64,
    us: f64,
}

/// The time of a call on the device.
#[derive(Debug, Deserialize)]
struct Bandwidth {
    case: String,
    call: String,
    peer_call: String,
    mebibytes: usize,
    bytes: f64,
    peer_us: f64,
    us: f64,
    #[serde(deserialize_with = "present")]
    rust_us: Option<f64>,
}

/// The time for an element in host memory.
#[derive(Debug, Deserialize)]
struct OnHost {
    case: String,
    peer_call: String,
    peer_ns: f64,
    ns: f64,
}

/// A call of PyTorch's with and without `warpfold.torch.exact()`.
#[derive(Debug, Deserialize)]
struct Override {
    case: String,
    way: String,
    torch_us: f64,
    exact_us: f64,
}

/// Writes the page.
pub fn write(run: &Run) -> anyhow::Result<String> {
    let report: Report = run.report()?;
    ensure!(!report.host.is_empty(), "the run `{}` has no sums on the host", run.name);
    let mut lines = head(run, &report);
    section(&mut lines, "Calls", CALLS, calls(&report.calls));
    section(&mut lines, "Bandwidth", BANDWIDTHS, bandwidths(&report.bandwidths));
    section(&mut lines, "On the host", HOST, on_host(&report.host));
    section(&mut lines, "The override of PyTorch's operators", OVERRIDES, overrides(&report.overrides));
    lines.extend([String::new(), "## Run".to_owned(), String::new()]);
    lines.extend(paragraph(&format!(
        "`{}` took {} s; `./run.sh python` in an unpacked bundle runs it. `cargo xtask tables python FOLDER` wrote \
         this page.",
        run.command, run.seconds
    )));
    Ok(lines.join("\n") + "\n")
}

const CALLS: &str = "Microseconds that a call on 2^10 `float32` takes the host, on arrays of the library that is \
    named. The work is started, and waited for after 1,000 calls.";

const BANDWIDTHS: &str = "Times on the device, in a CUDA graph, of PyTorch's tensors of `float32` with 1,024 columns, \
    in microseconds. \"Rust\" is the same sum by `bench reduce` in the same run. GB/s counts each byte that is read or \
    written once.";

const HOST: &str = "Nanoseconds an element, by one thread. NumPy's sums are not exact. `math.fsum` takes an array of \
    doubles.";

const OVERRIDES: &str = "`float32`, in microseconds a call. PyTorch's own results are not exact.";

fn head(run: &Run, report: &Report) -> Vec<String> {
    let Report { gpu, cpu, cores, versions, .. } = report;
    let versions: Vec<String> = versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let text = format!(
        "{}; the host has {cores} cores ({cpu}). {}, CUDA {}. Measured on {} at commit {}.",
        or_dash(gpu.clone()),
        versions.join(", "),
        or_dash(run.driver.clone()),
        run.date,
        run.commit
    );
    let method = "Each time is the median of five runs. \"x\" is the other library's time over warpfold's: above 1 \
        warpfold is faster, bold is slower.";
    let mut lines = vec!["# The Python package".to_owned(), String::new()];
    for text in [text.as_str(), method] {
        lines.extend(paragraph(text));
        lines.push(String::new());
    }
    lines.pop();
    lines
}

/// A heading, a text and a table, if the table has rows.
fn section(lines: &mut Vec<String>, heading: &str, text: &str, table: Table) {
    if table.is_empty() {
        return;
    }
    lines.extend([String::new(), format!("## {heading}"), String::new()]);
    lines.extend(paragraph(text));
    lines.push(String::new());
    lines.extend(table.lines());
}

fn calls(rows: &[Call]) -> Table {
    let mut table = Table::new(["", "other library", "us", "warpfold", "us", "x"]);
    for Call { case, peer_call, call, peer_us, us } in rows {
        let calls = [peer_call, call].map(|call| format!("`{call}`"));
        let [peer_call, call] = calls;
        table.push([case.clone(), peer_call, digits(*peer_us), call, digits(*us), bold_if_slower(peer_us / us)]);
    }
    table
}

fn bandwidths(rows: &[Bandwidth]) -> Table {
    let mut table = Table::new(["", "MiB", "PyTorch", "us", "warpfold", "us", "GB/s", "Rust, us", "x"]);
    for Bandwidth { case, call, peer_call, mebibytes, bytes, peer_us, us, rust_us } in rows {
        let calls = [peer_call, call].map(|call| format!("`{call}`"));
        let [peer_call, call] = calls;
        table.push([
            case.clone(),
            mebibytes.to_string(),
            peer_call,
            digits(*peer_us),
            call,
            digits(*us),
            format!("{:.0}", bytes / us / 1e3),
            or_dash(rust_us.map(digits)),
            bold_if_slower(peer_us / us),
        ]);
    }
    table
}

fn on_host(rows: &[OnHost]) -> Table {
    let mut table = Table::new(["sum of", "other library", "ns", "warpfold, ns", "x"]);
    for OnHost { case, peer_call, peer_ns, ns } in rows {
        let peer = format!("`{peer_call}`");
        table.push([case.clone(), peer, digits(*peer_ns), digits(*ns), bold_if_slower(peer_ns / ns)]);
    }
    table
}

fn overrides(rows: &[Override]) -> Table {
    let mut table = Table::new(["", "measured", "PyTorch", "exact", "x"]);
    for Override { case, way, torch_us, exact_us } in rows {
        let times = [torch_us, exact_us].map(|us| digits(*us));
        let [torch, exact] = times;
        table.push([case.clone(), way.clone(), torch, exact, bold_if_slower(torch_us / exact_us)]);
    }
    table
}
