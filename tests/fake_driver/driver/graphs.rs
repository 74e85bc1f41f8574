//! Captures, graphs, and the objects that graphs keep.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use super::log::functions;
use super::{
    CAPTURE_UNMATCHED, CAPTURE_UNSUPPORTED, Code, INVALID_HANDLE, IS_DESTRUCTOR, Launch, Object, State, with_state,
};

/// The mode of a capture in which other calls of any thread are refused.
const GLOBAL: c_uint = 0;

/// Captured work, and what it keeps.
#[derive(Clone, Default)]
pub struct Graph {
    pub launches: Vec<Launch>,
    kept: Vec<Arc<UserObject>>,
    /// Whether the capture has got an error.
    is_invalid: bool,
}

/// An object that graphs keep, with its destructor.
pub struct UserObject {
    data: usize,
    destroy: unsafe extern "system" fn(*mut c_void),
}

impl Drop for UserObject {
    fn drop(&mut self) {
        // Like a real driver, on another thread, on which the driver may not be called.
        let (data, destroy) = (self.data, self.destroy);
        let call = move || {
            IS_DESTRUCTOR.set(true);
            // SAFETY: the caller of `cuUserObjectCreate` passed a function that takes this data once, on any thread.
            unsafe { destroy(std::ptr::with_exposed_provenance_mut(data)) }
        };
        std::thread::spawn(call).join().unwrap();
    }
}

impl State {
    /// The graph into which a stream's work is captured.
    pub fn captured(&self, stream: u64) -> Option<u64> {
        match self.objects.get(&stream) {
            Some((_, Object::Stream { captured, .. })) => *captured,
            _ => None,
        }
    }

    /// [`State::captured`], to add to it.
    pub fn graph_of(&mut self, stream: u64) -> Option<&mut Graph> {
        match self.objects.get_mut(&self.captured(stream)?) {
            Some((_, Object::Graph(graph))) => Some(graph),
            _ => None,
        }
    }

    /// Refuses a call that a captured stream does not take, which makes the capture invalid.
    pub fn refuse_captured(&mut self, stream: u64) -> Code {
        match self.graph_of(stream) {
            Some(graph) => {
                graph.is_invalid = true;
                Err(CAPTURE_UNSUPPORTED)
            }
            None => Ok(()),
        }
    }
}

functions! {
    fn cuStreamBeginCapture_v2(stream: u64, mode: c_uint) in stream {
        with_state(|state| {
            state.check_stream(stream)?;
            let graph = state.add(Object::Graph(Graph::default()))?;
            let Object::Stream { captured, .. } = state.get(stream)? else { return Err(INVALID_HANDLE) };
            *captured = Some(graph);
            state.is_captured |= mode == GLOBAL;
            Ok(())
        })
    }

    fn cuStreamIsCapturing(stream: u64, status: &mut c_uint) in stream {
        with_state(|state| {
            state.check_stream(stream)?;
            *status = state.graph_of(stream).map_or(0, |graph| 1 + c_uint::from(graph.is_invalid));
            Ok(())
        })
    }

    fn cuStreamGetCaptureInfo_v2(
        stream: u64,
        status: &mut c_uint,
        id: &mut u64,
        graph: &mut u64,
        _: *mut c_void,
        _: *mut usize,
    ) in stream {
        with_state(|state| {
            state.check_stream(stream)?;
            *status = state.graph_of(stream).map_or(0, |graph| 1 + c_uint::from(graph.is_invalid));
            if let Some(captured) = state.captured(stream) {
                (*id, *graph) = (captured, captured);
            }
            Ok(())
        })
    }

    /// Ends the capture of the stream, and of those that have joined it.
    fn cuStreamEndCapture(stream: u64, graph: &mut u64) in stream {
        with_state(|state| {
            state.check_stream(stream)?;
            *graph = state.captured(stream).ok_or(CAPTURE_UNMATCHED)?;
            for (_, object) in state.objects.values_mut() {
                match object {
                    Object::Stream { captured, .. } | Object::Event { captured, .. } if *captured == Some(*graph) => {
                        *captured = None;
                    }
                    _ => {}
                }
            }
            state.is_captured = false;
            let Object::Graph(Graph { is_invalid, .. }) = state.get(*graph)? else { return Err(INVALID_HANDLE) };
            if *is_invalid { Err(CAPTURE_UNSUPPORTED) } else { Ok(()) }
        })
    }

    fn cuGraphGetNodes(graph: u64, _: *mut *mut c_void, count: &mut usize) {
        with_state(|state| {
            let Object::Graph(graph) = state.get(graph)? else { return Err(INVALID_HANDLE) };
            *count = graph.launches.len();
            Ok(())
        })
    }

    fn cuGraphInstantiateWithFlags(executable: &mut u64, graph: u64, _: u64) {
        with_state(|state| {
            let Object::Graph(graph) = state.get(graph)? else { return Err(INVALID_HANDLE) };
            let graph = graph.clone();
            *executable = state.add(Object::Executable(graph))?;
            Ok(())
        })
    }

    fn cuGraphLaunch(executable: u64, stream: u64) in stream {
        with_state(|state| {
            state.check_stream(stream)?;
            let Object::Executable(graph) = state.get(executable)? else { return Err(INVALID_HANDLE) };
            let Graph { launches, kept, .. } = graph.clone();
            if let Some(graph) = state.graph_of(stream) {
                graph.kept.extend(kept);
            }
            launches.into_iter().try_for_each(|launch| state.start(stream, launch))
        })
    }

    fn cuGraphDestroy(graph: u64) {
        with_state(|state| state.destroy(graph))
    }

    fn cuGraphExecDestroy(executable: u64) {
        with_state(|state| state.destroy(executable))
    }

    fn cuUserObjectCreate(
        object: &mut u64,
        data: usize,
        destroy: unsafe extern "system" fn(*mut c_void),
        _: c_uint,
        _: c_uint,
    ) {
        with_state(|state| {
            *object = state.add(Object::OfUser(Arc::new(UserObject { data, destroy })))?;
            Ok(())
        })
    }

    fn cuUserObjectRelease(object: u64, _: c_uint) {
        with_state(|state| state.remove(object))
    }

    /// Gives the caller's one reference to the graph.
    fn cuGraphRetainUserObject(graph: u64, object: u64, _: c_uint, _: c_uint) {
        with_state(|state| {
            let Object::OfUser(kept) = state.get(object)? else { return Err(INVALID_HANDLE) };
            let kept = kept.clone();
            let Object::Graph(graph) = state.get(graph)? else { return Err(INVALID_HANDLE) };
            graph.kept.push(kept);
            state.remove(object)
        })
    }
}
