//! Blocks of device memory that were freed, except large ones, for later allocations of the same size in the same
//! stream.
//!
//! The driver's `cuMemFree` waits for all work of the device, and `cuMemAlloc` takes microseconds. A block can be used
//! again without waiting by work of the stream that used it before. So a handle recycles what only its own stream has
//! used. All other memory goes back to the driver: that which [`Memory::share_with`](super::Memory::share_with) or
//! [`Memory::expose`](super::Memory::expose) has marked. This needs no
//! memory pools, which not every device has, and a block costs no call of the driver.

use std::collections::VecDeque;

/// The largest block that is recycled, in bytes.
const MAX_BLOCK_BYTES: usize = 16 << 20;

/// The maximum number of blocks that wait for an allocation, and of their bytes in total.
const MAX_BLOCKS: usize = 64;
const MAX_BYTES: usize = 64 << 20;

/// The blocks of one stream that wait for an allocation, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Recycled {
    blocks: VecDeque<Block>,
}

/// A block of device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub address: u64,
    pub bytes: usize,
}

impl Recycled {
    /// Takes a block of exactly this size: then errors that `compute-sanitizer` reports are those of new blocks.
    pub fn take(&mut self, bytes: usize) -> Option<u64> {
        let at = self.blocks.iter().rposition(|block| block.bytes == bytes)?;
        self.blocks.remove(at).map(|block| block.address)
    }

    /// Keeps a block, and returns those that are to be freed instead.
    pub fn put(&mut self, block: Block) -> Vec<Block> {
        if block.bytes > MAX_BLOCK_BYTES {
            return vec![block];
        }
        self.blocks.push_back(block);
        let mut evicted = Vec::new();
        while self.blocks.len() > MAX_BLOCKS || self.bytes() > MAX_BYTES {
            evicted.extend(self.blocks.pop_front());
        }
        evicted
    }

    /// Takes all blocks.
    pub fn take_all(&mut self) -> Vec<Block> {
        self.blocks.drain(..).collect()
    }

    fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_taken_once_and_by_its_size() {
        let mut recycled = Recycled::default();
        assert_eq!(recycled.take(16), None);
        assert_eq!(recycled.put(Block { address: 256, bytes: 16 }), []);
        assert_eq!(recycled.put(Block { address: 512, bytes: 32 }), []);
        assert_eq!([recycled.take(64), recycled.take(16), recycled.take(16)], [None, Some(256), None]);
        assert_eq!(recycled.take_all(), [Block { address: 512, bytes: 32 }]);
        assert_eq!(recycled.take(32), None);
    }

    #[test]
    fn the_oldest_blocks_and_large_ones_are_freed() {
        let mut recycled = Recycled::default();
        let large = Block { address: 1, bytes: MAX_BLOCK_BYTES + 16 };
        assert_eq!(recycled.put(large), [large]);
        let block = |i: usize| Block { address: i as u64, bytes: 16 + 16 * i };
        let evicted: Vec<Block> = (0..MAX_BLOCKS + 2).flat_map(|i| recycled.put(block(i))).collect();
        assert_eq!(evicted, [block(0), block(1)]);
        let all: Vec<Block> =
            (0..20).flat_map(|_| recycled.put(Block { address: 9, bytes: MAX_BLOCK_BYTES })).collect();
        assert_eq!(recycled.bytes(), MAX_BYTES);
        let fitting = MAX_BYTES / MAX_BLOCK_BYTES;
        assert_eq!(all.len(), MAX_BLOCKS + 20 - fitting);
    }
}
