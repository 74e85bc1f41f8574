//! Writes an archive.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::num::NonZero;
use std::thread;

use lzma_rust2::{LzmaOptions, LzmaWriter};

use crate::index::{Index, Record};
use crate::read::MAX_DEPTH;
use crate::{LITERAL_CONTEXT_BITS, MAX_LEN};

/// The PTX of an entry for an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The entry's name.
    pub name: &'a str,
    /// The architecture's number: 90 for `sm_90`.
    pub arch: u32,
    /// The PTX.
    pub ptx: &'a str,
}

/// The effort of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Compresses each text by itself, to about a sixth: 30 MB/s on a core.
    Fast,
    /// Compresses texts with others as dictionaries, to about a twentieth: less than 1 MB/s.
    Small,
}

/// The maximum number of bytes to unpack for a text of the newest architecture, unless the text alone has half as many.
/// A text of an older architecture may need its newer form in addition.
const BUDGET: usize = 350_000;

/// The number of texts that are tried as dictionaries: this many with the nearest names, and this many with the same
/// type.
const NEIGHBOURS: usize = 3;

/// Packs texts. The bytes depend only on the texts.
///
/// # Errors
/// If two texts have the same name and architecture, a text is empty or longer than 64 MiB, or a name is longer than
/// 255 bytes.
pub fn pack(texts: &[Text<'_>], effort: Effort) -> io::Result<Vec<u8>> {
    let archs: BTreeSet<u32> = texts.iter().map(|text| text.arch).collect();
    let archs: Vec<u32> = archs.into_iter().rev().collect();
    let names: BTreeSet<&str> = texts.iter().map(|text| text.name).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let mut slots: Vec<Option<&str>> = vec![None; names.len() * archs.len()];
    for text in texts {
        if text.ptx.is_empty() || text.ptx.len() > MAX_LEN {
            return Err(invalid(format!("`{}` is empty or too long", text.name)));
        }
        let (name, arch) = (names.binary_search(&text.name), archs.iter().position(|arch| *arch == text.arch));
        let slot = &mut slots[name.unwrap_or_default() * archs.len() + arch.unwrap_or_default()];
        if slot.replace(text.ptx).is_some() {
            return Err(invalid(format!("`{}` occurs twice for sm_{}", text.name, text.arch)));
        }
    }
    let plan = match effort {
        Effort::Fast => vec![None; slots.len()],
        Effort::Small => Plan::new(&names, archs.len(), &slots).needs,
    };
    let dictionary = |text| dictionary(&slots, &plan, plan[text]);
    let all: Vec<usize> = (0..slots.len()).collect();
    let packed = in_parallel(&all, |&text| match slots[text] {
        Some(ptx) => compress(ptx, &dictionary(text), &options(effort)),
        None => Ok(Vec::new()),
    });
    let packed = packed.into_iter().collect::<io::Result<Vec<_>>>()?;
    let record = |text: usize| match slots[text] {
        Some(ptx) => Record {
            needs: plan[text].map(|needs: usize| needs as u32),
            len: ptx.len() as u32,
            packed: packed[text].len() as u32,
            checksum: crc32fast::hash(&packed[text]),
        },
        None => Record::ABSENT,
    };
    let records = all.iter().map(|&text| record(text)).collect();
    let index = Index { archs, names, records };
    let mut bytes = index.to_bytes().ok_or_else(|| invalid("a name is too long, or there are too many".to_owned()))?;
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

/// Compresses a text, which may repeat parts of the dictionary.
fn compress(text: &str, dictionary: &[u8], options: &LzmaOptions) -> io::Result<Vec<u8>> {
    // A smaller window would lose the beginning of the dictionary. The size depends only on the texts, because it
    // affects the packed bytes.
    let dict_size = (dictionary.len() + text.len()).next_power_of_two().max(1 << 16) as u32;
    let preset_dict = (!dictionary.is_empty()).then(|| dictionary.to_vec());
    let options = LzmaOptions { dict_size, lc: LITERAL_CONTEXT_BITS, lp: 0, pb: 0, preset_dict, ..options.clone() };
    let mut writer = LzmaWriter::new_no_header(Vec::new(), &options, false)?;
    writer.write_all(text.as_bytes())?;
    writer.finish()
}

/// The texts that are unpacked before a text that needs `needs`, concatenated in that order.
fn dictionary(slots: &[Option<&str>], plan: &[Option<usize>], needs: Option<usize>) -> Vec<u8> {
    let mut chain = Vec::new();
    let mut next = needs;
    while let Some(text) = next {
        chain.push(slots[text].unwrap_or_default());
        next = plan[text];
    }
    chain.reverse();
    chain.concat().into_bytes()
}

/// The text that each text needs.
struct Plan {
    needs: Vec<Option<usize>>,
}

impl Plan {
    /// Compresses each text with several candidates by a fast method, and chooses the best candidate.
    fn new(names: &[&str], archs: usize, slots: &[Option<&str>]) -> Self {
        let mut plan = Self { needs: vec![None; slots.len()] };
        // The bytes and the number of texts to unpack, for each placed text.
        let mut costs: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        let fast = LzmaOptions::with_preset(1);
        for arch in 0..archs {
            for name in 0..names.len() {
                let text = name * archs + arch;
                let Some(ptx) = slots[text] else { continue };
                let limit = BUDGET.max(2 * ptx.len()) + arch * ptx.len();
                let fits = |candidate: &usize| {
                    let cost = costs.get(candidate);
                    cost.is_some_and(|&(bytes, depth)| bytes + ptx.len() <= limit && depth < MAX_DEPTH)
                };
                let candidates: Vec<usize> = candidates(names, archs, name, arch, fits);
                let sizes = in_parallel(&candidates, |&candidate| {
                    let dictionary = dictionary(slots, &plan.needs, Some(candidate));
                    compress(ptx, &dictionary, &fast).map_or(usize::MAX, |packed| packed.len())
                });
                let best = sizes.iter().zip(&candidates).min().map(|(_, &candidate)| candidate);
                plan.needs[text] = best;
                let (bytes, depth) = best.and_then(|best| costs.get(&best)).copied().unwrap_or_default();
                costs.insert(text, (bytes + ptx.len(), depth + 1));
            }
        }
        plan
    }
}

/// The candidates for a text's dictionary: its own entry for newer architectures, entries with the nearest names, and
/// entries of the same type (the last word of the name) of the same kernel (the first word).
fn candidates(names: &[&str], archs: usize, name: usize, arch: usize, fits: impl Fn(&usize) -> bool) -> Vec<usize> {
    let first = |name: usize| names[name].split('_').next();
    let last = |name: usize| names[name].rsplit('_').next();
    let mut candidates: Vec<usize> = (0..arch).map(|newer| name * archs + newer).filter(&fits).collect();
    let mut near = (0..name).rev().map(|other| other * archs + arch).filter(&fits);
    candidates.extend(near.by_ref().take(NEIGHBOURS));
    let of_type = |text: &usize| first(text / archs) == first(name) && last(text / archs) == last(name);
    candidates.extend(near.filter(of_type).take(NEIGHBOURS));
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
            let done = one.join().expect("packing does not panic");
            results.iter_mut().skip(core).step_by(cores).zip(done).for_each(|(slot, result)| *slot = Some(result));
        }
    });
    results.into_iter().flatten().collect()
}
