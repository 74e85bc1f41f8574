//! Random numbers of five kinds.

use rand::Rng;
use rand::rngs::SmallRng;

/// Kinds of data.
#[derive(Clone, Copy, Debug)]
pub enum Data {
    Normal,
    Wide,
    AnyFinite,
    Subnormal,
    Cancelling,
}

/// All kinds.
pub const ALL: [Data; 5] = [Data::Normal, Data::Wide, Data::AnyFinite, Data::Subnormal, Data::Cancelling];

fn any_f32(rng: &mut SmallRng) -> f32 {
    loop {
        let x = f32::from_bits(rng.random());
        if x.is_finite() {
            return x;
        }
    }
}

fn any_f64(rng: &mut SmallRng) -> f64 {
    loop {
        let x = f64::from_bits(rng.random());
        if x.is_finite() {
            return x;
        }
    }
}

fn bell_shaped(rng: &mut SmallRng) -> f64 {
    (0..4).map(|_| rng.random::<f64>()).sum::<f64>() - 2.0
}

/// `len` numbers of a kind; three times as many of `Cancelling`.
pub fn numbers_f32(data: Data, len: usize, rng: &mut SmallRng) -> Vec<f32> {
    let mut all: Vec<f32> = (0..len)
        .map(|_| match data {
            Data::Normal | Data::Cancelling => bell_shaped(rng) as f32,
            Data::Wide => bell_shaped(rng) as f32 * 2_f32.powi(rng.random_range(-60..60)),
            Data::AnyFinite => any_f32(rng),
            Data::Subnormal => f32::from_bits(rng.random::<u32>() & 0x807F_FFFF),
        })
        .collect();
    if matches!(data, Data::Cancelling) {
        let further: Vec<f32> = all.iter().map(|x| -x * 1e10).chain(all.iter().map(|x| x * 1e10)).collect();
        all.extend(further);
    }
    all
}

/// [`numbers_f32`] for `f64`.
pub fn numbers_f64(data: Data, len: usize, rng: &mut SmallRng) -> Vec<f64> {
    let mut all: Vec<f64> = (0..len)
        .map(|_| match data {
            Data::Normal | Data::Cancelling => bell_shaped(rng),
            Data::Wide => bell_shaped(rng) * 2_f64.powi(rng.random_range(-300..300)),
            Data::AnyFinite => any_f64(rng),
            Data::Subnormal => f64::from_bits(rng.random::<u64>() & 0x800F_FFFF_FFFF_FFFF),
        })
        .collect();
    if matches!(data, Data::Cancelling) {
        let further: Vec<f64> = all.iter().map(|x| -x * 1e100).chain(all.iter().map(|x| x * 1e100)).collect();
        all.extend(further);
    }
    all
}
