//! Exact sums of products that stay on the device, and all-reduces of the words of sums, compared with those on the
//! host.

use std::fmt::Debug;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::exact::words::{self, MAX_RANKS, Words, WordsError};
use warpfold::exact::{ExactDot, ExactSum, MAX_ELEMENTS, Rounded, TooManyElements};
use warpfold::half::{bf16, f16};
use warpfold::{Axes, Error, ExactDots, ExactState, ExactStates, Gpu, Layout, SumFormat};

use crate::exact::{ALL, numbers};
use crate::exact_sums::OnDevice;

fn text(error: Error) -> String {
    error.to_string()
}

fn equal<V: PartialEq + Debug>(found: V, expected: V, what: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?}, expected {expected:?}")) }
}

fn bits<R: Into<f64>>(x: R) -> u64 {
    let x: f64 = x.into();
    if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }
}

/// Checks sums of products and squares of arrays of about `rows` x `columns` elements, along each axis and along both.
///
/// # Errors
/// If a sum differs from that on the host, or on an unexpected error.
pub fn products(gpu: &Gpu, rows: usize, columns: usize, source: &mut SmallRng) -> Result<(), String> {
    products_of::<f32, f32>(gpu, rows, columns, source)?;
    products_of::<f32, f64>(gpu, rows, columns, source)?;
    products_of::<f64, f64>(gpu, rows, columns, source)?;
    products_of::<f16, f16>(gpu, rows, columns, source)?;
    products_of::<bf16, bf16>(gpu, rows, columns, source)
}

/// [`products`] of elements `T`, rounded to `R`, too.
fn products_of<T: OnDevice, R: SumFormat<T> + Rounded + Into<f64>>(
    gpu: &Gpu,
    rows: usize,
    columns: usize,
    source: &mut SmallRng,
) -> Result<(), String> {
    // Mostly finite: a sum that is NaN stays NaN.
    let kinds = if source.random_range(0..4) == 0 { ALL.len() } else { ALL.len() - 3 };
    let (data, other) = (ALL[source.random_range(0..kinds)], ALL[source.random_range(0..kinds)]);
    let pitch = columns + source.random_range(0..3);
    let offset = source.random_range(0..4);
    let x = numbers::<T>(data, offset + rows * pitch, source);
    // One factor for each element, for each column, for each row, or for all.
    let (extents, strides) = match source.random_range(0..4) {
        0 => (vec![rows, columns], vec![1, rows]),
        1 => (vec![columns], vec![1]),
        2 => (vec![rows, 1], vec![1, 1]),
        _ => (vec![], vec![]),
    };
    let layout = Layout::strided(&extents, &strides.iter().map(|&stride| stride as isize).collect::<Vec<_>>(), 0);
    let layout = layout.map_err(text)?;
    let y = numbers::<T>(other, layout.required_len(), source);
    let case = format!("{rows} x {columns} {} of {data:?}, factors {extents:?} of {other:?}", T::NAME);

    let (on_device, factors) = (gpu.upload(&x).map_err(text)?, gpu.upload(&y).map_err(text)?);
    let of_x = Layout::strided(&[rows, columns], &[pitch as isize, 1], offset).map_err(text)?;
    let view = warpfold::ArrayView::new(on_device.view(), &of_x).map_err(text)?;
    let factors = warpfold::ArrayView::new(factors.view(), &layout).map_err(text)?;
    let element = |row: usize, column: usize| x[offset + row * pitch + column];
    let factor = |row: usize, column: usize| match extents[..] {
        [_, 1] => y[row],
        [_, _] => y[row + rows * column],
        [_] => y[column],
        _ => y[0],
    };
    type OutputOf = fn(usize, usize) -> usize;
    let of_row: OutputOf = |row, _| row;
    let axes = [(Axes::from(1), rows, of_row), (Axes::from(0), columns, |_, column| column), (Axes::ALL, 1, |_, _| 0)];
    for (axes, outputs, output) in axes {
        let case = format!("{case}, to {outputs}");
        let mut right = vec![ExactDot::<T>::new(); outputs];
        let mut sums = gpu.exact_dots::<T>(outputs).map_err(text)?;
        sums.add_products((view, factors), axes).map_err(text)?;
        for row in 0..rows {
            for column in 0..columns {
                right[output(row, column)].add(element(row, column), factor(row, column));
            }
        }
        check_dots::<T, R>(gpu, &sums, &right, &format!("products of {case}"))?;
        sums.add_squares(view, axes).map_err(text)?;
        for row in 0..rows {
            for column in 0..columns {
                right[output(row, column)].add(element(row, column), element(row, column));
            }
        }
        check_dots::<T, R>(gpu, &sums, &right, &format!("products and squares of {case}"))?;
        let others = gpu.upload_exact_sums(&right).map_err(text)?;
        sums.merge(&others).map_err(text)?;
        for sum in &mut right {
            let same = *sum;
            sum.merge(&same).map_err(|error| error.to_string())?;
        }
        check_dots::<T, R>(gpu, &sums, &right, &format!("twice the products and squares of {case}"))?;
        if outputs == 1 {
            let mut whole = gpu.exact_dot((view, factors)).map_err(text)?;
            whole.merge(&gpu.exact_sum_of_squares(view).map_err(text)?).map_err(|error| error.to_string())?;
            let same = whole;
            whole.merge(&same).map_err(|error| error.to_string())?;
            equal(whole, right[0], &format!("the host's sum of {case}"))?;
        }
    }
    Ok(())
}

fn check_dots<T: OnDevice, R: SumFormat<T> + Rounded + Into<f64>>(
    gpu: &Gpu,
    sums: &ExactDots<T>,
    right: &[ExactDot<T>],
    case: &str,
) -> Result<(), String> {
    let found = sums.download().map_err(text)?;
    let values = gpu.download(&sums.values().map_err(text)?).map_err(text)?;
    let norms = gpu.download(&sums.norms().map_err(text)?).map_err(text)?;
    let (mut in_format, mut root) =
        (gpu.zeroed::<R>(right.len()).map_err(text)?, gpu.zeroed::<R>(right.len()).map_err(text)?);
    sums.values_into(&mut in_format).map_err(text)?;
    sums.norms_into(&mut root).map_err(text)?;
    let (in_format, root) = (gpu.download(&in_format).map_err(text)?, gpu.download(&root).map_err(text)?);
    equal(found.len(), right.len(), &format!("the number of sums of {case}"))?;
    for (i, right) in right.iter().enumerate() {
        equal(found[i], *right, &format!("sum {i} of {case}"))?;
        equal(bits(values[i]), bits(right.value()), &format!("value {i} of {case}"))?;
        equal(bits(norms[i]), bits(right.sqrt::<T::Sum>()), &format!("norm {i} of {case}"))?;
        equal(bits(in_format[i]), bits(right.rounded::<R>()), &format!("value {i} in another format of {case}"))?;
        equal(bits(root[i]), bits(right.sqrt::<R>()), &format!("norm {i} in another format of {case}"))?;
    }
    Ok(())
}

/// Checks all-reduces of the words of sums of each type: over some ranks, on the device and on the host, and over 2^20
/// ranks with the same words.
///
/// # Errors
/// As for [`products`].
pub fn all_reduce(gpu: &Gpu, len: usize, source: &mut SmallRng) -> Result<(), String> {
    all_reduce_of::<f32>(gpu, len, source)?;
    all_reduce_of::<f64>(gpu, len, source)?;
    all_reduce_of::<f16>(gpu, len, source)?;
    all_reduce_of::<bf16>(gpu, len, source)
}

fn all_reduce_of<T: OnDevice>(gpu: &Gpu, len: usize, source: &mut SmallRng) -> Result<(), String> {
    for ranks in [1, 2, 3, 7] {
        // Uneven, and some of them empty.
        let shards: Vec<Vec<T>> = (0..ranks)
            .map(|_| {
                let kinds = if source.random_range(0..8) == 0 { ALL.len() } else { ALL.len() - 3 };
                let each = if source.random_range(0..4) == 0 { 0 } else { source.random_range(0..50) };
                numbers::<T>(ALL[source.random_range(0..kinds)], each * len, source)
            })
            .collect();
        let sums = |shard: &Vec<T>| {
            let mut sums = gpu.exact_sums::<T>(len)?;
            let layout = Layout::contiguous(&[shard.len() / len.max(1), len])?;
            sums.add(warpfold::ArrayView::new(gpu.upload(shard)?.view(), &layout)?, 0)?;
            Ok(sums)
        };
        let add = |sums: &mut [ExactSum<T>], shard: &[T]| {
            shard.iter().enumerate().for_each(|(i, &element)| sums[i % len].add(element));
        };
        let case = format!("{len} sums of {} over {ranks} ranks", T::NAME);
        let mut right = vec![ExactSum::<T>::new(); len];
        shards.iter().for_each(|shard| add(&mut right, shard));
        let further = numbers::<T>(crate::exact::Data::Uniform, 3 * len, source);
        let ranks = shards.iter().map(sums).collect::<Result<Vec<_>, _>>().map_err(text)?;
        let after = |sums: &mut ExactStates<ExactSum<T>>| {
            let layout = Layout::contiguous(&[3, len])?;
            sums.add(warpfold::ArrayView::new(gpu.upload(&further)?.view(), &layout)?, 0)
        };
        add(&mut right, &further);
        check_all_reduce(gpu, ranks, &right, after, &case)?;

        let sums = |shard: &Vec<T>| {
            let mut sums = gpu.exact_dots::<T>(len)?;
            let layout = Layout::contiguous(&[shard.len() / len.max(1), len])?;
            sums.add_squares(warpfold::ArrayView::new(gpu.upload(shard)?.view(), &layout)?, 0)?;
            Ok(sums)
        };
        let add = |sums: &mut [ExactDot<T>], shard: &[T]| {
            shard.iter().enumerate().for_each(|(i, &element)| sums[i % len].add(element, element));
        };
        let mut right = vec![ExactDot::<T>::new(); len];
        shards.iter().for_each(|shard| add(&mut right, shard));
        let ranks = shards.iter().map(sums).collect::<Result<Vec<_>, _>>().map_err(text)?;
        let after = |sums: &mut ExactStates<ExactDot<T>>| {
            let layout = Layout::contiguous(&[3, len])?;
            sums.add_squares(warpfold::ArrayView::new(gpu.upload(&further)?.view(), &layout)?, 0)
        };
        add(&mut right, &further);
        check_all_reduce(gpu, ranks, &right, after, &format!("{case}, of squares"))?;
    }
    Ok(())
}

/// Checks that each rank has the merged sums after an all-reduce, and the right ones after a further addition.
fn check_all_reduce<S: ExactState + PartialEq + Debug>(
    gpu: &Gpu,
    ranks: Vec<ExactStates<S>>,
    right: &[S],
    after: impl Fn(&mut ExactStates<S>) -> Result<(), Error>,
    case: &str,
) -> Result<(), String> {
    let count = ranks.len() as u32;
    let mut all = vec![0_i64; right.len() * S::WORDS];
    for rank in &ranks {
        let words = gpu.download(rank.words().map_err(text)?).map_err(text)?;
        all.iter_mut().zip(words).for_each(|(all, word)| *all += word);
    }
    let mut on_host: Vec<Vec<S>> = Vec::new();
    for (rank, mut sums) in ranks.into_iter().enumerate() {
        let mut of_host = sums.download().map_err(text)?;
        words::all_reduce(&mut of_host, count, |words| {
            words.copy_from_slice(&all);
            Ok::<(), WordsError>(())
        })
        .map_err(|error| error.to_string())?;
        sums.all_reduce(count, |gpu, words| gpu.upload_into(&all, words)).map_err(text)?;
        equal(sums.download().map_err(text)?, of_host.clone(), &format!("rank {rank}'s {case}"))?;
        after(&mut sums).map_err(text)?;
        equal(sums.download().map_err(text)?, right.to_vec(), &format!("rank {rank}'s {case}, after an addition"))?;
        on_host.push(of_host);
    }
    let same = on_host.iter().all(|sums| *sums == on_host[0]);
    if same { Ok(()) } else { Err(format!("the ranks differ in {case}")) }
}

/// Checks sums over 2^20 ranks with equal words, which are the words of 20 merges of a sum with itself.
///
/// # Errors
/// As for [`products`].
pub fn many_ranks(gpu: &Gpu) -> Result<(), String> {
    many_ranks_of::<f32>(gpu)?;
    many_ranks_of::<f64>(gpu)?;
    many_ranks_of::<f16>(gpu)?;
    many_ranks_of::<bf16>(gpu)
}

fn many_ranks_of<T: OnDevice>(gpu: &Gpu) -> Result<(), String> {
    let mut source = SmallRng::seed_from_u64(60);
    for data in ALL {
        let mut elements = numbers::<T>(data, 40, &mut source);
        elements[..20].fill(T::nearest(T::GREATEST));
        let input = gpu.upload(&elements).map_err(text)?;
        let layout = Layout::contiguous(&[20, 2]).map_err(text)?;
        let input = warpfold::ArrayView::new(input.view(), &layout).map_err(text)?;
        let mut sums = gpu.exact_sums::<T>(2).map_err(text)?;
        // Their limbs are not canonical.
        (0..50).try_for_each(|_| sums.add(input, 0)).map_err(text)?;
        doubled(gpu, sums, &format!("2^20 sums of {} of {data:?}", T::NAME))?;
        let mut sums = gpu.exact_dots::<T>(2).map_err(text)?;
        (0..50).try_for_each(|_| sums.add_squares(input, 0)).map_err(text)?;
        doubled(gpu, sums, &format!("2^20 sums of squares of {} of {data:?}", T::NAME))?;
    }
    Ok(())
}

fn doubled<S: ExactState + PartialEq + Debug>(gpu: &Gpu, mut sums: ExactStates<S>, case: &str) -> Result<(), String> {
    let mut merged = gpu.upload_exact_sums(&sums.download().map_err(text)?).map_err(text)?;
    for _ in 0..MAX_RANKS.ilog2() {
        let same = gpu.upload_exact_sums(&merged.download().map_err(text)?).map_err(text)?;
        merged.merge(&same).map_err(text)?;
    }
    sums.all_reduce(MAX_RANKS, |gpu, words| {
        let all: Vec<i64> = gpu.download(words.as_view())?.iter().map(|word| word * i64::from(MAX_RANKS)).collect();
        gpu.upload_into(&all, words)
    })
    .map_err(text)?;
    equal(sums.download().map_err(text)?, merged.download().map_err(text)?, case)
}

/// Checks that an all-reduce that fails is a typed error, and leaves sums that are refused.
///
/// # Errors
/// If the result is different.
pub fn errors(gpu: &Gpu) -> Result<(), String> {
    let input = gpu.upload(&[1.0_f32, 2.0]).map_err(text)?;
    let new = || {
        let mut sums = gpu.exact_sums::<f32>(1)?;
        sums.add(&input, 0)?;
        Ok(sums)
    };
    let mut sums = new().map_err(text)?;
    for ranks in [0, MAX_RANKS + 1] {
        match sums.all_reduce(ranks, |_, _| Ok::<(), Error>(())) {
            Err(Error::Words(WordsError::Ranks { found })) if found == ranks => {}
            other => return Err(format!("expected the error of {ranks} ranks, found {other:?}")),
        }
    }
    let words: [i64; 16] = std::array::from_fn(|k| if k == 15 { MAX_ELEMENTS as i64 / 2 } else { 0 });
    let full = ExactSum::<f32>::from_words(&words).map_err(|error| error.to_string())?;
    let mut full = gpu.upload_exact_sums(&[full]).map_err(text)?;
    full.all_reduce(2, |_, _| Ok::<(), Error>(())).map_err(text)?;
    match full.all_reduce(2, |_, _| Ok::<(), Error>(())) {
        Err(Error::TooManyElements(TooManyElements { count })) => equal(count, 2 * MAX_ELEMENTS, "the elements")?,
        other => return Err(format!("expected the error of too many elements, found {other:?}")),
    }
    // None of these has changed the sums.
    equal(sums.download().map_err(text)?, vec![ExactSum::from_iter([1.0, 2.0])], "the sum after refused calls")?;

    #[derive(Debug)]
    enum Engine {
        Failed,
        Warpfold(Error),
    }
    impl From<Error> for Engine {
        fn from(error: Error) -> Self {
            Self::Warpfold(error)
        }
    }
    match sums.all_reduce(2, |gpu, words| {
        gpu.upload_into(&[5; 16], words)?;
        Err(Engine::Failed)
    }) {
        Err(Engine::Failed) => {}
        Err(Engine::Warpfold(error)) => return Err(format!("expected the engine's error, found {error}")),
        Ok(()) => return Err("expected the engine's error".to_owned()),
    }
    let other = new().map_err(text)?;
    let mut value = gpu.zeroed::<f32>(1).map_err(text)?;
    for found in [
        sums.add(&input, 0),
        sums.merge(&other),
        new().map_err(text)?.merge(&sums),
        sums.values().map(|_| ()),
        sums.means().map(|_| ()),
        sums.values_into(&mut value),
        sums.download().map(|_| ()),
        sums.words().map(|_| ()),
        sums.all_reduce(1, |_, _| Ok(())),
    ] {
        if !matches!(found, Err(Error::UnusableSums)) {
            return Err(format!("expected the error of unusable sums, found {found:?}"));
        }
    }
    sums.clear().map_err(text)?;
    sums.add(&input, 0).map_err(text)?;
    equal(sums.download().map_err(text)?, other.download().map_err(text)?, "the sum after it is cleared")?;

    // Words that no sum has.
    sums.all_reduce(1, |gpu, words| gpu.upload_into(&[-1; 16], words)).map_err(text)?;
    match sums.download() {
        Err(Error::Words(WordsError::NotASum)) => Ok(()),
        other => Err(format!("expected the error of words that no sum has, found {other:?}")),
    }
}
