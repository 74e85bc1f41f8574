//! Writes an archive.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::num::NonZero;
use std::thread;

use lzma_rust2::{LzmaOptions, LzmaWriter};

use crate::index::{Index, Record};
use crate::read::MAX_DEPTH;
use crate::{LITERAL_CONTEXT_BITS, MAX_LEN};

/// A text of the archive: the PTX of an entry for an architecture, or its cubin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The entry's name; [`cubin_of`](crate::cubin_of) it for a cubin.
    pub name: &'a str,
    /// The number of the architecture: 90 for `sm_90`.
    pub arch: u32,
    /// The text.
    pub contents: &'a [u8],
}

/// How much effort compression takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Compresses each text by itself, to about a sixth of its size, at 30 MB/s per core.
    Fast,
    /// Compresses texts with others as dictionaries, to about a twentieth of their size, at less than 1 MB/s.
    Small,
}

/// The maximum number of bytes to unpack for a text of the newest architecture; twice the text's length, if that is
/// more. For each newer architecture, a text of an older one may unpack its own length in addition.
const BUDGET: usize = 350_000;

/// The number of candidates for a text's base that have the nearest names, and of those that have the same type.
const NEIGHBORS: usize = 3;

/// Packs texts. The result depends only on the texts, not on their order.
///
/// # Errors
/// If two texts have the same name and architecture, a text is empty or longer than 64 MiB, or a name is longer than
/// 255 bytes.
pub fn pack(texts: &[Text<'_>], effort: Effort) -> io::Result<Vec<u8>> {
    let archs: BTreeSet<u32> = texts.iter().map(|text| text.arch).collect();
    let archs: Vec<u32> = archs.into_iter().rev().collect();
    let names: BTreeSet<&str> = texts.iter().map(|text| text.name).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let mut slots: Vec<Option<&[u8]>> = vec![None; names.len() * archs.len()];
    for text in texts {
        if text.contents.is_empty() || text.contents.len() > MAX_LEN {
            return Err(invalid(format!("`{}` is empty or too long", text.name)));
        }
        let (name, arch) = (names.binary_search(&text.name), archs.iter().position(|arch| *arch == text.arch));
        let slot = &mut slots[name.unwrap_or_default() * archs.len() + arch.unwrap_or_default()];
        if slot.replace(text.contents).is_some() {
            return Err(invalid(format!("`{}` occurs twice for sm_{}", text.name, text.arch)));
        }
    }
    let plan = match effort {
        Effort::Fast => vec![None; slots.len()],
        Effort::Small => Plan::new(&names, archs.len(), &slots).bases,
    };
    let dictionary = |text| dictionary(&slots, &plan, plan[text]);
    let all: Vec<usize> = (0..slots.len()).collect();
    let packed = in_parallel(&all, |&text| match slots[text] {
        Some(contents) => compress(contents, &dictionary(text), &options(effort)),
        None => Ok(Vec::new()),
    });
    let packed = packed.into_iter().collect::<io::Result<Vec<_>>>()?;
    let record = |text: usize| match slots[text] {
        Some(contents) => Record {
            base: plan[text].map(|base: usize| base as u32),
            len: contents.len() as u32,
            packed: packed[text].len() as u32,
            checksum: crc32fast::hash(&packed[text]),
        },
        None => Record::ABSENT,
    };
    let records = all.iter().map(|&text| record(text)).collect();
    let index = Index { archs, names, records };
    let mut bytes = index
        .to_bytes()
        .ok_or_else(|| invalid("a name is longer than 255 bytes, or the archive is too large".to_owned()))?;
    packed.iter().for_each(|packed| bytes.extend(packed));
    Ok(bytes)
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// The options of the final compression.
fn options(effort: Effort) -> LzmaOptions {
    match effort {
        Effort::Fast => LzmaOptions::with_preset(1),
        Effort::Small => LzmaOptions { nice_len: 273, ..LzmaOptions::with_preset(9) },
    }
}

/// Compresses a text, with a preset dictionary.
fn compress(text: &[u8], dictionary: &[u8], options: &LzmaOptions) -> io::Result<Vec<u8>> {
    // The window must cover the whole dictionary. Its size affects the packed bytes, so it depends only on the texts.
    let dict_size = (dictionary.len() + text.len()).next_power_of_two().max(1 << 16) as u32;
    let preset_dict = (!dictionary.is_empty()).then(|| dictionary.to_vec());
    let options = LzmaOptions { dict_size, lc: LITERAL_CONTEXT_BITS, lp: 0, pb: 0, preset_dict, ..options.clone() };
    let mut writer = LzmaWriter::new_no_header(Vec::new(), &options, false)?;
    writer.write_all(text)?;
    writer.finish()
}

/// The dictionary of a text with this base: the bases of the base, from the first one on, and the base itself.
fn dictionary(slots: &[Option<&[u8]>], plan: &[Option<usize>], base: Option<usize>) -> Vec<u8> {
    let mut chain = Vec::new();
    let mut next = base;
    while let Some(text) = next {
        chain.push(slots[text].unwrap_or_default());
        next = plan[text];
    }
    chain.reverse();
    chain.concat()
}

/// The base of each text.
struct Plan {
    bases: Vec<Option<usize>>,
}

impl Plan {
    /// Compresses each text with each of several candidates by a fast method, and chooses the best candidate.
    fn new(names: &[&str], archs: usize, slots: &[Option<&[u8]>]) -> Self {
        let mut plan = Self { bases: vec![None; slots.len()] };
        // For each text so far: the number of bytes, and of texts, that it takes to unpack.
        let mut costs: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        let fast = LzmaOptions::with_preset(1);
        for arch in 0..archs {
            for name in 0..names.len() {
                let text = name * archs + arch;
                let Some(contents) = slots[text] else { continue };
                let limit = BUDGET.max(2 * contents.len()) + arch * contents.len();
                let fits = |candidate: &usize| {
                    let cost = costs.get(candidate);
                    cost.is_some_and(|&(bytes, depth)| bytes + contents.len() <= limit && depth < MAX_DEPTH)
                };
                let candidates: Vec<usize> = candidates(names, archs, name, arch, fits);
                let sizes = in_parallel(&candidates, |&candidate| {
                    let dictionary = dictionary(slots, &plan.bases, Some(candidate));
                    compress(contents, &dictionary, &fast).map_or(usize::MAX, |packed| packed.len())
                });
                let best = sizes.iter().zip(&candidates).min().map(|(_, &candidate)| candidate);
                plan.bases[text] = best;
                let (bytes, depth) = best.and_then(|best| costs.get(&best)).copied().unwrap_or_default();
                costs.insert(text, (bytes + contents.len(), depth + 1));
            }
        }
        plan
    }
}

/// The candidates for a text's base: its own entry for newer architectures, entries with the nearest names, and entries
/// with the same kernel (the first word of the name) and the same type (the last word).
fn candidates(names: &[&str], archs: usize, name: usize, arch: usize, fits: impl Fn(&usize) -> bool) -> Vec<usize> {
    let first = |name: usize| names[name].split('_').next();
    let last = |name: usize| names[name].rsplit('_').next();
    let mut candidates: Vec<usize> = (0..arch).map(|newer| name * archs + newer).filter(&fits).collect();
    let mut near = (0..name).rev().map(|other| other * archs + arch).filter(&fits);
    candidates.extend(near.by_ref().take(NEIGHBORS));
    let of_type = |text: &usize| first(text / archs) == first(name) && last(text / archs) == last(name);
    candidates.extend(near.filter(of_type).take(NEIGHBORS));
    candidates
}

/// Calls `work` for each item, on all cores, and returns the results in order.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get).min(items.len()).max(1);
    let work = &work;
    let mut results: Vec<Option<R>> = Vec::new();
    results.resize_with(items.len(), || None);
    thread::scope(|scope| {
        let of_core = |core| items.iter().skip(core).step_by(cores).map(work).collect::<Vec<R>>();
        let running: Vec<_> = (0..cores).map(|core| scope.spawn(move || of_core(core))).collect();
        for (core, one) in running.into_iter().enumerate() {
            let done = one.join().expect("`work` does not panic");
            results.iter_mut().skip(core).step_by(cores).zip(done).for_each(|(slot, result)| *slot = Some(result));
        }
    });
    results.into_iter().flatten().collect()
}
