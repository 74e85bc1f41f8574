//! The kernels in the executor, compared with the CPU.

use cuda_std::launch::Kernel;
use cuda_std::prelude::*;
use kernels::ladder::reduce_shared::{MAX_BLOCKS, SINGLE_LAUNCH_BLOCK, single_launch};
use proptest::prelude::*;
use test_kernels::out_of_bounds;
use test_support::reference::{Sum, check_rung, first_difference, transposed};
use test_support::{device_library, sizes};
use warpfold::ladder::{BLOCKS, ControlFlowRung, ReduceRung, TransposeRung};
use warpfold::{Error, Gpu};

/// The sum of `numbers` by a rung.
fn sum_by<T: Sum>(rung: ReduceRung, block: usize, numbers: &[T]) -> Result<T, Error> {
    let gpu = Gpu::simt();
    let input = gpu.upload(numbers)?;
    let mut reduction = rung.prepare::<T>(&gpu, numbers.len(), block)?;
    reduction.load(&gpu, &input)?;
    reduction.start(&gpu, &input)?;
    reduction.finish(&gpu)
}

fn any_rung() -> impl Strategy<Value = ReduceRung> {
    prop::sample::select(ReduceRung::all().collect::<Vec<_>>())
}

/// The rungs that also exist for integers.
fn any_rung_of_integers() -> impl Strategy<Value = ReduceRung> {
    prop::sample::select(of_integers(ReduceRung::all()).collect::<Vec<_>>())
}

fn of_integers(rungs: impl IntoIterator<Item = ReduceRung>) -> impl Iterator<Item = ReduceRung> {
    rungs.into_iter().filter(|rung| !rung.is_exact())
}

/// The rungs that also exist for 64-bit numbers.
fn any_shared_rung() -> impl Strategy<Value = ReduceRung> {
    prop::sample::select(&ReduceRung::SHARED[..])
}

fn any_shared_rung_of_integers() -> impl Strategy<Value = ReduceRung> {
    prop::sample::select(of_integers(ReduceRung::SHARED).collect::<Vec<_>>())
}

fn any_block() -> impl Strategy<Value = usize> {
    prop::sample::select(&BLOCKS[..])
}

/// Lengths near the boundaries of blocks and vectors, and any others.
fn any_len() -> impl Strategy<Value = usize> {
    let near = prop::sample::select(vec![0_usize, 1, 4, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]);
    prop_oneof![(near, 0_usize..5).prop_map(|(at, off)| (at + off).saturating_sub(2)), 0_usize..20_000]
}

/// Floats of every class, including signalling NaNs.
fn any_special() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => -1.0_f32..1.0,
        1 => prop::num::f32::ANY,
        1 => prop::sample::select(vec![
            0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::from_bits(0x7F80_0001), f32::from_bits(1),
            f32::MIN_POSITIVE, -f32::MIN_POSITIVE, f32::MAX, f32::MIN,
        ]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sums_of_floats(rung in any_rung(), block in any_block(), len in any_len(), seed: u64) {
        let mut source = <rand::rngs::SmallRng as rand::SeedableRng>::seed_from_u64(seed);
        let numbers: Vec<f32> = (0..len).map(|_| f32::random(&mut source)).collect();
        check_rung(rung, sum_by(rung, block, &numbers)?, &numbers).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn sums_of_integers(rung in any_rung_of_integers(), block in any_block(), len in any_len(), seed: u64) {
        let mut source = <rand::rngs::SmallRng as rand::SeedableRng>::seed_from_u64(seed);
        let numbers: Vec<i32> = (0..len).map(|_| i32::random(&mut source)).collect();
        i32::check(sum_by(rung, block, &numbers)?, &numbers).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn sums_of_wide_floats(rung in any_shared_rung(), block in any_block(), len in any_len(), seed: u64) {
        let mut source = <rand::rngs::SmallRng as rand::SeedableRng>::seed_from_u64(seed);
        let numbers: Vec<f64> = (0..len).map(|_| f64::random(&mut source)).collect();
        check_rung(rung, sum_by(rung, block, &numbers)?, &numbers).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn sums_of_wide_integers(rung in any_shared_rung_of_integers(), block in any_block(), len in any_len(), seed: u64) {
        let mut source = <rand::rngs::SmallRng as rand::SeedableRng>::seed_from_u64(seed);
        let numbers: Vec<i64> = (0..len).map(|_| i64::random(&mut source)).collect();
        i64::check(sum_by(rung, block, &numbers)?, &numbers).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn control_flow(
        rung in prop::sample::select(&ControlFlowRung::ALL[..]),
        words in prop::collection::vec(any::<u32>(), 0..1000),
        all_odd: bool,
    ) {
        let words: Vec<u32> = words.into_iter().map(|word| word | u32::from(all_odd)).collect();
        let gpu = Gpu::simt();
        let mut result = gpu.zeroed::<u32>(words.len())?;
        rung.start(&gpu, &gpu.upload(&words)?, &mut result)?;
        prop_assert_eq!(gpu.download(&result)?, rung.expected(&words));
    }

    #[test]
    fn an_input_is_never_changed(rung in any_rung_of_integers(), block in any_block(), len in any_len()) {
        let gpu = Gpu::simt();
        let numbers: Vec<i32> = (0..len as i32).collect();
        let input = gpu.upload(&numbers)?;
        let mut reduction = rung.prepare::<i32>(&gpu, len, block)?;
        reduction.load(&gpu, &input)?;
        reduction.start(&gpu, &input)?;
        prop_assert_eq!(gpu.download(&input)?, numbers);
    }

    #[test]
    fn sums_of_special_floats(
        rung in any_rung(),
        block in any_block(),
        numbers in prop::collection::vec(any_special(), 0..600),
    ) {
        check_rung(rung, sum_by(rung, block, &numbers)?, &numbers).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn sums_of_negative_zeros(rung in any_rung(), block in any_block(), len in 1_usize..3000) {
        // A rung that adds floats yields a negative zero, too.
        let zero = if rung.is_exact() { 0.0_f32 } else { -0.0 };
        prop_assert_eq!(sum_by(rung, block, &vec![-0.0_f32; len])?.to_bits(), zero.to_bits());
    }

    #[test]
    fn transposes(
        rung in prop::sample::select(&TransposeRung::ALL[..]),
        rows in 1_usize..140,
        columns in 1_usize..140,
        first: u32,
    ) {
        // Each element has different bits, including NaNs.
        let elements: Vec<f32> =
            (0..rows * columns)
                .map(|i| f32::from_bits(first.wrapping_add(0x9E37_79B9_u32.wrapping_mul(i as u32))))
                .collect();
        let gpu = Gpu::simt();
        let matrix = gpu.upload(&elements)?.reshape(&[rows, columns])?;
        let mut result = gpu.upload(&vec![f32::from_bits(u32::MAX); rows * columns])?.reshape(&[columns, rows])?;
        rung.start(&gpu, &matrix, &mut result)?;
        let expected = if rung.is_copy() { elements } else { transposed(&elements, rows, columns) };
        prop_assert_eq!(first_difference(&gpu.download(&result)?, &expected), None);
    }
}

/// A checksum of the output of each run of the device library. A test on a GPU compares every word with the executor's.
const WORDS_OF_RUNS: [(&str, u64); 18] = [
    ("indices", 0x2D76_1385_FDBB_7425),
    ("shuffles of 32 bits", 0xF3DF_F3A0_2FA4_BA31),
    ("shuffles of 64 bits", 0xABCF_041E_5D76_D1A9),
    ("votes and reductions", 0x9C9F_2EC8_7885_8DC5),
    ("barriers that count", 0x6974_BC53_DA10_EF25),
    ("a barrier at which threads leave", 0x32F2_8872_3657_2639),
    ("shared memory", 0xD3D0_C9B3_4AB5_8AE1),
    ("16-byte vectors", 0x35F1_5210_5336_5C90),
    ("atomics of 32 bits", 0xB6C2_154F_189C_54FC),
    ("atomics of 64 bits", 0x5840_4FE6_2284_9781),
    ("atomics in shared memory", 0xAF5F_CA24_AA68_F8CD),
    ("atomic float sums in shared memory", 0x5219_FCC2_CB2F_997F),
    ("tickets", 0x87DB_D626_044B_D085),
    ("half conversions", 0x4E1C_B731_EE8F_3CB9),
    ("bytes of words", 0x9726_456C_526C_99EE),
    ("volatile and fences", 0x3158_983E_F01E_FEC1),
    ("scalars", 0x5761_EDFC_010A_C83F),
    ("slices and pointers", 0x14D5_6A90_566C_18A5),
];

/// FNV-1a.
fn checksum(words: &[u64]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0xCBF2_9CE4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

#[test]
fn atomics_in_shared_memory_miss_no_thread() {
    let values: Vec<u32> = (0..128).map(|i| i * i * 40_503 % 65_521).collect();
    let gpu = Gpu::simt();
    let input = gpu.upload(&values).unwrap();
    let mut out = gpu.zeroed::<u32>(2 * test_kernels::SHARED_ATOMICS).unwrap();
    let kernel = test_kernels::shared_atomics::handle::<u32>().with_dynamic_shared(4);
    gpu.launch(kernel, 2, test_kernels::shared_atomics::Args { values: input.view(), out: out.view_mut(), one: 1 })
        .unwrap();
    let expected = values.chunks(64).flat_map(|own| {
        let sum = own.iter().sum();
        let fold = |f: fn(u32, u32) -> u32| own.iter().copied().reduce(f).unwrap();
        let bits = [fold(|a, b| a & b), fold(|a, b| a | b), fold(|a, b| a ^ b)];
        [sum, fold(u32::min), fold(u32::max), bits[0], bits[1], bits[2], 64, 0, sum, 64]
    });
    assert_eq!(gpu.download(&out).unwrap(), expected.collect::<Vec<_>>());
}

#[test]
fn the_device_library_writes_what_a_gpu_does() {
    let gpu = Gpu::simt();
    let found = device_library::RUNS.map(|(name, run)| {
        let words = run(&gpu).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(words.iter().any(|&word| word != 0), "{name} wrote nothing");
        (name, checksum(&words))
    });
    assert_eq!(found, WORDS_OF_RUNS);
}

/// The number of elements of a view before the first 16-byte-aligned one.
#[kernel(instances = [u8, u16, f32, u64], block = 1)]
fn alignment<T: Element>(input: Global<T>, output: GlobalMut<u64>) {
    output.store(0, input.elements_to_alignment() as u64);
}

#[test]
fn views_know_where_they_are_aligned() {
    fn elements<T: Element>(kernel: Kernel<alignment::Args<'static, T>>, offset: usize, len: usize) -> u64 {
        let gpu = Gpu::simt();
        let (input, mut output) = (gpu.zeroed::<T>(64).unwrap(), gpu.zeroed::<u64>(1).unwrap());
        let input = input.view().slice(offset, len).unwrap();
        gpu.launch(kernel, 1, alignment::Args { input, output: output.view_mut() }).unwrap();
        gpu.download(&output).unwrap()[0]
    }
    assert_eq!([0, 1, 15, 16, 17].map(|offset| elements(alignment::handle::<u8>(), offset, 40)), [0, 15, 1, 0, 15]);
    assert_eq!([0, 1, 7, 8].map(|offset| elements(alignment::handle::<u16>(), offset, 40)), [0, 7, 1, 0]);
    assert_eq!([0, 1, 3, 4].map(|offset| elements(alignment::handle::<f32>(), offset, 40)), [0, 3, 1, 0]);
    assert_eq!([0, 1, 2].map(|offset| elements(alignment::handle::<u64>(), offset, 40)), [0, 1, 0]);
    assert_eq!(
        [2, 3, 4].map(|len| elements(alignment::handle::<f32>(), 1, len)),
        [2, 3, 3],
        "at most the elements of the view"
    );
}

#[test]
fn a_kernel_has_no_dynamic_shared_memory_by_default() {
    let kernel = test_kernels::indices::handle().with_block(64);
    assert_eq!((kernel.dynamic_shared(), kernel.with_dynamic_shared(8).dynamic_shared()), (0, 8));
}

/// The number of blocks determines the order of additions, and so the bits.
#[test]
fn the_number_of_blocks_of_a_sum_depends_on_its_length() {
    let round = |size: usize| SINGLE_LAUNCH_BLOCK * 4 * 16 / size;
    for size in [4, 8] {
        let blocks =
            |rounds: usize, more: usize| kernels::ladder::reduce_shared::blocks_for(rounds * round(size) + more, size);
        assert_eq!([blocks(0, 0), blocks(0, 1), blocks(1, 0), blocks(1, 1)], [1, 1, 1, 2]);
        assert_eq!([blocks(263, 1), blocks(264, 0), blocks(264, 1), blocks(2111, 0)], [264; 4]);
        assert_eq!([blocks(2119, 0), blocks(2120, 0), blocks(3000, 0)], [264, 265, 375]);
        assert_eq!([blocks(4215, 0), blocks(4223, 1), blocks(4224, 0), blocks(9999, 0)], [526, 528, 528, 528]);
    }
}

#[test]
fn threads_of_a_cube_are_in_warps_by_their_linear_index() {
    assert!(test_support::warps_of_cube(&Gpu::simt()).unwrap());
}

/// Sums 1, 2, ... up to `len` by a rung.
fn check_sum<T: Sum + From<i32>>(rung: ReduceRung, block: usize, len: usize) {
    let numbers: Vec<T> = (1..=len as i32).map(T::from).collect();
    let sum = sum_by(rung, block, &numbers).unwrap();
    T::check(sum, &numbers).unwrap_or_else(|wrong| panic!("{} of {len}, blocks of {block}: {wrong}", rung.name()));
}

#[test]
fn lengths_around_every_boundary_of_every_rung() {
    for block in BLOCKS {
        for len in sizes::lengths_of_block(block) {
            of_integers(ReduceRung::all()).for_each(|rung| check_sum::<i32>(rung, block, len));
            // A vector has half as many `i64`.
            of_integers(ReduceRung::SHARED).for_each(|rung| check_sum::<i64>(rung, block, len));
        }
    }
}

#[test]
fn prime_lengths() {
    for len in sizes::PRIMES {
        of_integers(ReduceRung::all()).for_each(|rung| check_sum::<i32>(rung, 256, len));
    }
}

#[test]
fn lengths_around_the_steps_of_the_grid() {
    // The lengths at which the grid of `single_launch` stops growing, grows again, and is largest. In the executor only
    // this rung is fast enough for these lengths; on a GPU every rung is tried with them.
    let round = SINGLE_LAUNCH_BLOCK * 16;
    for rounds in [264, 264 * 8, MAX_BLOCKS * 8] {
        for len in sizes::around(rounds * round) {
            check_sum::<i32>(ReduceRung::SingleLaunch, SINGLE_LAUNCH_BLOCK, len);
        }
    }
}

#[test]
fn shapes_around_every_tile() {
    let gpu = Gpu::simt();
    let mut shapes = sizes::shapes();
    shapes.extend([(127, 129), (128, 128), (129, 127), (255, 3), (256, 3), (257, 3)]);
    for (rows, columns) in shapes {
        let elements: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
        let (matrix, transpose) =
            (gpu.upload(&elements).unwrap().reshape(&[rows, columns]).unwrap(), transposed(&elements, rows, columns));
        for rung in TransposeRung::ALL {
            let mut result = gpu.upload(&vec![-1.0; rows * columns]).unwrap().reshape(&[columns, rows]).unwrap();
            rung.start(&gpu, &matrix, &mut result).unwrap();
            let expected = if rung.is_copy() { &elements } else { &transpose };
            let difference = first_difference(&gpu.download(&result).unwrap(), expected);
            assert_eq!(difference, None, "{} of {rows} x {columns}", rung.name());
        }
    }
}

#[test]
fn sums_at_any_alignment_have_the_same_bits() {
    // A view may start at any element. The address changes the loads, but not the order of additions.
    let gpu = Gpu::simt();
    let numbers: Vec<f32> = (0..5000).map(|i| 1.0 / (i + 1) as f32).collect();
    let expected = sum_by(ReduceRung::SingleLaunch, 512, &numbers).unwrap();
    for shift in 0..5 {
        let shifted: Vec<f32> = std::iter::repeat_n(f32::NAN, shift).chain(numbers.iter().copied()).collect();
        let buffer = gpu.upload(&shifted).unwrap();
        let view = buffer.view().slice(shift, numbers.len()).unwrap();
        let mut partials = gpu.zeroed::<f32>(MAX_BLOCKS).unwrap();
        let mut ticket = gpu.zeroed::<u32>(1).unwrap();
        let mut output = gpu.zeroed::<f32>(1).unwrap();
        let blocks = kernels::ladder::reduce_shared::blocks_for(numbers.len(), 4) as u32;
        let arguments = single_launch::Args {
            input: view,
            partials: partials.view_mut(),
            ticket: ticket.view_mut(),
            output: output.view_mut(),
        };
        gpu.launch(single_launch::handle::<f32>(), blocks, arguments).unwrap();
        assert_eq!(gpu.download(&output).unwrap()[0].to_bits(), expected.to_bits(), "shifted by {shift}");
        assert_eq!(gpu.download(&ticket).unwrap(), [0], "the ticket is ready for the next launch");
    }
}

#[test]
fn an_index_outside_of_a_view_is_named() {
    let gpu = Gpu::simt();
    let mut out = gpu.zeroed::<u32>(10).unwrap();
    let arguments = out_of_bounds::Args { out: out.view_mut(), index: 10 };
    let error = gpu.launch(out_of_bounds::handle(), 3, arguments).unwrap_err().to_string();
    for part in
        ["`out_of_bounds`", "block (0, 0, 0)", "thread (0, 0, 0)", "index 10", "length 10", "tests/kernels/src/lib.rs"]
    {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
    assert_eq!(gpu.sum(&gpu.upload(&[1, 2]).unwrap()).unwrap(), 3_i64, "the executor works on");
}

#[test]
fn shapes_and_lengths_that_do_not_fit_are_errors() {
    let gpu = Gpu::simt();
    assert!(matches!(
        gpu.upload(&[1.0_f32; 5]).and_then(|x| x.reshape(&[2, 3])),
        Err(Error::Length { found: 6, expected: 5, .. })
    ));
    assert!(matches!(
        gpu.upload::<f32>(&[]).and_then(|x| x.reshape(&[usize::MAX, 2])),
        Err(Error::ArrayTooLarge { axis: 0, .. })
    ));
    assert!(matches!(gpu.zeroed::<f32>(1 << 46), Err(Error::OutOfMemory { .. })));
    assert!(matches!(gpu.zeroed::<f64>(usize::MAX), Err(Error::ShapeOverflow { .. })));
    let error = gpu.zeroed::<u8>(usize::MAX).unwrap_err();
    assert!(
        matches!(&error, Error::OutOfMemory { free, device, .. } if *free > 0 && *device == gpu.info().unwrap().name)
    );
    let matrix = gpu.zeroed::<f32>(2 * 3).unwrap().reshape(&[2, 3]).unwrap();
    let mut wrong = gpu.zeroed::<f32>(2 * 3).unwrap().reshape(&[2, 3]).unwrap();
    let transposed = matrix.view().permute_axes(&[1, 0]).unwrap();
    assert!(matches!(gpu.copy_array(transposed, &mut wrong), Err(Error::Extent { axis: 0, found: 2, .. })));
    let other = Gpu::simt().upload(&[1.0_f32]).unwrap();
    assert!(matches!(gpu.sum(&other), Err(Error::OtherDevice { operation: "reduce" })));
    assert!(matches!(other.view().slice(1, 1), Err(Error::TooShort { .. })));
    assert!(matches!(other.view().slice(usize::MAX, 2), Err(Error::TooShort { .. })));
    assert!(matches!(ReduceRung::Sequential.prepare::<f32>(&gpu, 10, 100), Err(Error::NoSuchRung { .. })));
    let error = ReduceRung::ExactLongRows.prepare::<i64>(&gpu, 10, 256).map(|_| ()).unwrap_err().to_string();
    for part in ["exact sums", "i64", "f32", "f64"] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
    assert!(ReduceRung::from_name("nonsense").unwrap_err().to_string().contains("divergent_modulo"));
}

#[test]
fn empty_inputs() {
    let gpu = Gpu::simt();
    assert_eq!(gpu.sum(&gpu.upload::<f32>(&[]).unwrap()).unwrap().to_bits(), 0.0_f32.to_bits());
    assert_eq!(gpu.sum(&gpu.upload::<i32>(&[]).unwrap()).unwrap(), 0_i64);
    for (rows, columns) in [(0, 0), (0, 5), (5, 0)] {
        let result = gpu.transpose(&gpu.upload::<f32>(&[]).unwrap().reshape(&[rows, columns]).unwrap()).unwrap();
        assert_eq!(result.extents(), [columns, rows]);
    }
}
