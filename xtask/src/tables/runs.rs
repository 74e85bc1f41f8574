//! The JSON file of a run: a report of `bench`, and what `run.sh tables` records about the run; or of
//! `python/benchmarks/measure.py` or `python -m warpfold.bench_ranks`.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// Deserializes a field that may be `null` but must be present, so that a field renamed in `bench` is an error.
pub fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(source: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(source)
}

/// A run of `bench`: one file of the folder.
#[derive(Debug, Deserialize)]
pub struct Run {
    /// The run's name, an argument of `run.sh tables`.
    pub name: String,
    pub date: String,
    pub commit: String,
    /// The NVIDIA driver's version.
    #[serde(deserialize_with = "present")]
    pub driver: Option<String>,
    #[serde(deserialize_with = "present")]
    pub pytorch: Option<String>,
    pub command: String,
    /// The exit code of `bench`; 124 after the time limit.
    pub exit: i32,
    pub seconds: u64,
    pub report: serde_json::Value,
}

/// The device that ran the kernels.
#[derive(Clone, Debug, Deserialize)]
pub struct Device {
    pub name: String,
    pub backend: String,
    pub multiprocessors: u32,
    #[serde(deserialize_with = "present")]
    pub l2_bytes: Option<usize>,
    #[serde(deserialize_with = "present")]
    pub peak_gigabytes_per_second: Option<f64>,
    /// The CUDA version of the driver.
    #[serde(deserialize_with = "present")]
    pub driver: Option<String>,
}

/// The common fields of all reports.
#[derive(Debug, Deserialize)]
struct AnyReport {
    device: Device,
}

/// A report of `bench reduce`.
#[derive(Debug, Deserialize)]
pub struct Reductions {
    #[serde(deserialize_with = "present")]
    pub read_gigabytes_per_second: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub cub_version: Option<String>,
    #[serde(deserialize_with = "present")]
    pub cutensor_version: Option<String>,
    pub sections: Vec<ReductionSection>,
}

#[derive(Debug, Deserialize)]
pub struct ReductionSection {
    pub rows: Vec<Reduction>,
}

/// A measured reduction.
#[derive(Clone, Debug, Deserialize)]
pub struct Reduction {
    pub operator: String,
    pub dtype: String,
    pub shape: String,
    pub offset: usize,
    #[serde(deserialize_with = "present")]
    pub data: Option<String>,
    #[serde(deserialize_with = "present")]
    pub correct: Option<bool>,
    #[serde(deserialize_with = "present")]
    pub back_to_back_us: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub alone_us: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub gigabytes_per_second: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub cub_back_to_back_us: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub cublas_us: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub cutensor_us: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub pytorch_us: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub cub_call: Option<String>,
    #[serde(deserialize_with = "present")]
    pub cublas_call: Option<String>,
    #[serde(deserialize_with = "present")]
    pub cutensor_call: Option<String>,
    #[serde(deserialize_with = "present")]
    pub pytorch_call: Option<String>,
}

/// A report of `bench transpose` over several cases.
#[derive(Debug, Deserialize)]
pub struct Transposes {
    #[serde(deserialize_with = "present")]
    pub cutensor_version: Option<String>,
    pub rows: Vec<Transpose>,
}

/// A measured transpose or permutation.
#[derive(Clone, Debug, Deserialize)]
pub struct Transpose {
    pub shape: String,
    pub kind: String,
    pub size: usize,
    #[serde(deserialize_with = "present")]
    pub correct: Option<bool>,
    #[serde(deserialize_with = "present")]
    pub median_us: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub copy_us: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub geam_us: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub cutensor_us: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub pytorch_us: Option<f64>,
    #[serde(deserialize_with = "present")]
    pub geam_call: Option<String>,
    #[serde(deserialize_with = "present")]
    pub cutensor_call: Option<String>,
    #[serde(deserialize_with = "present")]
    pub pytorch_call: Option<String>,
}

/// A report of `bench ladder`.
#[derive(Debug, Deserialize)]
pub struct Ladders {
    #[serde(deserialize_with = "present")]
    pub copy_gigabytes_per_second: Option<f64>,
    pub sections: Vec<Ladder>,
}

#[derive(Debug, Deserialize)]
pub struct Ladder {
    pub family: String,
    pub input: String,
    pub rows: Vec<Rung>,
}

/// A measured kernel of a ladder.
#[derive(Debug, Deserialize)]
pub struct Rung {
    pub kernel: String,
    pub correct: bool,
    pub median_us: f64,
    pub gigabytes_per_second: f64,
    #[serde(deserialize_with = "present")]
    pub share_of_copy: Option<f64>,
}

/// A report of `bench calls`.
#[derive(Debug, Deserialize)]
pub struct Calls {
    pub elements: usize,
    pub rows: Vec<Call>,
}

/// A timed call.
#[derive(Debug, Deserialize)]
pub struct Call {
    pub call: String,
    pub wall_us: f64,
    pub pytorch_call: String,
    #[serde(deserialize_with = "present")]
    pub pytorch_us: Option<f64>,
}

impl Run {
    pub fn device(&self) -> anyhow::Result<Device> {
        self.report::<AnyReport>().map(|report| report.device)
    }

    pub fn report<R: DeserializeOwned>(&self) -> anyhow::Result<R> {
        R::deserialize(&self.report)
            .with_context(|| format!("the run `{}` does not have the report that its name requires", self.name))
    }
}

/// The names of the runs, in the order of the page.
pub const NAMES: [&str; 15] = [
    "sums",
    "pairwise",
    "operators",
    "rows",
    "columns",
    "segments",
    "data",
    "transposes",
    "ladders",
    "calls",
    "python",
    "ranks-1",
    "ranks-2",
    "ranks-4",
    "ranks-8",
];

/// Reads the runs in the folder, in the order of the page.
pub fn read(folder: &Path) -> anyhow::Result<Vec<Run>> {
    let mut runs = Vec::new();
    for name in NAMES {
        let file = folder.join(name).with_extension("json");
        if !file.exists() {
            continue;
        }
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
        let run: Run = serde_json::from_str(&text)
            .with_context(|| format!("`{}` is not a run of `run.sh tables`", file.display()))?;
        ensure!(run.name == name, "`{}` contains the run `{}`", file.display(), run.name);
        runs.push(run);
    }
    ensure!(
        !runs.is_empty(),
        "`{}` contains no run: `./run.sh tables` in the unpacked bundle writes {}.json",
        folder.display(),
        NAMES.join(".json, ")
    );
    Ok(runs)
}
