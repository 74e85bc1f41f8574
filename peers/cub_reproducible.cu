// CUB's sums with the determinism `gpu_to_gpu` (the same bits on every GPU), behind a C ABI. Requires CUB 3.1.

#include <cstdint>

#include <cub/device/device_reduce.cuh>
#include <cub/version.cuh>

#if CUB_VERSION >= 300100
#include <cuda/__execution/determinism.h>
#include <cuda/__execution/require.h>
#include <cuda/std/__execution/env.h>
#include <cuda/stream_ref>

// In each call, CUB allocates its scratch memory from the stream's pool.
template <typename T> static int sum(const void *in, void *out, int64_t length, cudaStream_t stream) {
    auto same = cuda::execution::require(cuda::execution::determinism::gpu_to_gpu);
    auto environment = cuda::std::execution::env{same, cuda::stream_ref{stream}};
    return cub::DeviceReduce::Sum(static_cast<const T *>(in), static_cast<T *>(out), length, environment);
}

extern "C" int warpfold_cub_reproducible_f32(const void *in, void *out, int64_t length, cudaStream_t stream) {
    return sum<float>(in, out, length, stream);
}

extern "C" int warpfold_cub_reproducible_f64(const void *in, void *out, int64_t length, cudaStream_t stream) {
    return sum<double>(in, out, length, stream);
}
#endif
