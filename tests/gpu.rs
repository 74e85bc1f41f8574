//! The kernels on a CUDA device: right against the CPU, and equal to the executor bit for bit.
//!
//! Where there is no device every test is shown as ignored, and a line says why.

use std::sync::{Arc, RwLock};
use std::time::Duration;

use kernels::reduce::device::{BLOCK, MAX_BLOCKS};
use libtest_mimic::{Arguments, Failed, Trial};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::ladder::{BLOCKS, ControlFlowRung, ReduceRung, TransposeRung};
use warpfold::occupancy::Multiprocessor;
use warpfold::ptx::KERNELS;
use warpfold::{Buffer, Error, Gpu, KernelId, Shape, ops};
use warpfold_tests::reductions::data::KINDS;
use warpfold_tests::reductions::shapes::Form;
use warpfold_tests::reductions::{Case, PAIRS, Pair, dots, large};
use warpfold_tests::reference::{Sum, first_difference, transposed};
use warpfold_tests::tiles::{TILE_CHECKS, TileCheck};
use warpfold_tests::transposes as transposes_of_any;
use warpfold_tests::{device_library, first_gpu, orders, sizes};

fn main() {
    if std::env::var_os(TRAPPING).is_some() {
        trap_here();
    }
    let arguments = Arguments::from_args();
    let gpu = match first_gpu() {
        Ok(gpu) => {
            println!("on {}", gpu.info().map_or_else(|error| error.to_string(), |info| info.name));
            Some(Arc::new(gpu))
        }
        Err(error) => {
            println!("skipped, every one of them: {error}");
            None
        }
    };
    libtest_mimic::run(&arguments, trials(gpu)).exit();
}

/// Set in the child process whose kernel traps: a trap loses the context, and all tests of a process share one.
const TRAPPING: &str = "WARPFOLD_TEST_TRAPPING";

/// Launches a kernel that leaves its view, and exits with 0 if that is told as it should be.
fn trap_here() -> ! {
    let told = first_gpu().and_then(|gpu| {
        let mut out = gpu.zeroed::<u32>(10)?;
        gpu.launch(test_kernels::out_of_bounds::handle(), 1, (out.view_mut(), 10_usize))?;
        gpu.synchronize()
    });
    println!("{told:?}");
    std::process::exit(i32::from(!matches!(told, Err(Error::Trap { .. }))))
}

fn a_trap_is_told(_: &Gpu) -> Result<(), Failed> {
    let child = std::process::Command::new(std::env::current_exe()?).env(TRAPPING, "1").output()?;
    if child.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&child.stdout).into_owned().into()) }
}

/// Held by each test while it runs, and alone by the one that looks at how much of the device's memory is free.
static OTHERS: RwLock<()> = RwLock::new(());

/// What a test does on the device.
type Test = Box<dyn Fn(&Gpu) -> Result<(), Failed> + Send>;

/// Every test; without a device, to be shown as ignored.
fn trials(gpu: Option<Arc<Gpu>>) -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut add = |name: String, test: Test| {
        let own = gpu.clone();
        let run = move || {
            let _others = OTHERS.read();
            own.as_deref().map_or_else(|| Err("no CUDA device".into()), &test)
        };
        trials.push(Trial::test(name, run).with_ignored_flag(gpu.is_none()));
    };
    for (name, run) in device_library::RUNS {
        add(format!("device library: {name}"), Box::new(move |gpu| same_as_executor(gpu, run)));
    }
    for rung in ReduceRung::all() {
        add(format!("sum of f32 by {}", rung.name()), Box::new(move |gpu| sums::<f32>(gpu, rung)));
        add(format!("sum of i32 by {}", rung.name()), Box::new(move |gpu| sums::<i32>(gpu, rung)));
    }
    for rung in ReduceRung::SHARED {
        add(format!("sum of f64 by {}", rung.name()), Box::new(move |gpu| sums::<f64>(gpu, rung)));
        add(format!("sum of i64 by {}", rung.name()), Box::new(move |gpu| sums::<i64>(gpu, rung)));
    }
    for rung in ControlFlowRung::ALL {
        add(format!("control flow: {}", rung.name()), Box::new(move |gpu| control_flow(gpu, rung)));
    }
    add("control flow: the warps of a cube".into(), Box::new(warps_of_cube));
    for rung in TransposeRung::ALL {
        add(format!("transpose by {}", rung.name()), Box::new(move |gpu| transposes(gpu, rung)));
    }
    for (name, check) in transposes_of_any::CHECKS {
        add(format!("transpose of {name}"), Box::new(move |gpu| transposes_of(gpu, check)));
    }
    for &(name, check, _) in TILE_CHECKS {
        add(format!("transpose of {name}"), Box::new(move |gpu| transposes_by_tiles(gpu, check)));
    }
    for (name, check) in transposes_of_any::SCALED_CHECKS {
        add(format!("transpose of scaled {name}"), Box::new(move |gpu| transposes_of(gpu, check)));
    }
    for (name, check) in transposes_of_any::IN_PLACE_CHECKS {
        add(format!("transpose in place of {name}"), Box::new(move |gpu| transposes_in_place(gpu, check)));
    }
    for (name, check) in transposes_of_any::PERMUTE_CHECKS {
        add(format!("permutations of {name}"), Box::new(move |gpu| permutations(gpu, check)));
    }
    add("occupancy is what the driver says".into(), Box::new(occupancies));
    add("recordings".into(), Box::new(|gpu| orders::recordings(gpu).map_err(Failed::from)));
    add(
        "64 threads with a stream each".into(),
        Box::new(|gpu| {
            let (threads, seconds) = if is_sanitized() { (16, 1) } else { (64, 60) };
            orders::threads(gpu, threads, Duration::from_secs(seconds)).map_err(Failed::from)
        }),
    );
    for pair in PAIRS {
        let name = format!("reduction: {} of {}", pair.operator.name(), pair.dtype);
        add(name, Box::new(move |gpu| reductions(gpu, pair)));
    }
    let special = if is_sanitized() { 200_003 } else { (1 << 24) + 3 };
    add(
        "reductions of infinities and NaN".into(),
        Box::new(move |gpu| large::special(gpu, special).map_err(Failed::from)),
    );
    if !is_sanitized() {
        add("ten million empty segments".into(), Box::new(|gpu| large::empty_segments(gpu).map_err(Failed::from)));
    }
    for &(dtype, check) in dots::CHECKS {
        add(format!("dot product of {dtype}"), Box::new(move |gpu| dot_products(gpu, check)));
    }
    add("out of memory is an error, and no more".into(), Box::new(out_of_memory));
    if !is_sanitized() {
        add("an index outside of a view traps, and is told".into(), Box::new(a_trap_is_told));
    }
    add("a launch that no device takes is refused".into(), Box::new(refused_launches));
    if !is_sanitized() {
        let has_room = gpu.as_deref().is_some_and(|gpu| gpu.free_memory().is_ok_and(|free| free > large::BYTES));
        let own = gpu.clone();
        let run = move || {
            let _others = OTHERS.read();
            own.as_deref().map_or_else(|| Err("no CUDA device".into()), |gpu| Ok(large::lengths(gpu)?))
        };
        let trial = Trial::test("reductions past 2^31 and 2^32 elements", run);
        trials.push(trial.with_ignored_flag(!has_room));
    }
    let own = gpu.clone();
    let alone = move || {
        let _alone = OTHERS.write();
        own.as_deref().map_or_else(|| Err("no CUDA device".into()), no_leaks)
    };
    trials.push(Trial::test("10,000 calls leave no memory behind", alone).with_ignored_flag(gpu.is_none()));
    trials
}

/// Smaller inputs under compute-sanitizer, which makes kernels a hundred times slower.
fn is_sanitized() -> bool {
    std::env::var_os("WARPFOLD_SANITIZER").is_some()
}

fn same_as_executor(gpu: &Gpu, run: device_library::Run) -> Result<(), Failed> {
    let (found, expected) = (run(gpu)?, run(&Gpu::simt())?);
    if let Some(at) = (0..expected.len().max(found.len())).find(|&i| found.get(i) != expected.get(i)) {
        let (found, expected) = (found.get(at), expected.get(at));
        return Err(format!("word {at} is {found:x?} on the GPU and {expected:x?} in the executor").into());
    }
    Ok(())
}

/// Lengths around every boundary of blocks, runs and packs, primes, and up to more than a float's 2^24.
fn lengths() -> Vec<usize> {
    let mut lengths = sizes::lengths();
    lengths.extend(sizes::PRIMES);
    // A grid of as many blocks as a striding rung has at most: one round, and the step to the next.
    lengths.extend(sizes::around(MAX_BLOCKS * BLOCK));
    if !is_sanitized() {
        lengths.extend([(1 << 20) - 1, 1 << 20, (1 << 22) + 3, LONGEST]);
    }
    lengths
}

const LONGEST: usize = (1 << 24) + 1;

fn sums<T: Sum>(gpu: &Gpu, rung: ReduceRung) -> Result<(), Failed> {
    let executor = Gpu::simt();
    let mut source = SmallRng::from_os_rng();
    for len in lengths() {
        let numbers: Vec<T> = (0..len).map(|_| T::random(&mut source)).collect();
        let (on_gpu, on_executor) = (gpu.upload(&numbers)?, executor.upload(&numbers)?);
        let blocks: &[usize] = if rung == ReduceRung::SingleLaunch { &[512] } else { &BLOCKS };
        for &block in blocks {
            let case = format!("{len} numbers, blocks of {block}");
            let found = sum_by(gpu, rung, block, &on_gpu)?;
            T::check(found, &numbers).map_err(|difference| format!("{case}: {difference}"))?;
            // The executor is slow: long inputs are compared for one block, the longest for the kernel of the library.
            let is_compared = match len {
                LONGEST => rung == ReduceRung::SingleLaunch,
                _ => len < 20_000 || block == 512,
            };
            if is_compared {
                let simulated = sum_by(&executor, rung, block, &on_executor)?;
                if found.bits() != simulated.bits() {
                    return Err(format!("{case}: {found:?} on the GPU, {simulated:?} in the executor").into());
                }
            }
        }
    }
    Ok(())
}

fn sum_by<T: Sum>(gpu: &Gpu, rung: ReduceRung, block: usize, input: &Buffer<T>) -> Result<T, Error> {
    let mut reduction = rung.prepare::<T>(gpu, input.len(), block)?;
    reduction.load(gpu, input)?;
    reduction.start(gpu, input)?;
    reduction.finish(gpu)
}

fn control_flow(gpu: &Gpu, rung: ControlFlowRung) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    for len in lengths() {
        let words: Vec<u32> = (0..len).map(|_| source.random()).collect();
        let mut result = gpu.zeroed::<u32>(len)?;
        rung.start(gpu, &gpu.upload(&words)?, &mut result)?;
        let (found, expected) = (gpu.download(&result)?, rung.expected(&words));
        if let Some(i) = (0..len).find(|&i| found[i] != expected[i]) {
            return Err(format!("{len} numbers: number {i} is {}, should be {}", found[i], expected[i]).into());
        }
    }
    Ok(())
}

fn warps_of_cube(gpu: &Gpu) -> Result<(), Failed> {
    if warpfold_tests::warps_of_cube(gpu)? { Ok(()) } else { Err("threads are not in warps as CUDA says".into()) }
}

/// Every shape and kind of element by one operator: right, and equal to the executor bit for bit.
fn reductions(gpu: &Gpu, pair: &Pair) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    let simt = Gpu::simt();
    for form in forms() {
        // Small inputs with everything that is special; a large one once.
        let kinds = if form.elements() > 10_000 || is_sanitized() { &KINDS[..1] } else { &KINDS[..] };
        for (i, &kind) in kinds.iter().enumerate() {
            let case = Case { kind, seed: source.random(), form, offset: i };
            let found = pair.check(gpu, &case)?;
            let expected = pair.run(&simt, &case)?;
            if found.bits != expected.bits {
                return Err(format!("{pair:?} {case:?}: other bits than in the executor").into());
            }
        }
    }
    Ok(())
}

/// Dot products of vectors and of rows: right, and equal to the executor bit for bit.
fn dot_products(gpu: &Gpu, check: dots::Check) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    for (i, (rows, len)) in [(1, 1), (1, 17), (1, 4097), (1, 300_001), (7, 129), (3, 9001)].into_iter().enumerate() {
        let kinds = if is_sanitized() { &KINDS[..1] } else { &KINDS[..] };
        for &kind in kinds {
            let case = dots::Case { kind, seed: source.random(), rows, len, pitch: len + i % 2, offsets: [i, i % 3] };
            if check(gpu, &case)? != check(&Gpu::simt(), &case)? {
                return Err(format!("{case:?}: other bits than in the executor").into());
            }
        }
    }
    Ok(())
}

/// Shapes that reach every kernel with one part and with several, and every kind of tail.
fn forms() -> Vec<Form> {
    if is_sanitized() {
        return vec![
            Form::All(1),
            Form::All(129),
            Form::All(70_001),
            Form::Rows(33, 31, 32),
            Form::Rows(3, 9001, 9001),
            Form::Rows(70, 530, 530),
            Form::Columns(301, 37, 37),
            Form::Columns(64, 16, 16),
            Form::Segments { count: 30, longest: 30_000, seed: 5 },
        ];
    }
    let mut forms: Vec<Form> = [1, 2, 3, 15, 16, 17, 31, 127, 128, 129, 1000, 4097].map(Form::All).to_vec();
    forms.extend(
        [(1, 1), (5, 3), (100, 16), (33, 31), (7, 127), (20, 129), (3, 1025)]
            .map(|(rows, columns)| Form::Rows(rows, columns, columns + rows % 2)),
    );
    forms.extend(
        [(1, 1), (3, 5), (16, 100), (31, 33), (127, 7), (129, 20), (1025, 3)]
            .map(|(rows, columns)| Form::Columns(rows, columns, columns + rows % 2)),
    );
    forms.extend([(0, 1), (3, 20), (40, 700)].map(|(count, longest)| Form::Segments { count, longest, seed: 7 }));
    forms.extend([Form::Axis([3, 5, 7, 11], 1), Form::Axis([2, 9, 4, 1], 2), Form::Axis([4, 6, 2, 3], 3)]);
    if !is_sanitized() {
        forms.extend([
            Form::All(300_001),
            Form::Rows(5, 40_001, 40_001),
            Form::Columns(3001, 70, 70),
            Form::Rows(9001, 20, 20),
            Form::Segments { count: 50, longest: 200_000, seed: 5 },
            Form::Segments { count: 20_000, longest: 40, seed: 6 },
        ]);
    }
    forms
}

/// Transposes of one element size: sides around every boundary of a tile, with pitches, batches and offsets.
fn transposes_of(gpu: &Gpu, check: transposes_of_any::Check) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    let sides = if is_sanitized() { &[1, 17, 64, 129][..] } else { &transposes_of_any::SIDES[..] };
    let mut shapes: Vec<(usize, usize)> =
        sides.iter().flat_map(|&rows| sides.iter().map(move |&columns| (rows, columns))).collect();
    shapes.extend([(3, 5000), (5000, 3), (16, 3000), (3000, 16)]);
    if !is_sanitized() {
        // More than what is turned without tiles, of any element.
        shapes.extend([(1023, 1025), (1024, 2048), (2064, 4128), (1, 300_000), (300_000, 1)]);
    }
    for (i, (rows, columns)) in shapes.into_iter().enumerate() {
        for (batch, pads, offsets) in [(1, [0; 2], [0; 2]), (1 + i % 3, [i % 5, i % 3], [i % 17, i % 7])] {
            let case = transposes_of_any::Case { rows, columns, batch, pads, offsets, seed: source.random() };
            check(gpu, &case)?;
        }
    }
    for case in if is_sanitized() { &transposes_of_any::LARGE[2..] } else { &transposes_of_any::LARGE[..] } {
        check(gpu, &transposes_of_any::Case { seed: source.random(), ..*case })?;
    }
    Ok(())
}

/// Transposes of whole packs by tiles, at their boundaries.
fn transposes_by_tiles(gpu: &Gpu, check: TileCheck) -> Result<(), Failed> {
    let sides: &[usize] = if is_sanitized() { &[16, 272] } else { &[16, 48, 128, 256, 272, 1040] };
    for &rows in sides {
        for &columns in sides {
            check(gpu, rows, columns, rand::random())?;
        }
    }
    Ok(())
}

/// Squares in place: sides around every boundary of a tile, with pitches, batches and offsets.
fn transposes_in_place(gpu: &Gpu, check: transposes_of_any::Check) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    let sides = if is_sanitized() { &[1, 17, 64, 129][..] } else { &transposes_of_any::SIDES[..] };
    let large = if is_sanitized() { &[][..] } else { &[1023, 1024][..] };
    for (i, &side) in sides.iter().chain(large).enumerate() {
        for (batch, pad, before) in [(1, 0, 0), (1 + i % 3, i % 5, i % 17)] {
            let (pads, offsets) = ([pad; 2], [before; 2]);
            let case =
                transposes_of_any::Case { rows: side, columns: side, batch, pads, offsets, seed: source.random() };
            check(gpu, &case)?;
        }
    }
    // So many tiles that they are large ones.
    let many = transposes_of_any::Case {
        rows: 192,
        columns: 192,
        batch: 100,
        pads: [0; 2],
        offsets: [0; 2],
        seed: source.random(),
    };
    check(gpu, &many)?;
    Ok(())
}

/// All orders of three axes, of shapes in which each has been short and long.
fn permutations(gpu: &Gpu, check: transposes_of_any::PermuteCheck) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    let mut shapes = vec![[1, 2, 3], [5, 16, 7], [16, 7, 4], [2, 33, 64], [9, 1, 40], [31, 8, 16], [40, 50, 3]];
    shapes.extend([[3, 500, 5], [500, 3, 7], [20, 30, 131]]);
    // Outer axes of which one is short, at multiples of 16 bytes and not.
    shapes.extend([[160, 32, 3], [3, 32, 160], [161, 31, 5], [7, 29, 95]]);
    if !is_sanitized() {
        shapes.extend([
            [300, 170, 3],
            [4096, 640, 3],
            [3, 77, 9000],
            [3, 5000, 5],
            [5000, 3, 5],
            [70, 90, 33],
            [33, 35, 1024],
            [65, 3, 4100],
        ]);
        // Tiles of runs as large as they may be, whatever the element.
        shapes.extend([[2400, 2500, 3], [8, 800_000, 3], [800_000, 8, 3]]);
        shapes.extend([[200, 3, 129], [3, 200, 129], [129, 200, 3], [64, 64, 64], [127, 65, 1], [2, 3, 20_000]]);
    }
    for (i, shape) in shapes.into_iter().enumerate() {
        for offsets in [[0; 2], [i % 17, (3 * i + 1) % 7]] {
            check(gpu, shape, offsets, source.random())?;
        }
    }
    Ok(())
}

fn transposes(gpu: &Gpu, rung: TransposeRung) -> Result<(), Failed> {
    let mut source = SmallRng::from_os_rng();
    let mut shapes = sizes::shapes();
    // Several tiles a side, and around a block of a thread a row.
    shapes.extend([(1, 1), (1, 2), (64, 96), (127, 129), (128, 128), (129, 127), (255, 3), (256, 3), (257, 129)]);
    shapes.extend([(1, 5000), (5000, 1), (3, 4099)]);
    if !is_sanitized() {
        shapes.extend([(1023, 1025), (1024, 1024)]);
        // One thread alone would take its time for these.
        if rung != TransposeRung::Serial {
            shapes.extend([(2_100_000, 2), (2, 2_100_000), (5000, 3001), (5000, 3000)]);
        }
    }
    for (rows, columns) in shapes {
        // Any bits: a transpose must keep the payloads of NaNs too.
        let elements: Vec<f32> = (0..rows * columns).map(|_| f32::from_bits(source.random())).collect();
        let matrix = gpu.upload_matrix(&elements, rows, columns)?;
        // What is not written shows.
        let poison = vec![f32::from_bits(0xFFFF_FFFF); rows * columns];
        let mut result = gpu.upload_matrix(&poison, columns, rows)?;
        rung.start(gpu, &matrix, &mut result)?;
        let found = gpu.download_matrix(&result)?;
        let expected = if rung.is_copy() { elements.clone() } else { transposed(&elements, rows, columns) };
        if let Some(at) = first_difference(&found, &expected) {
            return Err(format!("{rows} x {columns}: element {at} of the transpose is wrong").into());
        }
        let again = gpu.download_matrix(&gpu.transpose(&gpu.transpose(&matrix)?)?)?;
        if first_difference(&again, &elements).is_some() {
            return Err(format!("{rows} x {columns}: transposed twice it is another matrix").into());
        }
    }
    Ok(())
}

fn occupancies(gpu: &Gpu) -> Result<(), Failed> {
    let info = gpu.info()?;
    let own = info.multiprocessor.ok_or("a CUDA device has multiprocessors")?;
    if let Some(known) = Multiprocessor::of(own.compute)
        && known != own
    {
        return Err(format!("the table has {known:?}, the device is {own:?}").into());
    }
    for entry in KERNELS.entries() {
        let ptx = KERNELS.ptx(entry, own.compute).ok_or("an entry without PTX")?;
        let fixed: Option<u32> = ptx.lines().find_map(|line| {
            line.strip_prefix(".reqntid ")?.split(", ").map(str::parse::<u32>).product::<Result<u32, _>>().ok()
        });
        for threads in fixed.map_or(vec![64, 256, 1024], |fixed| vec![fixed]) {
            let id = KernelId { library: KERNELS.name(), entry };
            let driver = gpu.kernel_occupancy(id, threads)?.ok_or("a CUDA device knows")?;
            let computed = own.occupancy(driver.resources);
            if computed.blocks != driver.blocks {
                let message = format!("{entry} of {threads}: {computed:?}, the driver says {driver:?}");
                return Err(message.into());
            }
        }
    }
    Ok(())
}

fn out_of_memory(gpu: &Gpu) -> Result<(), Failed> {
    match gpu.zeroed::<f32>(1 << 46) {
        Err(Error::OutOfMemory { requested, .. }) if requested == 1 << 48 => {}
        other => return Err(format!("expected `OutOfMemory`, got {other:?}").into()),
    }
    let sum = gpu.sum(&gpu.upload(&[1.0_f32, 2.0])?)?;
    if sum == 3.0 { Ok(()) } else { Err(format!("afterwards 1 + 2 is {sum}").into()) }
}

/// Calls of every kind of shape, and then as much memory is free as before them.
fn no_leaks(gpu: &Gpu) -> Result<(), Failed> {
    let input = gpu.upload(&vec![1.0_f32; 100_000])?;
    let call = || {
        let all = gpu.sum(&input)?;
        let rows = gpu.reduce_to_buffer(ops::Sum, &input, Shape::rows(100, 1000))?;
        let columns = gpu.reduce_to_buffer(ops::ArgMax, &input, Shape::columns(100, 1000))?;
        Ok::<_, Error>((all, rows.len(), columns.len()))
    };
    call()?;
    let before = gpu.free_memory()?;
    for _ in 0..if is_sanitized() { 10 } else { 10_000 } {
        call()?;
    }
    let after = gpu.free_memory()?;
    if after < before { Err(format!("{before} bytes were free before, {after} after").into()) } else { Ok(()) }
}

fn refused_launches(gpu: &Gpu) -> Result<(), Failed> {
    let mut out = gpu.zeroed::<u32>(test_kernels::INDEX_WORDS)?;
    let kernel = test_kernels::indices::handle();
    for (grid, block) in [
        ((0, 1, 1), (1, 1, 1)),
        ((1, 65_536, 1), (1, 1, 1)),
        ((1, 1, 1), (1025, 1, 1)),
        ((1, 1, 1), (1, 1, 65)),
        ((1, 1, 1), (0, 1, 1)),
    ] {
        match gpu.launch(kernel.with_block(block), grid, (out.view_mut(),)) {
            Err(Error::InvalidLaunch { .. }) => {}
            other => {
                return Err(format!("{grid:?} blocks of {block:?}: expected `InvalidLaunch`, got {other:?}").into());
            }
        }
    }
    let mut other = Gpu::simt().zeroed::<u32>(test_kernels::INDEX_WORDS)?;
    match gpu.launch(kernel.with_block(1), 1, (other.view_mut(),)) {
        Err(Error::OtherDevice { .. }) => Ok(()),
        other => Err(format!("expected `OtherDevice`, got {other:?}").into()),
    }
}
