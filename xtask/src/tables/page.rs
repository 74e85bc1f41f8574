//! A page: a header, a summary, the cases that are slower than a peer, and a section for each subject.

use super::markdown::{Table, anchor, digits, or_dash, paragraph};
use super::runs::{Calls, Device, Ladders, Reduction, Reductions, Run, Transpose, Transposes};

/// A case, compared with its peers.
struct Compared {
    name: String,
    /// The best peer's time divided by warpfold's; `None` without a peer.
    speedup: Option<f64>,
    /// Whether the result was correct; `None` if the case has no result.
    correct: Option<bool>,
}

/// A table with a heading.
struct Section {
    heading: &'static str,
    /// A paragraph that explains the table's cells.
    text: String,
    table: Table,
    peers: Peers,
    cases: Vec<Compared>,
}

/// The peers that some rows were compared with, and their calls.
#[derive(Default)]
struct Peers(Vec<(&'static str, Vec<String>)>);

impl Peers {
    /// Those of reductions.
    fn of(rows: &[&Reduction]) -> Self {
        let mut peers = Self::default();
        peers.add("CUB", rows.iter().filter_map(|row| row.cub_call.as_ref()));
        peers.add("cuBLAS", rows.iter().filter_map(|row| row.cublas_call.as_ref()));
        peers.add("cuTENSOR", rows.iter().filter_map(|row| row.cutensor_call.as_ref()));
        peers.add("PyTorch", rows.iter().filter_map(|row| row.pytorch_call.as_ref()));
        peers
    }

    /// Those of transposes.
    fn of_transposes(rows: &[Transpose]) -> Self {
        let mut peers = Self::default();
        peers.add("cuBLAS", rows.iter().filter_map(|row| row.geam_call.as_ref()));
        peers.add("cuTENSOR", rows.iter().filter_map(|row| row.cutensor_call.as_ref()));
        peers.add("PyTorch", rows.iter().filter_map(|row| row.pytorch_call.as_ref()));
        peers
    }

    /// Adds a peer with its calls, each once, if there are any.
    fn add<'a>(&mut self, name: &'static str, calls: impl Iterator<Item = &'a String>) {
        let mut distinct: Vec<String> = Vec::new();
        for call in calls {
            // The function's name is code, and what follows it is not.
            let call = match call.split_once(' ') {
                Some((function, how)) => format!("`{function}` {how}"),
                None => format!("`{call}`"),
            };
            if !distinct.contains(&call) {
                distinct.push(call);
            }
        }
        if !distinct.is_empty() {
            self.0.push((name, distinct));
        }
    }

    /// `CUB, PyTorch`.
    fn names(&self) -> String {
        self.0.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// A sentence with the calls of each peer, to follow another one; empty without peers.
    fn calls(&self) -> String {
        let of_peer = |(name, calls): &(&str, Vec<String>)| format!("{name}: {}", calls.join(", "));
        let all = self.0.iter().map(of_peer).collect::<Vec<_>>().join("; ");
        if all.is_empty() { all } else { format!(" {all}.") }
    }
}

/// Writes a device's page. It names at most `max_named` of the cases that are slower than a peer.
pub fn write(name: &str, runs: &[Run], max_named: usize) -> anyhow::Result<String> {
    let mut sections = Vec::new();
    let (mut cub, mut cutensor, mut read, mut copy) = (None, None, None, None);
    let mut reductions: Vec<(&str, Vec<Reduction>)> = Vec::new();
    for run in runs {
        match run.name.as_str() {
            "transposes" => {
                let report: Transposes = run.report()?;
                cutensor = cutensor.or(report.cutensor_version);
                sections.extend(transposes(&report.rows));
            }
            "ladders" => {
                let ladders: Ladders = run.report()?;
                copy = ladders.copy_gigabytes_per_second;
                sections.push(ladders_section(&ladders));
            }
            "calls" => sections.push(calls(&run.report()?)),
            name => {
                let report: Reductions = run.report()?;
                cub = cub.or(report.cub_version);
                cutensor = cutensor.or(report.cutensor_version);
                read = read.or(report.read_gigabytes_per_second);
                reductions.push((name, report.sections.into_iter().flat_map(|section| section.rows).collect()));
            }
        }
    }
    let of = |name: &str| {
        let rows = reductions.iter().find(|(run, _)| *run == name);
        rows.map_or(&[][..], |(_, rows)| &rows[..])
    };
    let first = [
        lengths(of("sums")),
        types(of("sums")),
        pairwise(of("pairwise")),
        operators(of("operators")),
        matrices(of("rows"), of("columns")),
        segments(of("segments")),
    ];
    let sections: Vec<Section> = first.into_iter().flatten().chain(sections).collect();

    let mut lines = head(&runs[0].device()?, runs, [("CUB", cub), ("cuTENSOR", cutensor)], read, copy);
    let summary = summary(&sections);
    let is_beside_peers = !summary.is_empty();
    lines.extend(summary.into_iter().chain(is_beside_peers.then(String::new)));
    lines.extend(slower(&sections, max_named));
    for section in sections {
        lines.extend([String::new(), format!("## {}", section.heading), String::new()]);
        lines.extend(paragraph(&section.text));
        lines.push(String::new());
        lines.extend(section.table.lines());
    }
    lines.extend(commands(name, runs));
    Ok(lines.join("\n") + "\n")
}

/// The title, the device and the versions, and the method.
fn head(
    device: &Device,
    runs: &[Run],
    libraries: [(&str, Option<String>); 2],
    read: Option<f64>,
    copy: Option<f64>,
) -> Vec<String> {
    let Device { name: card, multiprocessors, .. } = device;
    let one = |of: fn(&Run) -> Option<&String>| {
        let mut all: Vec<&String> = runs.iter().filter_map(of).collect();
        all.sort();
        all.dedup();
        (!all.is_empty()).then(|| all.into_iter().map(String::as_str).collect::<Vec<_>>().join(" and "))
    };
    let mut text = format!("{card}: {multiprocessors} multiprocessors");
    if device.backend != "cuda" {
        text = format!("The executor on a CPU ({card}): the times are a CPU's, and say nothing about a GPU");
    }
    let mut add = |what: Option<String>| what.into_iter().for_each(|what| text.push_str(&format!(", {what}")));
    add(device.l2_bytes.map(|bytes| format!("{} MiB of L2", bytes >> 20)));
    add(device.peak_gigabytes_per_second.map(|peak| format!("{peak:.0} GB/s theoretical")));
    add(read.map(|read| format!("{read:.0} GB/s by a read of 4 GiB")));
    add(copy.map(|copy| format!("{copy:.0} GB/s by a stream copy of 1 GiB")));
    add(one(|run| run.driver.as_ref()).map(|driver| format!("driver {driver}")));
    add(device.driver.as_ref().map(|cuda| format!("CUDA {cuda}")));
    for (name, version) in libraries {
        add(version.map(|version| format!("{name} {version}")));
    }
    add(one(|run| run.pytorch.as_ref()).map(|pytorch| format!("PyTorch {pytorch}")));
    text.push_str(". Measured on ");
    text.push_str(&or_dash(one(|run| Some(&run.date))));
    text.push_str(" at commit ");
    text.push_str(&or_dash(one(|run| Some(&run.commit))));
    text.push('.');
    let method = "Times are in microseconds: medians of 25 samples, each a CUDA graph of calls that fill 3 ms, over \
        inputs that rotate through twice the L2. GB/s counts each input byte once. Each result was compared with the \
        CPU's. \"x\" is the time of the best peer over warpfold's: above 1 warpfold is faster, bold is slower.";
    let mut lines = vec![format!("# {card}"), String::new()];
    for text in [text.as_str(), method] {
        lines.extend(paragraph(text));
        lines.push(String::new());
    }
    lines
}

/// One row for each section with a peer.
fn summary(sections: &[Section]) -> Vec<String> {
    let mut table = Table::new(["table", "cases", "best peer of", "geometric mean", "worst to best", "slower"]);
    for Section { heading, peers, cases, .. } in sections {
        let speedups: Vec<f64> = cases.iter().filter_map(|case| case.speedup).collect();
        let link = format!("[{heading}](#{})", anchor(heading));
        if speedups.is_empty() {
            continue;
        }
        let mean = (speedups.iter().map(|speedup| speedup.ln()).sum::<f64>() / speedups.len() as f64).exp();
        let (worst, best) = speedups.iter().fold((f64::MAX, 0.0_f64), |(worst, best), &x| (worst.min(x), best.max(x)));
        let count = speedups.iter().filter(|&&speedup| is_slower(speedup)).count();
        table.push([
            link,
            speedups.len().to_string(),
            peers.names(),
            format!("{mean:.2}"),
            format!("{} to {}", digits(worst), digits(best)),
            count.to_string(),
        ]);
    }
    if table.is_empty() { Vec::new() } else { table.lines() }
}

/// Whether a speedup is below 1 when it is printed with two decimals.
fn is_slower(speedup: f64) -> bool {
    speedup < 0.995
}

/// The section of cases that are slower than a peer, wrong, or without a result.
fn slower(sections: &[Section], max_named: usize) -> Vec<String> {
    let cases = || sections.iter().flat_map(|section| &section.cases);
    let beside = cases().filter(|case| case.speedup.is_some()).count();
    let mut slower: Vec<(f64, &str)> = cases()
        .filter_map(|case| Some((case.speedup.filter(|&speedup| is_slower(speedup))?, case.name.as_str())))
        .collect();
    slower.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lines = vec!["## Slower than a peer".to_owned(), String::new()];
    let named: Vec<String> =
        slower.iter().take(max_named).map(|(speedup, name)| format!("{name} ({})", digits(*speedup))).collect();
    lines.extend(paragraph(&match (beside, slower.len()) {
        (0, _) => "No peer was measured.".to_owned(),
        (_, 0) => format!("None of {beside} cases."),
        (_, count) => {
            let more = match count.saturating_sub(max_named) {
                0 => String::new(),
                more => format!("; and {more} more, bold in the tables"),
            };
            format!("{count} of {beside} cases, slowest first, with \"x\": {}{more}.", named.join("; "))
        }
    }));
    for (what, correct) in [("Wrong results", Some(false)), ("Without a result", None)] {
        let names: Vec<&str> = cases().filter(|case| case.correct == correct).map(|case| case.name.as_str()).collect();
        if !names.is_empty() {
            lines.push(String::new());
            lines.extend(paragraph(&format!("**{what}**: {}.", names.join("; "))));
        }
    }
    lines
}

impl Reduction {
    /// The best peer's time divided by warpfold's.
    fn speedup(&self) -> Option<f64> {
        let own = self.back_to_back_us.filter(|_| self.correct == Some(true))?;
        best_speedup(own, [self.cub_back_to_back_us, self.cublas_us, self.cutensor_us, self.pytorch_us])
    }

    /// The time as text, or `wrong` if the result is.
    fn time(&self) -> Option<String> {
        time(self.back_to_back_us, self.correct)
    }

    fn alignment(&self) -> &'static str {
        if self.offset == 0 { "" } else { ", unaligned" }
    }

    fn compared(&self) -> Compared {
        let data = self.data.as_ref().map_or_else(String::new, |data| format!(", {data} data"));
        let name = format!("{} of {}, {}{}{data}", self.operator, self.dtype, self.shape, self.alignment());
        Compared { name, speedup: self.speedup(), correct: self.correct }
    }

    /// `12.3 (1.05)`: the time and the speedup.
    fn cell(&self) -> Option<String> {
        let time = self.time()?;
        Some(self.speedup().map_or_else(|| time.clone(), |speedup| format!("{time} ({})", bold_if_slower(speedup))))
    }
}

fn time(us: Option<f64>, correct: Option<bool>) -> Option<String> {
    if correct == Some(false) { Some("wrong".to_owned()) } else { us.map(digits) }
}

fn best_speedup(own: f64, peers: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    peers.into_iter().flatten().min_by(f64::total_cmp).map(|best| best / own)
}

pub fn bold_if_slower(speedup: f64) -> String {
    let text = digits(speedup);
    if is_slower(speedup) { format!("**{text}**") } else { text }
}

fn number(number: Option<f64>) -> String {
    or_dash(number.map(digits))
}

fn speedup(speedup: Option<f64>) -> String {
    or_dash(speedup.map(bold_if_slower))
}

fn compared<'a>(rows: impl IntoIterator<Item = &'a Reduction>) -> Vec<Compared> {
    rows.into_iter().map(Reduction::compared).collect()
}

/// The distinct values of `of`, in the order of their first rows.
fn distinct<T>(rows: &[T], of: impl Fn(&T) -> String) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for row in rows {
        let name = of(row);
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// A table with a row for each value of `row`, and a column for each value of `column`.
fn pivot<T>(
    rows: &[T],
    corner: &str,
    row: impl Fn(&T) -> String,
    column: impl Fn(&T) -> String,
    cell: impl Fn(&T) -> Option<String>,
) -> Table {
    let columns = distinct(rows, &column);
    let mut table = Table::new(std::iter::once(corner.to_owned()).chain(columns.iter().cloned()));
    for name in distinct(rows, &row) {
        let cells = columns.iter().map(|wanted| {
            or_dash(rows.iter().find(|case| row(case) == name && column(case) == *wanted).and_then(&cell))
        });
        table.push(std::iter::once(name.clone()).chain(cells).collect::<Vec<_>>());
    }
    table
}

/// Whether a sum belongs to the table of sums of f32 by length.
fn is_by_length(row: &&Reduction) -> bool {
    row.dtype == "f32" && row.offset == 0
}

fn lengths(rows: &[Reduction]) -> Option<Section> {
    let rows: Vec<&Reduction> = rows.iter().filter(is_by_length).collect();
    let mut table = Table::new(["elements", "time", "GB/s", "alone", "CUB", "cuTENSOR", "PyTorch", "x"]);
    for row in &rows {
        table.push([
            row.shape.clone(),
            or_dash(row.time()),
            or_dash(row.gigabytes_per_second.map(|rate| format!("{rate:.0}"))),
            number(row.alone_us),
            number(row.cub_back_to_back_us),
            number(row.cutensor_us),
            number(row.pytorch_us),
            speedup(row.speedup()),
        ]);
    }
    let cases = compared(rows.iter().copied());
    let peers = Peers::of(&rows);
    let text = format!("Back to back; \"alone\" is a single call, from event to event.{}", peers.calls());
    (!rows.is_empty()).then_some(Section { heading: "Sums of f32", text, table, peers, cases })
}

fn types(rows: &[Reduction]) -> Option<Section> {
    let rows: Vec<Reduction> = rows.iter().filter(|row| !is_by_length(row)).cloned().collect();
    let column = |row: &Reduction| row.shape.clone() + row.alignment();
    let table = pivot(&rows, "type", |row| row.dtype.clone(), column, Reduction::cell);
    let peers = Peers::of(&rows.iter().collect::<Vec<_>>());
    let text = format!(
        "Time (x), by the number of elements. Unaligned inputs begin one element past an aligned address.{}",
        peers.calls()
    );
    let cases = compared(&rows);
    (!rows.is_empty()).then_some(Section { heading: "Sums of other types", text, table, peers, cases })
}

fn pairwise(rows: &[Reduction]) -> Option<Section> {
    let table = pivot(rows, "pairwise sum of", |row| row.shape.clone(), |row| row.dtype.clone(), Reduction::cell);
    let peers = Peers::of(&rows.iter().collect::<Vec<_>>());
    let text = format!(
        "Time (x) of sums by ordinary additions in a fixed order, beside the peers' sums, which are not exact \
         either.{}",
        peers.calls()
    );
    let cases = compared(rows);
    (!rows.is_empty()).then_some(Section { heading: "Pairwise sums", text, table, peers, cases })
}

fn operators(rows: &[Reduction]) -> Option<Section> {
    let column = |row: &Reduction| format!("{}, {}", row.dtype, row.shape);
    let table = pivot(rows, "operator", |row| row.operator.clone(), column, Reduction::cell);
    let peers = Peers::of(&rows.iter().collect::<Vec<_>>());
    let text = format!("Time (x), by type and number of elements.{}", peers.calls());
    let cases = compared(rows);
    (!rows.is_empty()).then_some(Section { heading: "Other operators", text, table, peers, cases })
}

fn matrices(rows: &[Reduction], columns: &[Reduction]) -> Option<Section> {
    let name = |row: &Reduction| {
        let shape = row.shape.trim_end_matches(" rows").trim_end_matches(" columns");
        format!("{} {}, {shape}", row.operator, row.dtype)
    };
    let all: Vec<Reduction> = rows.iter().chain(columns).cloned().collect();
    let peers = ["CUB", "cuBLAS", "cuTENSOR", "PyTorch", "x"];
    let header = ["", "rows"].iter().chain(&peers).chain(&["columns"]).chain(&peers[1..]);
    let mut table = Table::new(header.copied());
    for wanted in distinct(&all, name) {
        let of = |rows: &[Reduction]| rows.iter().find(|row| name(row) == wanted).cloned();
        let (row, column) = (of(rows), of(columns));
        let (row, column) = (row.as_ref(), column.as_ref());
        table.push([
            wanted,
            or_dash(row.and_then(Reduction::time)),
            number(row.and_then(|row| row.cub_back_to_back_us)),
            number(row.and_then(|row| row.cublas_us)),
            number(row.and_then(|row| row.cutensor_us)),
            number(row.and_then(|row| row.pytorch_us)),
            speedup(row.and_then(Reduction::speedup)),
            or_dash(column.and_then(Reduction::time)),
            number(column.and_then(|column| column.cublas_us)),
            number(column.and_then(|column| column.cutensor_us)),
            number(column.and_then(|column| column.pytorch_us)),
            speedup(column.and_then(Reduction::speedup)),
        ]);
    }
    let peers = Peers::of(&all.iter().collect::<Vec<_>>());
    let text = format!("A result for each row, and for each column, of a matrix.{}", peers.calls());
    let cases = compared(&all);
    (!all.is_empty()).then_some(Section { heading: "Rows and columns", text, table, peers, cases })
}

fn segments(rows: &[Reduction]) -> Option<Section> {
    let mut table = Table::new(["segments x mean length", "time", "GB/s", "CUB", "x"]);
    for row in rows {
        table.push([
            row.shape.trim_end_matches(" skewed").to_owned(),
            or_dash(row.time()),
            or_dash(row.gigabytes_per_second.map(|rate| format!("{rate:.0}"))),
            number(row.cub_back_to_back_us),
            speedup(row.speedup()),
        ]);
    }
    let peers = Peers::of(&rows.iter().collect::<Vec<_>>());
    let text = format!("Sums of f32; segments given by offsets, with lengths by a power law.{}", peers.calls());
    let cases = compared(rows);
    (!rows.is_empty()).then_some(Section { heading: "Segments", text, table, peers, cases })
}

/// Writes a device's page of exact sums by the kind of data.
pub fn write_data(name: &str, run: &Run) -> anyhow::Result<String> {
    let runs = std::slice::from_ref(run);
    let report: Reductions = run.report()?;
    let rows: Vec<Reduction> = report.sections.into_iter().flat_map(|section| section.rows).collect();
    let libraries = [("CUB", report.cub_version), ("cuTENSOR", report.cutensor_version)];
    let mut lines = head(&run.device()?, runs, libraries, report.read_gigabytes_per_second, None);
    lines[0].push_str(": exact sums by the kind of data");
    let cell = |row: &Reduction| {
        let ordinary = rows.iter().find(|other| {
            other.data.as_deref() == Some("ordinary") && (&other.dtype, &other.shape) == (&row.dtype, &row.shape)
        });
        let times = ordinary.and_then(|ordinary| Some(row.back_to_back_us? / ordinary.back_to_back_us?));
        Some(
            [Some(row.time()?), times.map(digits), row.speedup().map(bold_if_slower)]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>(),
        )
    };
    let label =
        |row: &Reduction| format!("{}, {}", row.shape, row.data.as_deref().unwrap_or_default().replace('-', " "));
    let table = pivot(&rows, "sum of", label, |row| row.dtype.clone(), |row| Some(cell(row)?.join(", ")));
    let text = format!(
        "Time, times that of ordinary data, x. CUB's sums are inexact. `bench reduce --help` says what each kind of \
         data is.{}",
        Peers::of(&rows.iter().collect::<Vec<_>>()).calls()
    );
    lines.extend(paragraph(&text));
    lines.push(String::new());
    lines.extend(table.lines());
    lines.extend(commands(name, runs));
    Ok(lines.join("\n") + "\n")
}

impl Transpose {
    fn speedup(&self) -> Option<f64> {
        best_speedup(
            self.median_us.filter(|_| self.correct == Some(true))?,
            [self.geam_us, self.cutensor_us, self.pytorch_us],
        )
    }

    fn is_permutation(&self) -> bool {
        self.kind.starts_with("permute")
    }

    fn label(&self) -> String {
        match self.kind.as_str() {
            "transpose" => self.shape.clone(),
            "permute-102" => format!("{} by 102", self.shape),
            "permute-210" => format!("{} by 210", self.shape),
            kind => format!("{}, {}", self.shape, kind.replace('-', " ")),
        }
    }

    fn bytes(&self) -> String {
        if self.size == 1 { "1 byte".to_owned() } else { format!("{} bytes", self.size) }
    }

    /// `12.3, 0.95, 1.05`: the time, a copy's time divided by it, and the speedup.
    fn cell(&self) -> Option<String> {
        let own = self.median_us?;
        let share = self.copy_us.map_or_else(String::new, |copy| format!(", {:.2}", copy / own));
        let beside = self.speedup().map_or_else(String::new, |speedup| format!(", {}", bold_if_slower(speedup)));
        Some(time(self.median_us, self.correct)? + &share + &beside)
    }
}

fn transposes(rows: &[Transpose]) -> Vec<Section> {
    let (permutations, transposes): (Vec<_>, Vec<_>) = rows.iter().cloned().partition(Transpose::is_permutation);
    let cells = "Time, share of a stream copy of the same size, x; by element size.";
    let section = |heading, text: &str, rows: &[Transpose]| {
        let peers = Peers::of_transposes(rows);
        let text = format!("{cells} {text}{}", peers.calls());
        let table = pivot(rows, "shape", Transpose::label, Transpose::bytes, Transpose::cell);
        let compared = |row: &Transpose| Compared {
            name: format!("{} of {}", row.label(), row.bytes()),
            speedup: row.speedup(),
            correct: row.correct,
        };
        let cases = rows.iter().map(compared).collect();
        (!rows.is_empty()).then_some(Section { heading, text, table, peers, cases })
    };
    [
        section("Transposes", "Scaled ones become -2 times their transpose.", &transposes),
        section("Permutations", "Permutations of three axes: 102 swaps the first two.", &permutations),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn ladders_section(ladders: &Ladders) -> Section {
    let header = ["kernel", "time", "GB/s", "of a copy"];
    let (mut rungs, mut cases) = (Vec::new(), Vec::new());
    for ladder in &ladders.sections {
        for rung in &ladder.rows {
            rungs.push([
                rung.kernel.clone(),
                digits(rung.median_us),
                format!("{:.0}", rung.gigabytes_per_second),
                or_dash(rung.share_of_copy.map(|share| format!("{share:.2}"))),
            ]);
            let name = format!("{} of {}", rung.kernel, ladder.input);
            cases.push(Compared { name, speedup: None, correct: Some(rung.correct) });
        }
    }
    // The table has two halves side by side.
    let (left, right) = rungs.split_at(rungs.len().div_ceil(2));
    let mut table = Table::new(header.iter().chain(&header).copied());
    for (i, rung) in left.iter().enumerate() {
        let beside = right.get(i).cloned().unwrap_or_else(|| ["-"; 4].map(str::to_owned));
        table.push(rung.iter().cloned().chain(beside));
    }
    let inputs: Vec<String> =
        ladders.sections.iter().map(|ladder| format!("{} of {}", ladder.family.to_lowercase(), ladder.input)).collect();
    let text = format!(
        "Rung by rung, the left half first: {}. GB/s of transposes and control flow counts \
        output bytes too. [docs/ladder](../ladder/README.md) explains each rung.",
        inputs.join(", ")
    );
    Section { heading: "Ladders", text, table, peers: Peers::default(), cases }
}

fn calls(calls: &Calls) -> Section {
    let mut table = Table::new(["call", "warpfold", "PyTorch", "PyTorch's call", "x"]);
    let mut peers = Peers::default();
    let mut cases = Vec::new();
    for row in &calls.rows {
        let ratio = row.pytorch_us.map(|us| us / row.wall_us);
        table.push([
            format!("`{}`", row.call),
            digits(row.wall_us),
            number(row.pytorch_us),
            format!("`{}`", row.pytorch_call),
            speedup(ratio),
        ]);
        cases.push(Compared { name: row.call.clone(), speedup: ratio, correct: Some(true) });
    }
    if calls.rows.iter().any(|row| row.pytorch_us.is_some()) {
        peers.0.push(("PyTorch", Vec::new()));
    }
    let text = format!(
        "The wall time of a call on the host, with {} f32; of calls that return before their work is done, until they \
         return.",
        calls.elements
    );
    Section { heading: "Calls", text, table, peers, cases }
}

/// The section of the commands, with their dates and commits if these differ.
fn commands(name: &str, runs: &[Run]) -> Vec<String> {
    let is_same = runs.iter().all(|run| run.date == runs[0].date && run.commit == runs[0].commit);
    let of_run = |Run { date, commit, command, seconds, exit, .. }: &Run| {
        let when = if is_same { String::new() } else { format!(", {date} at {commit}") };
        let ended = match exit {
            0 => String::new(),
            124 | 130 => ", cut off by its time limit".to_owned(),
            exit => format!(", exit code {exit}"),
        };
        format!("`{command}` ({seconds} s{when}{ended})")
    };
    let mut lines = vec![String::new(), "## Runs".to_owned(), String::new()];
    lines.extend(paragraph(&format!(
        "`./run.sh tables` in the unpacked bundle ran {}. `cargo xtask tables {name} FOLDER` wrote this page.",
        runs.iter().map(of_run).collect::<Vec<_>>().join(", ")
    )));
    lines
}
