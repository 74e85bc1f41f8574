//! The order in which operators that keep one combine elements, as plain loops over what each thread has. It shares
//! the constants of `tuning::order` with the kernels, and no code.

use kernels::reduce::tuning::order::{
    LARGE_BLOCKS_PER_MULTIPROCESSOR, LEAVES, MAX_CHUNKS, MAX_SHORT_ROW_VECTORS, MAX_SHORT_SEGMENT_VECTORS, MAX_THREADS,
    MAX_WARP_SEGMENT_VECTORS, MIN_CHUNK_TILES, MULTIPROCESSORS, ROUNDS, VECTORS_IN_FLIGHT, VECTORS_PER_LANE,
};

/// Where the elements of an output lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// One after the other: a whole input, or a row.
    Contiguous,
    /// In a column.
    Strided,
    /// In a segment by offsets.
    Segment,
}

/// How states are combined.
pub struct Fold<'a, S> {
    /// The state of no elements.
    pub neutral: S,
    /// Combines two states.
    pub combine: &'a dyn Fn(S, S) -> S,
    /// Bytes of an element.
    pub size: usize,
}

impl<S: Copy> Fold<'_, S> {
    /// The state of elements, from the state of each.
    pub fn of(&self, place: Place, states: &[S]) -> S {
        match place {
            Place::Contiguous if states.len().div_ceil(self.vector()) <= MAX_SHORT_ROW_VECTORS => {
                self.short_row(states)
            }
            Place::Contiguous => self.long_row(states),
            Place::Strided => self.column(states),
            Place::Segment => self.segment(states),
        }
    }

    /// Elements of a vector of 16 bytes.
    fn vector(&self) -> usize {
        16 / self.size
    }

    fn combined(&self, a: S, b: S) -> S {
        (self.combine)(a, b)
    }

    /// A balanced tree of neighbours.
    fn tree(&self, states: &[S]) -> S {
        match states {
            [] => self.neutral,
            [one] => *one,
            _ => {
                let (first, second) = states.split_at(states.len() / 2);
                self.combined(self.tree(first), self.tree(second))
            }
        }
    }

    /// One after the other, from the neutral state on.
    fn chain(&self, states: impl IntoIterator<Item = S>) -> S {
        states.into_iter().fold(self.neutral, |a, b| self.combined(a, b))
    }

    /// A tree of states that are half of them apart, of a number that is filled up to a power of two.
    fn halves(&self, mut states: Vec<S>) -> S {
        states.resize(states.len().next_power_of_two(), self.neutral);
        while states.len() > 1 {
            let (first, second) = states.split_at(states.len() / 2);
            states = first.iter().zip(second).map(|(&a, &b)| self.combined(a, b)).collect();
        }
        states[0]
    }

    /// The fold of a block: of the lanes of each warp, then of the first `warps` warps.
    fn block(&self, threads: &[S], warps: usize) -> S {
        let of_warps: Vec<S> = threads.chunks(32).map(|lanes| self.halves(lanes.to_vec())).collect();
        self.halves(of_warps[..warps].to_vec())
    }

    /// The fold of what several blocks of `threads` threads give, by one of them.
    fn partials(&self, partials: &[S], threads: usize) -> S {
        let of_thread = |thread: usize| self.chain(partials.iter().copied().skip(thread).step_by(threads));
        let states: Vec<S> = (0..threads).map(of_thread).collect();
        self.block(&states, partials.len().div_ceil(32).min(threads / 32))
    }

    fn short_row(&self, states: &[S]) -> S {
        let vector = self.vector();
        let lanes = states.len().div_ceil(vector).div_ceil(VECTORS_PER_LANE).next_power_of_two().min(32);
        let whole = states.len() / vector;
        let of_lane = |lane: usize| {
            let nth = |k: usize| lane + k * lanes;
            let of_vector = |k: usize| match nth(k) < whole {
                true => self.tree(&states[nth(k) * vector..][..vector]),
                false => self.neutral,
            };
            let of_vectors: Vec<S> = (0..VECTORS_PER_LANE).map(of_vector).collect();
            let first = if whole > 0 { self.tree(&of_vectors) } else { self.neutral };
            states[whole * vector..].iter().skip(lane).step_by(lanes).fold(first, |a, &b| self.combined(a, b))
        };
        self.halves((0..lanes).map(of_lane).collect())
    }

    /// What a thread of a block makes of whole tiles and, if `is_last`, of all after them.
    fn tiles(&self, states: &[S], tiles: std::ops::Range<usize>, is_last: bool, thread: usize, threads: usize) -> S {
        let (vector, stride) = (self.vector(), threads * self.vector());
        let tile = stride * VECTORS_IN_FLIGHT;
        let of_vector = |at: usize| self.tree(&states[at..at + vector]);
        let of_tile = |i: usize| {
            let of_vectors: Vec<S> =
                (0..VECTORS_IN_FLIGHT).map(|k| of_vector(i * tile + thread * vector + k * stride)).collect();
            self.tree(&of_vectors)
        };
        let state = self.chain(tiles.clone().filter(|i| (i + 1) * tile <= states.len()).map(of_tile));
        if !is_last {
            return state;
        }
        let (from, end) = (states.len() / tile * tile, states.len() / vector * vector);
        let vectors = (from + thread * vector..end).step_by(stride).map(of_vector);
        let single = states.get(end + thread).copied();
        vectors.chain(single).fold(state, |a, b| self.combined(a, b))
    }

    fn long_row(&self, states: &[S]) -> S {
        let vectors = states.len().div_ceil(self.vector());
        let of_one_round = vectors.div_ceil(2 * VECTORS_IN_FLIGHT).next_power_of_two();
        let threads = if of_one_round <= MAX_THREADS {
            of_one_round.max(32)
        } else {
            let of_all = vectors.div_ceil(2 * VECTORS_IN_FLIGHT * MULTIPROCESSORS).next_power_of_two();
            of_all.clamp(128, MAX_THREADS)
        };
        let tiles = states.len().div_ceil(threads * VECTORS_IN_FLIGHT * self.vector());
        let splits = tiles.div_ceil(2).clamp(1, LARGE_BLOCKS_PER_MULTIPROCESSOR * MULTIPROCESSORS);
        let (of_shorter, longer) = (tiles / splits, tiles % splits);
        let first = |split: usize| split * of_shorter + split.min(longer);
        let of_split = |split: usize| {
            let (tiles, is_last) = (first(split)..first(split + 1), split + 1 == splits);
            let of_thread = |thread| self.tiles(states, tiles.clone(), is_last, thread, threads);
            self.block(&(0..threads).map(of_thread).collect::<Vec<S>>(), threads / 32)
        };
        let partials: Vec<S> = (0..splits).map(of_split).collect();
        if splits == 1 { partials[0] } else { self.partials(&partials, threads) }
    }

    fn column(&self, states: &[S]) -> S {
        let in_flight = match self.size {
            1 | 2 => 8,
            _ => 4,
        };
        let rows = states.len();
        let (leaves, passes, of_split) = if rows < 2 * LEAVES * ROUNDS * in_flight {
            let rounds = rows / (ROUNDS * in_flight);
            (if rounds == 0 { 1 } else { (1 << rounds.ilog2()).min(LEAVES) }, 1, rows)
        } else {
            (LEAVES, ROUNDS, (4 << rows.ilog2().div_ceil(2)).max(LEAVES * ROUNDS * in_flight))
        };
        let fold_split = |states: &[S]| {
            let of_leaf = |leaf: usize| {
                let of_chain = |pass: usize| {
                    let rows: Vec<S> =
                        states.iter().copied().skip(leaf + pass * leaves).step_by(leaves * passes).collect();
                    self.rounds(&rows, in_flight)
                };
                (1..passes).fold(of_chain(0), |a, pass| self.combined(a, of_chain(pass)))
            };
            self.halves((0..leaves).map(of_leaf).collect())
        };
        if rows <= of_split {
            return fold_split(states);
        }
        let partials: Vec<S> = states.chunks(of_split).map(fold_split).collect();
        let threads = if partials.len() <= 32 { 4 } else { 16 };
        let of_thread = |thread: usize| self.chain(partials.iter().copied().skip(thread).step_by(threads));
        self.halves((0..threads).map(of_thread).collect())
    }

    /// A thread's rows: `in_flight` at once while as many are left, then four, and then one.
    fn rounds(&self, mut rows: &[S], in_flight: usize) -> S {
        let mut state = self.neutral;
        for at_once in [in_flight, 4, 1] {
            while rows.len() >= at_once {
                let (now, later) = rows.split_at(at_once);
                (state, rows) = (self.combined(state, self.tree(now)), later);
            }
        }
        state
    }

    fn segment(&self, states: &[S]) -> S {
        const THREADS: usize = 256;
        let (len, vector) = (states.len(), self.vector());
        if len <= vector {
            return self.chain(states.iter().copied());
        }
        if len <= MAX_WARP_SEGMENT_VECTORS * vector {
            let lanes = if len <= MAX_SHORT_SEGMENT_VECTORS * vector { 4 } else { 32 };
            let whole = len / vector * vector;
            let of_lane = |lane: usize| {
                let vectors = states[..whole].chunks(vector).skip(lane).step_by(lanes).map(|chunk| self.tree(chunk));
                self.chain(vectors.chain(states[whole..].iter().copied().skip(lane).step_by(lanes)))
            };
            return self.halves((0..lanes).map(of_lane).collect());
        }
        let tiles = len / (THREADS * VECTORS_IN_FLIGHT * vector);
        let of_chunk = tiles.div_ceil(MAX_CHUNKS).max(MIN_CHUNK_TILES);
        let chunks = tiles.div_ceil(of_chunk).max(1);
        let fold_chunk = |chunk: usize| {
            let (range, is_last) = (chunk * of_chunk..((chunk + 1) * of_chunk).min(tiles), chunk + 1 == chunks);
            let of_thread = |thread| self.tiles(states, range.clone(), is_last, thread, THREADS);
            self.block(&(0..THREADS).map(of_thread).collect::<Vec<S>>(), THREADS / 32)
        };
        let partials: Vec<S> = (0..chunks).map(fold_chunk).collect();
        if chunks == 1 { partials[0] } else { self.partials(&partials, THREADS) }
    }
}
