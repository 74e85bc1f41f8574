//! Replays the fuzzers' corpora.

use std::fs;
use std::path::Path;

use super::{bytes_check, sums_check};

/// The files of a corpus.
fn files(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    fs::read_dir(folder).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn the_corpus_of_bytes() {
    let files = files("exact_bytes");
    let sums = files.iter().filter(|file| bytes_check::check(file)).count();
    assert!(files.len() > 20 && sums > 10, "{sums} of {} are sums", files.len());
}

#[test]
fn the_corpus_of_numbers() {
    let files = files("exact_sums");
    let numbers: usize = files.iter().map(|file| sums_check::check(file)).sum();
    assert!(files.len() > 20 && numbers > 100, "{numbers} in {} files", files.len());
}
