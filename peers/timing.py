"""The time of a call on the GPU, for pytorch.py and check.py."""

import statistics

import torch

SAMPLE_SECONDS = 3e-3


def time_of(call, inputs, samples=15):
    """The median time of a call in microseconds. A CUDA graph contains many calls, which rotate through the inputs."""

    def elapsed(work):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3

    def calls(count):
        for i in range(count):
            call(inputs[i % len(inputs)])

    calls(3)
    torch.cuda.synchronize()
    one = elapsed(lambda: calls(3)) / 3
    count = max(1, min(500, int(SAMPLE_SECONDS / max(one, 1e-7)) + 1))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        calls(count)
    graph.replay()
    torch.cuda.synchronize()
    return statistics.median(elapsed(graph.replay) for _ in range(samples)) / count * 1e6
