"""`torch.compile` while sums are exact: a pass over its graphs, and a check of each compiled graph at each call."""

# mypy: disable-error-code="import-not-found"

import functools

import torch
from torch._dynamo import trace_rules
from torch._functorch import config as functorch_config
from torch._guards import TracingContext
from torch._inductor import config, decomposition
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
from torch._inductor.output_code import CompiledFxGraph

# The compiler leaves the frames of the kernels alone, which it would see where it could not compile their caller.
for name in ("warpfold.torch", "warpfold._torch_kernels"):
    trace_rules.add(name)

MESSAGE = (
    "this function was compiled by torch.compile without warpfold.torch, so that its sums are not exact: call "
    "torch.compiler.reset(), and then the function while warpfold.torch is enabled"
)

# Where the pass runs: before patterns such as softmax are fused, and after the last pass that may make new sums.
HOOKS = ("joint_custom_pre_pass", "post_grad_custom_post_pass")


def norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    return torch.ops.warpfold.norm.default(x, ord, dim, keepdim, dtype=dtype)


def norms(xs, ord=2, dtype=None):
    return [norm(x, ord, dtype=dtype) for x in xs]


# Before a pass saw them, norms would be decomposed into powers and a sum.
DECOMPOSITIONS = {
    torch.ops.aten.linalg_vector_norm.default: norm,
    torch.ops.aten._foreach_norm.Scalar: norms,
}


def replacements():
    """The operators of warpfold for PyTorch's. They have the same arguments."""
    aten, ours = torch.ops.aten, torch.ops.warpfold
    return {
        aten.sum.default: ours.sum.default,
        aten.sum.dim_IntList: ours.sum.default,
        aten.mean.default: ours.mean.default,
        aten.mean.dim: ours.mean.default,
        aten.linalg_vector_norm.default: ours.norm.default,
    }


def is_inexact(node):
    """Whether a node reduces floats by an operator that is to be exact."""
    aten, prims = torch.ops.aten, torch.ops.prims
    inexact = (aten.sum, aten.mean, aten.linalg_vector_norm, aten.norm, aten._foreach_norm, prims.sum)
    if node.op != "call_function" or getattr(node.target, "overloadpacket", None) not in inexact:
        return False
    value = node.meta.get("val")
    return not isinstance(value, torch.Tensor) or value.is_floating_point() or value.is_complex()


class ExactPass(CustomGraphPass):
    """A pass that replaces operators by exact ones, after a pass of the user."""

    def __init__(self, first):
        self.first = first

    def __call__(self, graph):
        if self.first is not None:
            self.first(graph)
        self.check_context()
        exact = replacements()
        for node in filter(is_inexact, graph.nodes):
            if node.target not in exact:
                raise NotImplementedError(f"warpfold.torch cannot make {node.target} exact in a compiled function")
            node.target = exact[node.target]

    def check_context(self):
        """The backward pass of a function may be compiled later, from a graph that no first pass has made exact."""
        context = TracingContext.try_get()
        if context is None:
            return
        if self is getattr(config, HOOKS[0]):
            context.warpfold_is_exact = True
        elif not getattr(context, "warpfold_is_exact", False):
            raise RuntimeError(MESSAGE)

    def uuid(self):
        own = get_hash_for_files((__file__,))
        if self.first is None:
            return own
        # Nothing is cached if the user's pass has no identifier.
        first = self.first.uuid() if isinstance(self.first, CustomGraphPass) else None
        return first and (own, first)


class Installed:
    """The compiler makes what it compiles exact, and what it compiled before raises an error. `remove` ends that."""

    def __init__(self):
        for hook in HOOKS:
            setattr(config, hook, ExactPass(getattr(config, hook)))
        # What is compiled now is exact later, too: the backward pass is compiled with the forward pass.
        self.is_backward_compiled = functorch_config.force_non_lazy_backward_lowering
        functorch_config.force_non_lazy_backward_lowering = True
        self.decompositions = {op: decomposition.decompositions.get(op) for op in DECOMPOSITIONS}
        decompose_by(DECOMPOSITIONS)
        self.call, self.post_compile = CompiledFxGraph.__call__, CompiledFxGraph.post_compile
        CompiledFxGraph.__call__, CompiledFxGraph.post_compile = checking(self.call), marking(self.post_compile)

    def remove(self):
        for hook in HOOKS:
            if isinstance(installed := getattr(config, hook), ExactPass):
                setattr(config, hook, installed.first)
        functorch_config.force_non_lazy_backward_lowering = self.is_backward_compiled
        decompose_by(self.decompositions)
        CompiledFxGraph.__call__, CompiledFxGraph.post_compile = self.call, self.post_compile


def decompose_by(changes):
    """Changes the compiler's decompositions. None removes one."""
    for op, function in changes.items():
        if function is None:
            decomposition.decompositions.pop(op, None)
        else:
            decomposition.decompositions[op] = function
    # A copy of the table.
    decomposition.fast_random_decomps.cache_clear()


def marking(post_compile):
    """The function that ends the compilation of a graph, or its load from a cache, and then marks it as exact."""

    @functools.wraps(post_compile)
    def wrapper(graph, *args, **kwargs):
        # Options of torch.compile may have replaced the pass.
        graph.warpfold_is_exact = all(isinstance(getattr(config, hook), ExactPass) for hook in HOOKS)
        return post_compile(graph, *args, **kwargs)

    return wrapper


def checking(call):
    """The function that runs a compiled graph, if it is exact."""

    @functools.wraps(call)
    def wrapper(graph, inputs):
        if not getattr(graph, "warpfold_is_exact", False):
            raise RuntimeError(MESSAGE)
        return call(graph, inputs)

    return wrapper
