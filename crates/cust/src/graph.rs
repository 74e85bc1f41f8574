//! Graphs: work that is captured once and launched repeatedly.
//!
//! ```no_run
//! use cust::graph::CaptureMode;
//! use cust::prelude::*;
//!
//! # fn captured(stream: &Stream) -> Result<(), cust::error::CudaError> {
//! stream.begin_capture(CaptureMode::ThreadLocal)?;
//! // Launches and asynchronous copies in `stream`.
//! let work = stream.end_capture()?.instantiate()?;
//! // SAFETY: all memory that the launches and the copies use is still allocated.
//! unsafe { work.launch(stream)? };
//! # Ok(())
//! # }
//! ```

use std::marker::PhantomData;
use std::ptr;

use cuda_driver::{CUgraph, CUgraphExec, CUstreamCaptureMode, Driver};

use crate::context::Context;
use crate::error::{CudaError, CudaResult, DropResult};
use crate::stream::Stream;

/// Which calls are errors while a stream is captured.
///
/// A graph cannot contain some calls, such as allocations. The mode selects the threads in which they are errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureMode {
    /// All threads.
    Global,
    /// The capturing thread.
    ThreadLocal,
    /// No thread: such calls are executed immediately.
    Relaxed,
}

impl CaptureMode {
    fn to_raw(self) -> CUstreamCaptureMode {
        match self {
            Self::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            Self::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Self::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        }
    }
}

/// A guard during which this thread's calls are not errors, and do not end a capture, even if another library captures
/// a stream in another mode. Afterwards the thread's mode is the one before.
#[derive(Debug)]
#[must_use = "the mode is relaxed until this value is dropped"]
pub struct RelaxedCapture {
    driver: &'static Driver,
    before: CUstreamCaptureMode,
    /// The mode is the thread's.
    not_send: PhantomData<*const ()>,
}

impl RelaxedCapture {
    /// Begins the guard.
    ///
    /// # Errors
    /// No driver, or an error of the driver.
    pub fn begin() -> CudaResult<Self> {
        let (driver, mut mode) = (crate::driver()?, CaptureMode::Relaxed.to_raw());
        // SAFETY: reads and writes one integer.
        unsafe { driver.cuThreadExchangeStreamCaptureMode(&mut mode)? };
        Ok(Self { driver, before: mode, not_send: PhantomData })
    }
}

impl Drop for RelaxedCapture {
    fn drop(&mut self) {
        // SAFETY: reads and writes one integer. The guard is dropped on its thread, because it is not `Send`.
        let _ = unsafe { self.driver.cuThreadExchangeStreamCaptureMode(&mut self.before) };
    }
}

/// Captured work.
#[derive(Debug)]
pub struct Graph {
    /// Null after the graph is destroyed.
    raw: CUgraph,
    context: Context,
}

// SAFETY: the driver takes a graph's handle from any thread, but from one at a time.
unsafe impl Send for Graph {}

impl Graph {
    /// Takes ownership of a driver's graph.
    ///
    /// # Safety
    /// `raw` is a graph of this context, and no other code destroys it.
    pub unsafe fn from_raw(raw: CUgraph, context: &Context) -> Self {
        Self { raw, context: context.clone() }
    }

    /// The number of nodes of the graph: launches, copies and fills.
    ///
    /// # Errors
    /// An error of the driver.
    pub fn num_nodes(&self) -> CudaResult<usize> {
        let entered = self.context.enter()?;
        let mut count = 0;
        // SAFETY: the handle is alive; writes one size. With a null pointer for the nodes, it writes no nodes.
        unsafe { entered.driver().cuGraphGetNodes(self.raw, ptr::null_mut(), &mut count)? };
        Ok(count)
    }

    /// Instantiates the graph, so that it can be launched.
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

    /// The graph's handle, valid as long as this value lives.
    pub fn as_raw(&self) -> CUgraph {
        self.raw
    }

    /// Destroys the graph.
    ///
    /// # Errors
    /// An error of the driver, together with the graph.
    pub fn drop(mut graph: Self) -> DropResult<Self> {
        graph.destroy().map_err(|error| (error, graph))
    }

    fn destroy(&mut self) -> CudaResult<()> {
        if self.raw.is_null() {
            return Ok(());
        }
        let (entered, _relaxed) = self.context.enter_to_destroy()?;
        // SAFETY: the handle is alive, and is not used again.
        unsafe { entered.driver().cuGraphDestroy(self.raw)? };
        self.raw = ptr::null_mut();
        Ok(())
    }
}

impl Stream {
    /// Begins a capture. Until [`Stream::end_capture`], work in the stream is recorded in a graph instead of executed.
    ///
    /// # Errors
    /// A capture of the stream has begun already.
    pub fn begin_capture(&self, mode: CaptureMode) -> CudaResult<()> {
        let entered = self.context().enter()?;
        // SAFETY: the handle is alive.
        unsafe { entered.driver().cuStreamBeginCapture_v2(self.as_inner(), mode.to_raw())? };
        Ok(())
    }

    /// Ends the capture, and returns a graph of the captured work.
    ///
    /// # Errors
    /// The stream is not being captured, a call that a graph cannot contain was made, or the capture was begun on
    /// another thread and is not [`CaptureMode::Relaxed`].
    pub fn end_capture(&self) -> CudaResult<Graph> {
        let entered = self.context().enter()?;
        let mut graph = ptr::null_mut();
        // SAFETY: the handle is alive; writes a handle, or null.
        unsafe { entered.driver().cuStreamEndCapture(self.as_inner(), &mut graph)? };
        if graph.is_null() {
            return Err(CudaError::StreamCaptureInvalidated);
        }
        // SAFETY: a new graph of this context, to which no other code has the handle.
        Ok(unsafe { Graph::from_raw(graph, self.context()) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _ = self.destroy();
    }
}

/// An instantiated graph, which can be launched. It does not depend on the [`Graph`].
#[derive(Debug)]
pub struct GraphExec {
    /// Null if the instantiation failed, and after the graph is destroyed.
    raw: CUgraphExec,
    context: Context,
}

// SAFETY: the driver takes the handle from any thread.
unsafe impl Send for GraphExec {}
// SAFETY: a launch does not change it, and the driver orders the launches of one executable graph.
unsafe impl Sync for GraphExec {}

impl GraphExec {
    /// Launches the graph in a stream.
    ///
    /// # Safety
    /// The safety conditions of each captured launch and copy also hold for this launch: the memory that they use is
    /// still allocated, and no other code accesses it until they have completed.
    ///
    /// # Errors
    /// [`CudaError::InvalidHandle`] if the stream belongs to another context; an error of the launch, or of earlier
    /// work.
    pub unsafe fn launch(&self, stream: &Stream) -> CudaResult<()> {
        if !self.context.is_same(stream.context()) {
            return Err(CudaError::InvalidHandle);
        }
        let entered = self.context.enter()?;
        // SAFETY: both handles are alive and of one context; the rest is promised by the caller.
        unsafe { entered.driver().cuGraphLaunch(self.raw, stream.as_inner())? };
        Ok(())
    }

    /// The graph's handle, valid as long as this value lives.
    pub fn as_raw(&self) -> CUgraphExec {
        self.raw
    }

    /// Destroys the instantiated graph. Its pending launches still complete.
    ///
    /// # Errors
    /// An error of the driver, together with the value.
    pub fn drop(mut executable: Self) -> DropResult<Self> {
        executable.destroy().map_err(|error| (error, executable))
    }

    fn destroy(&mut self) -> CudaResult<()> {
        if self.raw.is_null() {
            return Ok(());
        }
        let (entered, _relaxed) = self.context.enter_to_destroy()?;
        // SAFETY: the handle is alive, and is not used again. The driver destroys the graph after its launches.
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
