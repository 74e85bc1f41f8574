//! Several threads, faults, and kernels of any kind on one device: no result is wrong, and no memory of others is
//! accessed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use cuda_std::prelude::*;
use test_support::by_shape::ByShape;
use test_support::shape::Shape;
use test_support::soak::soak;
use test_support::strict::Strict;
use test_support::{executor, times};
use warpfold::ops::{Dot, Sum};
use warpfold::{Error, Gpu};

/// Counts its launches.
#[kernel(block = 1)]
pub fn count(counter: GlobalMut<u32>) {
    counter.store(0, counter.load(0) + 1);
}

/// Signals the end of a scope when it is dropped, so that other threads do not wait forever after a panic.
struct SignalsEnd<'a>(&'a AtomicBool);

impl Drop for SignalsEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Increments the counter nine times, in nine launches.
fn launch_nine_times(gpu: &Gpu, counter: &mut warpfold::Buffer<u32>) -> Result<(), Error> {
    (0..9).try_for_each(|_| gpu.launch(count::handle(), 1, count::Args { counter: counter.view_mut() }))
}

#[test]
fn work_of_other_threads_is_not_recorded() {
    let gpu = executor();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // The call is neither refused nor deferred, and its memory is freed before another handle's
                    // recording is started.
                    let mut counter = gpu.zeroed(1).unwrap();
                    launch_nine_times(&gpu, &mut counter).unwrap();
                    assert_eq!(gpu.download(&counter).unwrap(), [9]);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let _over = SignalsEnd(&is_over);
                let mut counter = gpu.zeroed(1).unwrap();
                for _ in 0..times(100, 10_000) {
                    gpu.record(|| Ok(())).unwrap().start().unwrap();
                    let before = gpu.download(&counter).unwrap()[0];
                    let recording = gpu.record(|| launch_nine_times(&gpu, &mut counter)).unwrap();
                    assert_eq!(gpu.download(&counter).unwrap(), [before]);
                    recording.start().unwrap();
                    recording.start().unwrap();
                    assert_eq!(gpu.download(&counter).unwrap(), [before + 18]);
                }
            });
        }
    });
}

#[test]
fn recordings_cannot_be_nested() {
    let gpu = Gpu::simt();
    let mut counter = gpu.zeroed(1).unwrap();
    let recording = gpu.record(|| launch_nine_times(&gpu, &mut counter)).unwrap();
    let started = gpu.record(|| recording.start());
    assert!(matches!(started, Err(Error::Recording { operation: "start a recording" })), "{started:?}");
    let within = gpu.record(|| gpu.record(|| Ok(())).map(|_| ()));
    assert!(matches!(within, Err(Error::Recording { operation: "record" })), "{within:?}");
    assert_eq!(gpu.download(&counter).unwrap(), [0]);
    // The recording does not contain another handle's work.
    let other = gpu.fork().unwrap();
    gpu.record(|| launch_nine_times(&other, &mut counter)).unwrap();
    assert_eq!(gpu.download(&counter).unwrap(), [9]);
}

#[test]
fn a_recording_ends_with_a_panic() {
    let gpu = Gpu::simt();
    let mut counter = gpu.zeroed(1).unwrap();
    let panicking =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| gpu.record(|| panic!("as the test wants"))));
    assert!(panicking.is_err());
    launch_nine_times(&gpu, &mut counter).unwrap();
    assert_eq!(gpu.download(&counter).unwrap(), [9]);
}

#[test]
fn a_profile_counts_what_its_thread_launches() {
    let gpu = executor();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut counter = gpu.zeroed(1).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                launch_nine_times(&gpu, &mut counter).unwrap();
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                let _over = SignalsEnd(&is_over);
                let mut counter = gpu.zeroed(1).unwrap();
                for _ in 0..times(20, 2000) {
                    let counted = gpu.profile(|| launch_nine_times(&gpu, &mut counter)).unwrap();
                    assert_eq!(counted.total().global_stores.requests, 9);
                    // A profile inside another also counts for the outer one.
                    let mut inner = 0;
                    let outer = gpu.profile(|| {
                        launch_nine_times(&gpu, &mut counter)?;
                        inner = gpu.profile(|| launch_nine_times(&gpu, &mut counter))?.total().global_stores.requests;
                        Ok(())
                    });
                    assert_eq!((inner, outer.unwrap().total().global_stores.requests), (9, 18));
                }
            });
        }
    });
}

/// Enough rows that several blocks exchange states.
const ROWS: usize = 1 << 16;
const COLUMNS: usize = 4;

#[test]
fn a_reducer_is_right_after_a_fault() {
    for (shape, outputs) in [(Shape::all(ROWS * COLUMNS), 1), (Shape::columns(ROWS, COLUMNS), COLUMNS)] {
        for place in [0, ROWS * COLUMNS / 2, ROWS * COLUMNS - 1] {
            right_after_a_fault(shape, outputs, place);
        }
    }
}

fn right_after_a_fault(shape: Shape, outputs: usize, place: usize) {
    let gpu = executor();
    let (right, mut wrong) = (vec![1.0_f32; ROWS * COLUMNS], vec![2.0_f32; ROWS * COLUMNS]);
    wrong[place] = f32::NAN;
    let expected = vec![(ROWS * COLUMNS / outputs) as f32; outputs];
    let (right, wrong) = (gpu.upload(&right).unwrap(), gpu.upload(&wrong).unwrap());
    let mut output = gpu.zeroed::<f32>(outputs).unwrap();
    let mut reducer = gpu.reducer_of(Strict, shape).unwrap();
    for _ in 0..3 {
        let fault = reducer.start(&wrong, &mut output);
        assert!(matches!(fault, Err(Error::Fault(_))), "{fault:?}");
        reducer.start(&right, &mut output).unwrap();
        assert_eq!(gpu.download(&output).unwrap(), expected);
    }
    // The same with recordings, which keep the workspace of a reducer.
    let of_wrong = gpu.record(|| reducer.start(&wrong, &mut output)).unwrap();
    let of_right = gpu.record(|| reducer.start(&right, &mut output)).unwrap();
    for _ in 0..3 {
        assert!(matches!(of_wrong.start(), Err(Error::Fault(_))));
        of_right.start().unwrap();
        assert_eq!(gpu.download(&output).unwrap(), expected);
        assert!(of_wrong.start().is_err());
        reducer.start(&right, &mut output).unwrap();
        assert_eq!(gpu.download(&output).unwrap(), expected);
    }
}

static OWN: OnceLock<Gpu> = OnceLock::new();
static REFUSED: AtomicU32 = AtomicU32::new(0);

/// Makes the calls on its own device that would have to wait for the kernel itself.
#[kernel(block = 1)]
pub fn calls_its_own_gpu(numbers: GlobalMut<u32>) {
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let gpu = OWN.get().expect("the test has set it");
        let is_refused = |error: Option<Error>| matches!(error, Some(Error::InsideKernel { .. }));
        let refused = [
            is_refused(gpu.upload(&[1]).err()),
            is_refused(gpu.zeroed::<u32>(1).err()),
            is_refused(gpu.sum(&Gpu::simt().upload::<f32>(&[]).unwrap()).err()),
            is_refused(gpu.record(|| Ok(())).and_then(|recording| recording.start()).err()),
        ];
        REFUSED.store(refused.iter().fold(0, |bits, &bit| bits << 1 | u32::from(bit)), Ordering::Relaxed);
    }
    numbers.store(0, 7);
}

#[test]
fn a_kernel_cannot_wait_for_its_own_device() {
    let gpu = OWN.get_or_init(Gpu::simt);
    let mut numbers = gpu.zeroed(1).unwrap();
    gpu.launch(calls_its_own_gpu::handle(), 1, calls_its_own_gpu::Args { numbers: numbers.view_mut() }).unwrap();
    assert_eq!(gpu.download(&numbers).unwrap(), [7]);
    // A sum of no elements makes no launch.
    assert_eq!(REFUSED.load(Ordering::Relaxed), 0b1101);
    assert_eq!(gpu.sum(&gpu.upload(&[1.0_f32]).unwrap()).unwrap(), 1.0);
}

#[test]
fn many_threads_do_everything_at_once() {
    let (threads, seconds) = times((16, 2), (64, 600));
    let steps = soak(&executor(), threads, Duration::from_secs(seconds), true).unwrap();
    println!("{steps} steps of {threads} threads");
    // Each thread has done something, however slow its machine (or valgrind) is.
    assert!(steps >= threads as u64, "{steps}");
}

#[test]
fn a_short_input_is_reported_before_outputs_are_allocated() {
    let gpu = Gpu::simt();
    let x = gpu.upload(&[1.0_f32; 8]).unwrap();
    // Outputs larger than any memory.
    let shape = Shape::rows(1 << 45, 1);
    for refused in [gpu.reduce_to_buffer(Sum, &x, shape).err(), gpu.reduce_pairs(Dot, &x, &x, shape).err()] {
        assert!(matches!(refused, Some(Error::TooShort { found: 8, .. })), "{refused:?}");
    }
}

#[test]
fn empty_rows_may_have_any_pitch() {
    let gpu = Gpu::simt();
    let nothing = gpu.upload::<f32>(&[]).unwrap();
    let shape = Shape::rows(3, 0).with_pitch(usize::MAX).unwrap();
    let sums = gpu.reduce_pairs(Dot, &nothing, &nothing, shape).unwrap();
    assert_eq!(gpu.download(&sums).unwrap(), [0.0; 3]);
}
