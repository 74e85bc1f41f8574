//! Graphs: work that is captured once and launched many times.
//!
//! ```no_run
//! use cust::graph::CaptureMode;
//! use cust::prelude::*;
//!
//! # fn captured(stream: &Stream) -> Result<(), cust::error::CudaError> {
//! stream.begin_capture(CaptureMode::ThreadLocal)?;
//! // Launches and asynchronous copies in `stream`.
//! let work = stream.end_capture()?.instantiate()?;
//! // SAFETY: all memory that the launches and the copies use is still there.
//! unsafe { work.launch(stream)? };
//! # Ok(())
//! # }
//! ```

use std::ptr;

use cuda_driver::{CUgraph, CUgraphExec, CUstreamCaptureMode};

use crate::context::Context;
use crate::error::{CudaError, CudaResult, DropResult};
use crate::stream::Stream;

/// Which calls are errors while a stream is captured, because a graph cannot contain them (an allocation, say).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureMode {
    /// Such calls of any thread.
    Global,
    /// Such calls of the thread that captures.
    ThreadLocal,
    /// None: such calls are executed at once.
    Relaxed,
}

/// Captured work.
#[derive(Debug)]
pub struct Graph {
    /// Null once it is destroyed.
    raw: CUgraph,
    context: Context,
}

// SAFETY: a handle that the driver takes from any thread, one at a time.
unsafe impl Send for Graph {}

impl Graph {
    /// A graph of the driver's.
    ///
    /// # Safety
    /// It is a graph of this context, and is destroyed by nobody else.
    pub unsafe fn from_raw(raw: CUgraph, context: &Context) -> Self {
        Self { raw, context: context.clone() }
    }

    /// How many nodes it has: launches, copies and fills.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn num_nodes(&self) -> CudaResult<usize> {
        let entered = self.context.enter()?;
        let mut count = 0;
        // SAFETY: the handle is alive; writes one size, and no nodes, as there is no room for them.
        unsafe { entered.driver().cuGraphGetNodes(self.raw, ptr::null_mut(), &mut count)? };
        Ok(count)
    }

    /// Makes it ready to be launched.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn instantiate(&self) -> CudaResult<GraphExec> {
        let mut executable = GraphExec { raw: ptr::null_mut(), context: self.context.clone() };
        let entered = self.context.enter()?;
        // SAFETY: the handle is alive; writes a handle, which is destroyed with the value.
        unsafe { entered.driver().cuGraphInstantiateWithFlags(&mut executable.raw, self.raw, 0)? };
        Ok(executable)
    }

    /// Its handle. It is valid for as long as this value lives.
    pub fn as_raw(&self) -> CUgraph {
        self.raw
    }

    /// Destroys it.
    ///
    /// # Errors
    /// An error of the driver, with the graph.
    pub fn drop(mut graph: Self) -> DropResult<Self> {
        graph.destroy().map_err(|error| (error, graph))
    }

    fn destroy(&mut self) -> CudaResult<()> {
        if self.raw.is_null() {
            return Ok(());
        }
        let entered = self.context.enter()?;
        // SAFETY: the handle is alive, and is not used again.
        unsafe { entered.driver().cuGraphDestroy(self.raw)? };
        self.raw = ptr::null_mut();
        Ok(())
    }
}

impl Stream {
    /// Begins a capture: work that the stream is given goes to a graph instead of the device, until
    /// [`Stream::end_capture`].
    ///
    /// # Errors
    /// The stream is being captured already.
    pub fn begin_capture(&self, mode: CaptureMode) -> CudaResult<()> {
        let mode = match mode {
            CaptureMode::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            CaptureMode::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            CaptureMode::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        };
        let entered = self.context().enter()?;
        // SAFETY: the handle is alive.
        unsafe { entered.driver().cuStreamBeginCapture_v2(self.as_inner(), mode)? };
        Ok(())
    }

    /// Ends a capture: the graph of what the stream was given since it began.
    ///
    /// # Errors
    /// Nothing is being captured, something was asked for that a graph cannot contain, or the capture was begun on
    /// another thread and is not [`CaptureMode::Relaxed`].
    pub fn end_capture(&self) -> CudaResult<Graph> {
        let entered = self.context().enter()?;
        let mut graph = ptr::null_mut();
        // SAFETY: the handle is alive; writes a handle, or null.
        unsafe { entered.driver().cuStreamEndCapture(self.as_inner(), &mut graph)? };
        if graph.is_null() {
            return Err(CudaError::StreamCaptureInvalidated);
        }
        // SAFETY: a new graph of this context, which is nobody else's.
        Ok(unsafe { Graph::from_raw(graph, self.context()) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _ = self.destroy();
    }
}

/// Captured work that is ready to be launched. It needs the [`Graph`] no more.
#[derive(Debug)]
pub struct GraphExec {
    /// Null where making it has failed, and once it is destroyed.
    raw: CUgraphExec,
    context: Context,
}

// SAFETY: a handle that the driver takes from any thread.
unsafe impl Send for GraphExec {}
// SAFETY: a launch does not change it; launches of one executable follow each other.
unsafe impl Sync for GraphExec {}

impl GraphExec {
    /// Launches all of its work in a stream.
    ///
    /// # Safety
    /// What was promised of each launch and each copy that was captured is true of this launch as well: the memory that
    /// they use is still there, and nobody else accesses it until they are done.
    ///
    /// # Errors
    /// [`CudaError::InvalidHandle`] if the stream is of another context; an error of the launch, or of work before.
    pub unsafe fn launch(&self, stream: &Stream) -> CudaResult<()> {
        if !self.context.is(stream.context()) {
            return Err(CudaError::InvalidHandle);
        }
        let entered = self.context.enter()?;
        // SAFETY: both handles are alive and of one context; the rest is promised by the caller.
        unsafe { entered.driver().cuGraphLaunch(self.raw, stream.as_inner())? };
        Ok(())
    }

    /// Its handle. It is valid for as long as this value lives.
    pub fn as_raw(&self) -> CUgraphExec {
        self.raw
    }

    /// Destroys it. Launches of it still end.
    ///
    /// # Errors
    /// An error of the driver, with the value.
    pub fn drop(mut executable: Self) -> DropResult<Self> {
        executable.destroy().map_err(|error| (error, executable))
    }

    fn destroy(&mut self) -> CudaResult<()> {
        if self.raw.is_null() {
            return Ok(());
        }
        let entered = self.context.enter()?;
        // SAFETY: the handle is alive, and is not used again. The driver waits for launches of it by itself.
        unsafe { entered.driver().cuGraphExecDestroy(self.raw)? };
        self.raw = ptr::null_mut();
        Ok(())
    }
}

impl Drop for GraphExec {
    fn drop(&mut self) {
        let _ = self.destroy();
    }
}
