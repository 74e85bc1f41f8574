//! Runs of the kernels with operations for which the compiler calls functions by name.

use k::core_functions::{BYTES, COMPARISONS, Copy};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::{Error, Gpu};

use super::{compare, k};

/// Copies of every length up to 70 bytes from and to every offset modulo 8, and moves by up to 20 bytes in both
/// directions.
fn all_copies() -> Vec<Copy> {
    let mut source = SmallRng::seed_from_u64(17);
    let mut copies = Vec::new();
    for len in 0..70_u32 {
        for offset in 0..64 {
            let by = source.random_range(0..=40);
            copies.push(Copy {
                len,
                from: offset % 8,
                to: 8 + offset / 8,
                moved_from: 40,
                moved_to: 20 + by,
                set: source.random_range(0..70),
                set_to: source.random_range(80..100),
            });
        }
    }
    copies
}

pub fn copies(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut source = SmallRng::seed_from_u64(18);
    let bytes: Vec<u8> = (0..BYTES).map(|_| source.random()).collect();
    let copies = all_copies();
    let expected: Vec<u8> = copies
        .iter()
        .flat_map(|copy| {
            let Copy { len, from, to, moved_from, moved_to, set, set_to } = *copy;
            let [len, from, to, set] = [len, from, to, set].map(|word| word as usize);
            let [moved_from, moved_to, set_to] = [moved_from, moved_to, set_to].map(|word| word as usize);
            let mut own = [0x11; BYTES];
            own[to..to + len].copy_from_slice(&bytes[from..from + len]);
            own.copy_within(moved_from..moved_from + len, moved_to);
            own[set_to..set_to + set].fill(0xAB);
            own
        })
        .collect();
    let (input, list) = (gpu.upload(&bytes)?, gpu.upload(&copies)?);
    let mut global = gpu.upload(&vec![0x11_u8; BYTES * copies.len()])?;
    let mut from_local = gpu.zeroed::<u8>(BYTES * copies.len())?;
    // SAFETY: the bytes of each thread.
    let kernel = unsafe { k::core_functions::copies::handle() }.with_block(64);
    let arguments = k::core_functions::copies::Args {
        input: input.view(),
        copies: list.view(),
        global: global.view_mut(),
        from_local: from_local.view_mut(),
    };
    gpu.launch(kernel, (copies.len() as u32).div_ceil(64), arguments)?;
    let all = compare(gpu, "global memory", &global, &expected)?;
    Ok([all, compare(gpu, "local memory", &from_local, &expected)?].concat())
}

pub fn comparisons(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    const LEN: usize = 160;
    // Equal bytes, except for a few whose positions have every remainder modulo 16.
    let a: Vec<u8> = (0..LEN).map(|i| (i * 37 % 250) as u8).collect();
    let mut b = a.clone();
    for i in (40..LEN).step_by(17) {
        b[i] ^= 0x80;
    }
    let mut starts = Vec::new();
    for len in 0..=64_u32 {
        for of_a in 0..96 {
            starts.push([of_a, of_a, len]);
        }
        starts.push([len % 16, 16 + len, len]);
    }
    let expected: Vec<i32> = starts
        .iter()
        .flat_map(|start| {
            let [of_a, of_b, len] = start.map(|word| word as usize);
            let (x, y) = (&a[of_a..of_a + len], &b[of_b..of_b + len]);
            // Byte by byte.
            let difference = (0..len).find(|&i| x[i] != y[i]);
            let order = difference.map_or(0, |i| if x[i] < y[i] { -1 } else { 1 });
            let equal = |count: usize| i32::from((0..count).all(|i| a[of_a + i] == b[of_b + i]));
            let tail = (len / 2..len).all(|i| x[i] == y[i]);
            let first = y.first().map_or(1, |&byte| byte);
            [
                order,
                i32::from(difference.is_some()),
                i32::from(difference.is_none()),
                order,
                equal(len / 2),
                i32::from(tail),
                equal(32),
                equal(40),
                i32::from(difference.is_none()),
                -order,
                i32::from((0..len).any(|i| x[i] == first)),
                i32::from((of_a..LEN).any(|i| a[i] == 0xFF)),
            ]
        })
        .collect();
    let (x, y, list) = (gpu.upload(&a)?, gpu.upload(&b)?, gpu.upload(&starts)?);
    let mut output = gpu.zeroed::<i32>(COMPARISONS * starts.len())?;
    // SAFETY: a word for each comparison.
    let kernel = unsafe { k::core_functions::comparisons::handle() }.with_block(64);
    let arguments = k::core_functions::comparisons::Args {
        a: x.view(),
        b: y.view(),
        starts: list.view(),
        output: output.view_mut(),
    };
    gpu.launch(kernel, (starts.len() as u32).div_ceil(64), arguments)?;
    compare(gpu, "comparisons", &output, &expected)
}

pub fn words_by_match(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let texts: [(&[u8], u32); 9] = [
        (b"a word", 1),
        (b"another word", 2),
        (b"the longest of the words, of 39 letters", 3),
        (b"the longest of the words, of 40 letters.", 4),
        ("ein Wörtchen".as_bytes(), 5),
        (b"a ward", 6),
        (b"", 6),
        (b"the longest of the words, of 40 letters?", 6),
        (b"not \xFF text", 7),
    ];
    let letters = texts.map(|(text, _)| std::array::from_fn(|i| text.get(i).copied().unwrap_or_default()));
    let (input, mut output) = (gpu.upload::<[u8; 48]>(&letters)?, gpu.zeroed::<u32>(texts.len())?);
    // SAFETY: as many numbers as texts.
    let kernel = unsafe { k::core_functions::words_by_match::handle() }.with_block(32);
    let arguments = k::core_functions::words_by_match::Args { words: input.view(), output: output.view_mut() };
    gpu.launch(kernel, 1, arguments)?;
    compare(gpu, "words by match", &output, &texts.map(|(_, number)| number))
}

/// Integers around powers of two and their sums, which have to be rounded in every way, and random ones of every size.
fn integers() -> Vec<u128> {
    let mut source = SmallRng::seed_from_u64(19);
    let mut all = vec![0, 1, u128::MAX];
    for high in 0..128 {
        for low in 0..=high {
            let sum = 1_u128 << high | 1_u128 << low;
            all.extend([sum, sum - 1, sum.wrapping_add(1), sum.wrapping_neg()]);
            // Halfway between two floats of 24 or 53 bits, and a bit more or less.
            for bits in [24, 53] {
                if let Some(half) = (high + 1_u32).checked_sub(bits + 1) {
                    let halfway = 1_u128 << high | 1_u128 << half;
                    let odd = halfway | 1_u128 << (half + 1);
                    let bit = 1_u128 << low;
                    all.extend([halfway, odd].iter().flat_map(|x| [*x, x.wrapping_add(bit), x.wrapping_sub(bit)]));
                }
            }
        }
    }
    all.extend((0..20_000).map(|_| source.random::<u128>() >> source.random_range(0..128)));
    all
}

pub fn integers_to_floats(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let integers = integers();
    let input = gpu.upload(&integers)?;
    let (mut singles, mut doubles) = (gpu.zeroed::<[f32; 2]>(integers.len())?, gpu.zeroed(integers.len())?);
    let arguments = k::core_functions::integers_to_floats::Args {
        integers: input.view(),
        singles: singles.view_mut(),
        doubles: doubles.view_mut(),
    };
    let kernel = k::core_functions::integers_to_floats::handle().with_block(128);
    gpu.launch(kernel, (integers.len() as u32).div_ceil(128), arguments)?;
    let of_singles: Vec<_> = integers.iter().map(|&x| [x as f32, x as i128 as f32]).collect();
    let of_doubles: Vec<_> = integers.iter().map(|&x| [x as f64, x as i128 as f64]).collect();
    let all = compare(gpu, "f32", &singles, &of_singles)?;
    Ok([all, compare(gpu, "f64", &doubles, &of_doubles)?].concat())
}

pub fn floats_to_integers(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let mut source = SmallRng::seed_from_u64(20);
    let (mut singles, mut doubles) = (Vec::new(), Vec::new());
    // Every exponent, infinities and NaNs included, with fractions of few bits, of many, and random ones.
    for exponent in 0..0x800_u64 {
        for fraction in [0, 1, 2, 3, source.random(), source.random(), u64::MAX, u64::MAX - 1, 1 << 63, 1 << 62] {
            for sign in [0, 1] {
                singles.push(f32::from_bits((sign << 31 | (exponent & 0xFF) << 23 | fraction >> 41) as u32));
                doubles.push(f64::from_bits(sign << 63 | exponent << 52 | fraction >> 12));
                let low = f64::from_bits(sign << 63 | exponent << 52 | fraction & 3);
                singles.push(low as f32);
                doubles.push(low);
            }
        }
    }
    for _ in 0..20_000 {
        singles.push(source.random_range(-200.0..200_f32).exp2());
        doubles.push(-source.random_range(-200.0..200_f64).exp2());
    }
    let (x, y) = (gpu.upload(&singles)?, gpu.upload(&doubles)?);
    let (mut from_singles, mut from_doubles) = (gpu.zeroed(singles.len())?, gpu.zeroed(doubles.len())?);
    let arguments = k::core_functions::floats_to_integers::Args {
        singles: x.view(),
        doubles: y.view(),
        from_singles: from_singles.view_mut(),
        from_doubles: from_doubles.view_mut(),
    };
    let kernel = k::core_functions::floats_to_integers::handle().with_block(128);
    gpu.launch(kernel, (singles.len() as u32).div_ceil(128), arguments)?;
    let of_singles: Vec<_> = singles.iter().map(|&x| [x as u128, x as i128 as u128]).collect();
    let of_doubles: Vec<_> = doubles.iter().map(|&x| [x as u128, x as i128 as u128]).collect();
    assert!(of_doubles.contains(&[u128::MAX, i128::MAX as u128]) && of_doubles.contains(&[0, i128::MIN as u128]));
    let all = compare(gpu, "from f32", &from_singles, &of_singles)?;
    Ok([all, compare(gpu, "from f64", &from_doubles, &of_doubles)?].concat())
}
