//! Memory of other libraries, borrowed: in the executor, memory of the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use half::f16;
use ndarray::{Array3, s};
use proptest::prelude::*;
use warpfold::interop::{self, Borrowed, BorrowedMut};
use warpfold::{Element, Error, Gpu, Stored, ops};

/// Borrows elements, of which that with all indices 0 is at `start`.
fn borrow<'m, T: Stored>(
    gpu: &Gpu,
    elements: &'m [T],
    start: usize,
    extents: &[usize],
    strides: &[isize],
) -> Borrowed<'m, T> {
    let address = elements.as_ptr().expose_provenance() + start * size_of::<T>();
    // SAFETY: the tests pass extents and strides of elements in the slice, which is borrowed for as long.
    unsafe { interop::borrow(gpu, address as u64, extents, strides) }.unwrap()
}

/// [`borrow`] to write.
fn borrow_mut<'m, T: Stored>(
    gpu: &Gpu,
    elements: &'m mut [T],
    start: usize,
    extents: &[usize],
    strides: &[isize],
) -> BorrowedMut<'m, T> {
    let address = elements.as_mut_ptr().expose_provenance() + start * size_of::<T>();
    // SAFETY: as in `borrow`.
    unsafe { interop::borrow_mut(gpu, address as u64, extents, strides) }.unwrap()
}

/// Sums, minima and copies of `count` elements that begin at each position of 16 bytes.
fn verify_each_start<T: Element + Into<f64>>(of: fn(u8) -> T)
where
    ops::Min: warpfold::Reduction<T, Output = T>,
    ops::Mean: warpfold::Reduction<T>,
    <ops::Mean as warpfold::Reduction<T>>::Output: Into<f64>,
{
    let gpu = Gpu::simt();
    let all: Vec<T> = (0..100).map(|i| of(i % 23)).collect();
    for start in 0..16 / size_of::<T>() {
        for count in [0, 1, 2, 7, 15, 16, 17, 33, 64] {
            let part = &all[start..start + count];
            let array = borrow(&gpu, &all, start, &[count], &[1]);
            assert_eq!(gpu.download(array.view()).unwrap(), part);
            if count > 0 {
                let expected: f64 = part.iter().map(|&x| x.into()).sum::<f64>() / count as f64;
                let mean: f64 = gpu.mean(array.view()).unwrap().into();
                assert!((mean - expected).abs() <= expected.abs() / 500.0, "{start} {count}: {mean}, not {expected}");
                let smallest: f64 = part.iter().map(|&x| x.into()).fold(f64::INFINITY, f64::min);
                assert_eq!(gpu.min(array.view()).unwrap().into(), smallest);
            }
            // Nothing around the target is written.
            let mut to = vec![of(99); 100];
            let mut target = borrow_mut(&gpu, &mut to, start, &[count], &[1]);
            gpu.copy_array(array.view(), target.view_mut()).unwrap();
            assert_eq!(gpu.download(target.view()).unwrap(), part);
            drop(target);
            let is_target = |i: &usize| (start..start + count).contains(i);
            assert!((0..100).all(|i| to[i] == if is_target(&i) { all[i] } else { of(99) }), "{start} {count}");
        }
    }
}

#[test]
fn arrays_begin_anywhere_in_16_bytes() {
    verify_each_start::<u8>(|i| i);
    verify_each_start::<f16>(|i| f16::from_f32(f32::from(i)));
    verify_each_start::<f32>(f32::from);
    verify_each_start::<f64>(f64::from);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_strides_are_read_where_they_lie(
        extents in prop::array::uniform3(1..6_usize),
        steps in prop::array::uniform3(prop_oneof![Just(-2_isize), Just(-1), Just(1), Just(3)]),
        axis in 0..3_usize,
    ) {
        let gpu = Gpu::simt();
        let whole = Array3::from_shape_fn([16, 17, 18], |(i, j, k)| (i * 400 + j * 20 + k) as i32 - 3000);
        let [a, b, c] = std::array::from_fn::<_, 3, _>(|i| {
            ndarray::Slice::new(0, Some((extents[i] * steps[i].unsigned_abs()) as isize), steps[i])
        });
        let mut view = whole.view();
        for (at, slice) in [a, b, c].into_iter().enumerate() {
            view.slice_axis_inplace(ndarray::Axis(at), slice);
        }
        // The element with all indices 0, and the strides, as other libraries give them.
        let first = std::ptr::from_ref(&view[[0, 0, 0]]).expose_provenance() as u64;
        // SAFETY: the elements are those of `whole`, which nobody writes.
        let array = unsafe { interop::borrow::<i32>(&gpu, first, view.shape(), view.strides()) }.unwrap();
        let sums = gpu.reduce(ops::Sum, array.view(), axis as isize).unwrap();
        let expected = view.map(|&x| i64::from(x)).sum_axis(ndarray::Axis(axis));
        prop_assert_eq!(gpu.download(&sums).unwrap(), expected.iter().copied().collect::<Vec<i64>>());
        prop_assert_eq!(gpu.download(array.view()).unwrap(), view.iter().copied().collect::<Vec<i32>>());
    }
}

#[test]
fn the_result_goes_to_borrowed_memory_with_gaps() {
    let gpu = Gpu::simt();
    let x = Array3::from_shape_fn([2, 3, 4], |(i, j, k)| (i * 12 + j * 4 + k) as f32);
    let mut out = [-1.0_f32; 10];
    let mut target = borrow_mut(&gpu, &mut out, 8, &[2, 2], &[-4, -2]);
    let input = borrow(&gpu, x.as_slice().unwrap(), 0, &[2, 3, 4], &[12, 4, 1]);
    let halves = input.view().slice(2, .., 2).unwrap();
    gpu.reduce_into(ops::Sum, halves, 1, target.view_mut()).unwrap();
    drop(target);
    let sums = x.slice(s![.., .., ..;2]).sum_axis(ndarray::Axis(1));
    assert_eq!(sums.shape(), [2, 2]);
    let expected = [-1.0, -1.0, sums[[1, 1]], -1.0, sums[[1, 0]], -1.0, sums[[0, 1]], -1.0, sums[[0, 0]], -1.0];
    assert_eq!(out, expected);
}

/// Counts its drops.
struct Owner(Arc<AtomicUsize>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn an_owner_is_dropped_once_after_the_last_use() {
    let gpu = Gpu::simt();
    let drops = Arc::new(AtomicUsize::new(0));
    let count = || drops.load(Ordering::Relaxed);
    let numbers = [1.0_f32, 2.0, 3.0];
    // SAFETY: the numbers exist until the end of the test.
    let owned = || unsafe { borrow(&gpu, &numbers, 0, &[3], &[1]).with_owner(Owner(drops.clone())) };
    let array: Borrowed<'static, f32> = owned();
    assert_eq!((gpu.sum(array.view()).unwrap(), count()), (6.0, 0));
    let mut copy = gpu.zeroed::<f32>(3).unwrap();
    let recording = gpu.record(|| gpu.copy_array(array.view(), &mut copy)).unwrap();
    drop(array);
    assert_eq!(count(), 0, "the recording keeps the memory");
    recording.start().unwrap();
    assert_eq!(gpu.download(&copy).unwrap(), numbers);
    drop(recording);
    assert_eq!(count(), 1);
    // An array without elements has an owner, too.
    // SAFETY: as above.
    drop(unsafe { borrow(&gpu, &numbers, 0, &[0], &[1]).with_owner(Owner(drops.clone())) });
    assert_eq!(count(), 2);
    let mut out = [0.0_f32; 3];
    // SAFETY: as above.
    let mut target = unsafe { borrow_mut(&gpu, &mut out, 0, &[3], &[1]).with_owner(Owner(drops.clone())) };
    gpu.copy_array(owned().view(), target.view_mut()).unwrap();
    assert_eq!(count(), 3);
    drop(target);
    assert_eq!((count(), out), (4, numbers));
}

#[test]
fn a_recording_refuses_memory_without_an_owner() {
    let gpu = Gpu::simt();
    let numbers = [1.0_f32, 2.0, 3.0];
    let array = borrow(&gpu, &numbers, 0, &[3], &[1]);
    let mut copy = gpu.zeroed::<f32>(3).unwrap();
    let refused = gpu.record(|| gpu.copy_array(array.view(), &mut copy));
    assert!(matches!(refused, Err(Error::BorrowedInRecording { .. })), "{refused:?}");
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("copy") && text.contains("`with_owner`"), "{text}");
}

#[test]
fn calls_refuse_borrowed_memory_like_their_own() {
    let gpu = Gpu::simt();
    let mut numbers = [1.0_f32; 12];
    let address = numbers.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: refused arrays are not used, and the others are not used at once.
    unsafe {
        let unaligned = interop::borrow::<f32>(&gpu, address + 1, &[2], &[1]);
        assert!(matches!(unaligned, Err(Error::Unaligned { alignment: 4, .. })));
        let overlapping = interop::borrow_mut::<f32>(&gpu, address, &[2, 3], &[1, 1]);
        assert!(matches!(overlapping, Err(Error::Overlap { .. })));
        let ranks = interop::borrow::<f32>(&gpu, address, &[2, 3], &[1]);
        assert!(matches!(ranks, Err(Error::Length { .. })));
        assert!(interop::borrow::<f32>(&gpu, 0, &[1], &[1]).is_err());
        assert!(interop::borrow::<f32>(&gpu, u64::MAX - 3, &[2], &[1]).is_err());
        assert!(interop::borrow::<f32>(&gpu, 64, &[100], &[-1]).is_err());
        assert!(interop::borrow::<f32>(&gpu, address, &[usize::MAX, 2], &[-1, isize::MIN]).is_err());
        let x = interop::borrow::<f32>(&gpu, address, &[3, 2], &[2, 1]).unwrap();
        // The same memory as another array: compared by addresses.
        let mut y = interop::borrow_mut::<f32>(&gpu, address + 20, &[3], &[1]).unwrap();
        assert!(matches!(gpu.reduce_into(ops::Sum, x.view(), 1, y.view_mut()), Err(Error::SharedMemory { .. })));
        let mut after = interop::borrow_mut::<f32>(&gpu, address + 24, &[3], &[1]).unwrap();
        gpu.reduce_into(ops::Sum, x.view(), 1, after.view_mut()).unwrap();
        let other = Gpu::simt();
        assert!(matches!(other.sum(x.view()), Err(Error::OtherDevice { .. })));
    }
    assert_eq!(numbers[6..9], [2.0; 3]);
}
