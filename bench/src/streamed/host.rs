//! Sums on all cores of the host. Each thread reads a chunk and sums it while it is in the thread's cache, so that
//! reading and summing overlap, and the elements are loaded from memory once.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use warpfold::{Layout, host};

use super::form::{Form, form};
use super::states::{Running, Streamed, Totals};
use super::{Job, Results, axes_of};

/// The stack of a thread. The threads of a machine with many cores fit in little address space.
const STACK_BYTES: usize = 1 << 20;

/// The turn of a thread to take the next part of the input. A pipe is read during the turn.
type Turn<'a> = MutexGuard<'a, usize>;

/// The work for a part of the input, by its number, with a thread's state and buffer.
type Work<'a, S, T> = &'a (dyn Fn(&mut S, &mut [T], usize, Turn<'_>) -> anyhow::Result<()> + Sync);

/// The results of parts, with the numbers of the parts.
#[derive(Default)]
struct Parts(Mutex<Vec<(usize, Results)>>);

impl Parts {
    fn push(&self, part: usize, of_part: Results) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((part, of_part));
    }

    /// Appends the results of all parts, in order.
    fn append_to(self, results: &mut Results) {
        let mut parts = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        parts.sort_unstable_by_key(|(part, _)| *part);
        for (_, of_part) in parts {
            results.iter_mut().zip(of_part).for_each(|(all, of_part)| all.extend(of_part));
        }
    }
}

impl Job<'_> {
    /// The results of each operator for the array of these extents at element `first`, appended to `results`.
    pub fn reduce_on_host<T: Streamed>(
        &self,
        first: usize,
        extents: &[usize],
        is_reduced: &[bool],
        results: &mut Results,
    ) -> anyhow::Result<()> {
        match form(extents, is_reduced)? {
            Form::Rows { rows, len } if len <= self.chunk::<T>() => {
                self.whole_rows::<T>(first, (rows, len), extents, is_reduced, results)
            }
            Form::Rows { rows, len } => {
                let mut each = (0..rows).map(|row| first + row * len);
                each.try_for_each(|row| self.reduce_on_host::<T>(row, &extents[1..], &is_reduced[1..], results))
            }
            Form::Columns { rows, kept, inner } => self.columns::<T>(first, [rows, kept, inner], results),
        }
    }

    /// Results of rows that are reduced by themselves, several at a time.
    fn whole_rows<T: Streamed>(
        &self,
        first: usize,
        (rows, len): (usize, usize),
        extents: &[usize],
        is_reduced: &[bool],
        results: &mut Results,
    ) -> anyhow::Result<()> {
        let axes = axes_of(is_reduced);
        let at_once = (self.chunk::<T>() / len.max(1)).clamp(1, rows.max(1));
        let results_of = Parts::default();
        self.in_parallel::<T, ()>(self.budget.threads, rows.div_ceil(at_once), &|| (), &|(), buffer, part, turn| {
            let range = part * at_once..rows.min((part + 1) * at_once);
            let elements = &mut buffer[..range.len() * len];
            self.read(first + range.start * len, elements, turn)?;
            let layout = Layout::contiguous(&[&[range.len()], &extents[1..]].concat())?;
            let array = host::View::new(elements, &layout)?;
            let of_part: Result<Results, _> =
                self.operators.iter().map(|&operator| T::reduce(operator, &array, &axes)).collect();
            results_of.push(part, of_part?);
            Ok(())
        })?;
        results_of.append_to(results);
        Ok(())
    }

    /// Results of an array with the axes `[rows, kept, inner]`, of which the first and the last are reduced.
    fn columns<T: Streamed>(
        &self,
        first: usize,
        [rows, kept, inner]: [usize; 3],
        results: &mut Results,
    ) -> anyhow::Result<()> {
        let (row, chunk) = (kept * inner, self.chunk::<T>());
        let states = kept.saturating_mul(Running::<T>::bytes_each(self.kinds));
        // A pipe is read once: rather by fewer threads than some columns at a time.
        let threads = match self.source.can_seek() {
            true => self.budget.threads,
            false => (self.budget.states / states).clamp(1, self.budget.threads),
        };
        if kept == 1 || row <= chunk && states.saturating_mul(threads) <= self.budget.states {
            return self.by_rows::<T>(first, [rows, kept, inner], threads, results);
        }
        let most = self.budget.states / self.budget.threads / Running::<T>::bytes_each(self.kinds);
        self.check_blocks(kept)?;
        self.by_blocks::<T>(first, [rows, kept, inner], (chunk / inner).min(most).clamp(1, kept), results)
    }

    /// Each thread sums some rows, and the sums of all threads are merged.
    fn by_rows<T: Streamed>(
        &self,
        first: usize,
        [rows, kept, inner]: [usize; 3],
        threads: usize,
        results: &mut Results,
    ) -> anyhow::Result<()> {
        let len = rows * kept * inner;
        // The elements of a single result are divided anywhere.
        let unit = if kept == 1 { 1 } else { kept * inner };
        let at_once = (self.chunk::<T>() / unit.max(1)).max(1) * unit.max(1);
        let make = || Running::new(self.kinds, kept, inner);
        let all = self.in_parallel(
            threads,
            len.div_ceil(at_once),
            &make,
            &|running: &mut Running<T>, buffer, part, turn| {
                let range = part * at_once..len.min((part + 1) * at_once);
                let elements = &mut buffer[..range.len()];
                self.read(first + range.start, elements, turn)?;
                running.add(elements);
                Ok(())
            },
        )?;
        let mut totals = Totals::<T>::new(self.kinds, kept);
        all.iter().try_for_each(|running| running.merge_into(&mut totals))?;
        self.append(&totals, results);
        Ok(())
    }

    /// Each thread sums some columns of all rows, a contiguous segment of each row.
    fn by_blocks<T: Streamed>(
        &self,
        first: usize,
        [rows, kept, inner]: [usize; 3],
        block: usize,
        results: &mut Results,
    ) -> anyhow::Result<()> {
        let results_of = Parts::default();
        self.in_parallel::<T, ()>(self.budget.threads, kept.div_ceil(block), &|| (), &|(), buffer, part, turn| {
            drop(turn);
            let columns = part * block..kept.min((part + 1) * block);
            let mut running = Running::<T>::new(self.kinds, columns.len(), inner);
            for (rows, part) in parts(rows, columns.len() * inner, buffer.len()) {
                let elements = &mut buffer[..rows.len() * part.len()];
                for (row, to) in rows.zip(elements.chunks_exact_mut(part.len())) {
                    self.read_now(first + (row * kept + columns.start) * inner + part.start, to)?;
                }
                running.add(elements);
            }
            let mut totals = Totals::new(self.kinds, columns.len());
            running.merge_into(&mut totals)?;
            let mut of_part = vec![Vec::new(); self.operators.len()];
            self.append(&totals, &mut of_part);
            results_of.push(part, of_part);
            Ok(())
        })?;
        results_of.append_to(results);
        Ok(())
    }

    /// Appends the results of each operator.
    pub fn append<T: Streamed>(&self, totals: &Totals<T>, results: &mut Results) {
        results.iter_mut().zip(self.operators).for_each(|(all, &operator)| all.extend(totals.values(operator)));
    }

    /// Reads elements during a thread's turn if they come from a pipe, else after it.
    fn read<T: Streamed>(&self, first: usize, to: &mut [T], turn: Turn<'_>) -> anyhow::Result<()> {
        let of_pipe = (!self.source.can_seek()).then_some(turn);
        self.read_now(first, to)?;
        drop(of_pipe);
        Ok(())
    }

    /// Calls `work` for each part, on some threads, each with a state and a buffer of its own. Returns the states.
    fn in_parallel<T: Streamed, S: Send>(
        &self,
        threads: usize,
        parts: usize,
        state: &(dyn Fn() -> S + Sync),
        work: Work<'_, S, T>,
    ) -> anyhow::Result<Vec<S>> {
        let (next, has_failed) = (Mutex::new(0), AtomicBool::new(false));
        let worker = || {
            let mut own = state();
            let mut buffer = vec![T::default(); self.chunk::<T>()];
            while !has_failed.load(Ordering::Relaxed) {
                let mut turn = next.lock().unwrap_or_else(PoisonError::into_inner);
                let part = *turn;
                if part >= parts {
                    break;
                }
                *turn += 1;
                if let Err(error) = work(&mut own, &mut buffer, part, turn) {
                    has_failed.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            Ok(own)
        };
        thread::scope(|scope| {
            let others = threads.min(parts).saturating_sub(1);
            self.threads.fetch_max(others + 1, Ordering::Relaxed);
            let spawn = |_| thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, worker);
            // Fewer threads take the parts of those that cannot be started.
            let spawned: Vec<_> = (0..others).map_while(|number| spawn(number).ok()).collect();
            let mut all = vec![worker()];
            all.extend(spawned.into_iter().map(|thread| thread.join().expect("the worker does not panic")));
            all.into_iter().collect()
        })
    }
}

/// The ranges of `0..len`, of `each` but for the last.
pub fn ranges(len: usize, each: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by(each).map(move |first| first..len.min(first + each))
}

/// The parts of some rows of one segment each that fit in a buffer: rows, and the elements of their segments. They are
/// several whole segments, or a part of one.
pub fn parts(rows: usize, segment: usize, buffer: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let (at_once, part) = if segment <= buffer { (buffer / segment, segment) } else { (1, buffer) };
    ranges(rows, at_once).flat_map(move |rows| ranges(segment, part).map(move |part| (rows.clone(), part)))
}
