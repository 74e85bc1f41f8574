//! Runs of the kernels with values as their only parameters, with `bool`s and enums, and with keywords as names.

use cuda_std::num_complex::Complex;
use cuda_std::{bf16, f16};
use k::parameters::{Color, Generic, Job};
use warpfold::{Error, Gpu};

use super::{compare, k};

/// Launches a kernel whose only parameter is named `$field`.
macro_rules! launch_with {
    ($gpu:expr, $kernel:ident, $field:ident: $value:expr) => {
        $gpu.launch(
            k::parameters::$kernel::handle().with_block(32),
            2,
            k::parameters::$kernel::Args { $field: $value },
        )?
    };
}

pub fn only_values(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let (mut a, mut b) = (gpu.zeroed::<u32>(40)?, gpu.zeroed::<u32>(40)?);
    let job = |words: u64| Job { words, count: 40, first: 1000 };
    // SAFETY: the jobs' words are the buffers', which live until the downloads.
    unsafe {
        let kernel = k::parameters::only_a_struct::handle().with_block(32);
        gpu.launch(kernel, 2, k::parameters::only_a_struct::Args { job: job(a.view_mut().device_address()) })?;
        let kernel = k::parameters::only_an_alias::handle().with_block(32);
        gpu.launch(kernel, 2, k::parameters::only_an_alias::Args { job: job(b.view_mut().device_address()) })?;
    }
    let all = compare(gpu, "only a struct", &a, &(1000..1040).collect::<Vec<_>>())?;
    let all = [all, compare(gpu, "only an alias", &b, &(0..40).map(|i| 1000 ^ i).collect::<Vec<_>>())?].concat();

    let (mut singles, mut wide) = (gpu.zeroed::<f32>(2)?, gpu.zeroed::<u64>(2)?);
    let of_singles = Generic { to: singles.view_mut().device_address(), values: [1.5_f32, -2.5] };
    let of_wide = Generic { to: wide.view_mut().device_address(), values: [u64::MAX - 1, 3] };
    // SAFETY: the values' addresses are those of the buffers, which live until the downloads.
    unsafe {
        let kernel = k::parameters::only_a_generic_struct::handle::<f32>().with_block(32);
        gpu.launch(kernel, 1, k::parameters::only_a_generic_struct::Args { value: of_singles })?;
        let kernel = k::parameters::only_a_generic_struct::handle::<u64>().with_block(32);
        gpu.launch(kernel, 1, k::parameters::only_a_generic_struct::Args { value: of_wide })?;
    }
    let all = [all, compare(gpu, "a generic struct", &singles, &[1.5, -2.5])?].concat();

    launch_with!(gpu, only_a_bool, x: true);
    launch_with!(gpu, only_a_u128, x: u128::MAX / 3);
    launch_with!(gpu, only_an_i128, x: -2);
    launch_with!(gpu, only_an_f16, x: f16::from_f32(1.5));
    launch_with!(gpu, only_a_bf16, x: bf16::from_f32(-0.5));
    launch_with!(gpu, only_a_complex_number, x: Complex::new(1.0, -2.0));
    launch_with!(gpu, only_a_vector, x: glam::Vec4::new(1.0, 2.0, 3.0, 4.0));
    launch_with!(gpu, only_an_array, x: [5, 4, 3, 2, 1]);
    launch_with!(gpu, only_a_char, x: 'ß');
    gpu.synchronize()?;
    Ok([all, compare(gpu, "a generic struct", &wide, &[u64::MAX - 1, 3])?].concat())
}

pub fn bools(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    const LEN: usize = 300;
    let flags: Vec<bool> = (0..LEN).map(|i| i % 3 == 1 || i % 7 == 0).collect();
    let input = gpu.upload(&flags)?;
    let mut all = Vec::new();
    for negate in [false, true] {
        let (mut count, mut out) = (gpu.zeroed::<u32>(LEN)?, gpu.upload(&[true; LEN])?);
        let arguments =
            k::parameters::bools::Args { count: count.view_mut(), negate, flags: input.view(), out: out.view_mut() };
        gpu.launch(k::parameters::bools::handle().with_block(64), 5, arguments)?;
        let expected: Vec<bool> = flags.iter().map(|&flag| flag != negate).collect();
        assert_eq!(gpu.download(&out)?, expected);
        let next = |i: usize| flags.get(i + 1).copied().unwrap_or(true);
        let counts: Vec<u32> = (0..LEN).map(|i| u32::from(flags[i]) + u32::from(next(i))).collect();
        all.extend(compare(gpu, "counts of bools", &count, &counts)?);

        let mut out = gpu.upload(&[true; LEN])?;
        // SAFETY: as many outputs as inputs, all of which are `true` or `false`.
        let kernel = unsafe { k::parameters::slices_of_bools::handle() }.with_block(64);
        let arguments = k::parameters::slices_of_bools::Args { flags: input.view(), negate, out: out.view_mut() };
        gpu.launch(kernel, 5, arguments)?;
        assert_eq!(gpu.download(&out)?, expected, "slices");
        all.extend(expected.into_iter().map(u64::from));
    }
    Ok(all)
}

/// Bytes that are neither 0 nor 1: kernels read them as `true`, and a download is an error.
pub fn bytes_that_are_no_bools(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    const LEN: usize = 256;
    let mut flags = gpu.upload(&[true; LEN])?;
    let kernel = k::parameters::bytes_as_bools::handle().with_block(64);
    gpu.launch(kernel, 4, k::parameters::bytes_as_bools::Args { flags: flags.view_mut() })?;
    assert!(matches!(gpu.download(&flags), Err(Error::NotAValue { index: 2, ty: "bool" })));
    assert_eq!(gpu.download(flags.view().slice(0, 2)?)?, [false, true]);

    let (mut count, mut out) = (gpu.zeroed::<u32>(LEN)?, gpu.zeroed::<bool>(LEN)?);
    let arguments =
        k::parameters::bools::Args { count: count.view_mut(), negate: false, flags: flags.view(), out: out.view_mut() };
    gpu.launch(k::parameters::bools::handle().with_block(64), 4, arguments)?;
    let expected: Vec<bool> = (0..LEN).map(|byte| byte != 0).collect();
    assert_eq!(gpu.download(&out)?, expected);
    let counts: Vec<u32> = (0..LEN).map(|byte| 1 + u32::from(byte != 0)).collect();
    compare(gpu, "bytes as bools", &count, &counts)
}

pub fn enums(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let colors: Vec<Color> = (0..50).map(|i| [Color::Blue, Color::Red, Color::Green][i % 3]).collect();
    let letters: Vec<char> = (0..50).map(|i| if i == 7 { char::MAX } else { char::from(60 + i) }).collect();
    let (x, y) = (gpu.upload(&colors)?, gpu.upload(&letters)?);
    // Zeros are no color.
    let (mut next, mut next_letters) = (gpu.zeroed::<Color>(50)?, gpu.zeroed::<char>(50)?);
    assert!(matches!(gpu.download(&next), Err(Error::NotAValue { index: 0, .. })));
    let arguments = k::parameters::enums::Args {
        colors: x.view(),
        letters: y.view(),
        next: next.view_mut(),
        next_letters: next_letters.view_mut(),
    };
    gpu.launch(k::parameters::enums::handle().with_block(32), 2, arguments)?;
    let (next, next_letters) = (gpu.download(&next)?, gpu.download(&next_letters)?);
    let expected: Vec<Color> = (0..50).map(|i| [Color::Red, Color::Green, Color::Blue][i % 3]).collect();
    assert_eq!(next, expected);
    let expected: Vec<char> = (0..50).map(|i| if i == 7 { '!' } else { char::from(61 + i) }).collect();
    assert_eq!(next_letters, expected);
    Ok(next.into_iter().map(|color| color as u64).chain(next_letters.into_iter().map(u64::from)).collect())
}

pub fn keywords(gpu: &Gpu) -> Result<Vec<u64>, Error> {
    let numbers: Vec<u32> = (0..50).collect();
    let (input, mut output) = (gpu.upload(&numbers)?, gpu.zeroed::<u32>(50)?);
    let arguments = k::parameters::r#loop::Args { r#type: input.view(), r#for: 5, r#in: output.view_mut() };
    let kernel = k::parameters::r#loop::handle().with_block(32);
    assert_eq!(kernel.id().entry, "loop");
    gpu.launch(kernel, 2, arguments)?;
    let mut all = compare(gpu, "loop", &output, &numbers.iter().map(|x| x + 5).collect::<Vec<_>>())?;

    let kernel = k::parameters::r#match::handle::<i32>().with_block(32);
    assert_eq!(kernel.id().entry, "match_i32");
    let arguments = k::parameters::Keywords { r#as: input.view(), r#mut: output.view_mut(), r#if: 3 };
    gpu.launch(kernel, 2, arguments)?;
    all.extend(compare(gpu, "match", &output, &numbers.iter().map(|x| 3 * x + 4).collect::<Vec<_>>())?);

    let r#struct = Job { words: 0, count: 0, first: 7 };
    gpu.launch(k::parameters::r#while::handle().with_block(32), 1, k::parameters::r#while::Args { r#struct })?;
    gpu.synchronize()?;

    let mut two = [gpu.zeroed::<u32>(32)?, gpu.zeroed::<u32>(32)?];
    let [first, second] = &mut two;
    // SAFETY: as many elements as threads.
    unsafe {
        let kernel = k::parameters::not_mangled::handle().with_block(32);
        gpu.launch(kernel, 1, k::parameters::not_mangled::Args { x: 8, out: first.view_mut() })?;
        let kernel = k::parameters::not_mangled_either::handle().with_block(32);
        gpu.launch(kernel, 1, k::parameters::not_mangled_either::Args { x: 8, out: second.view_mut() })?;
    }
    all.extend(compare(gpu, "no_mangle", &two[0], &[8; 32])?);
    all.extend(compare(gpu, "no_mangle", &two[1], &[9; 32])?);
    Ok(all)
}
