// CUB's reductions behind a C ABI, for one element type. The macros PEER_TYPE_... and PEER_NAME select it.

#include <cstddef>
#include <cstdint>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/version.cuh>
#include <cuda/std/functional>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

// The type of sums is the same as in warpfold: f32 for 16-bit floats, 64 bits for integers. Sums are a `Reduce` in that
// type, because `Sum` would add 16-bit floats in 16 bits.
#if defined(PEER_TYPE_f32)
using Element = float;
using Total = float;
#elif defined(PEER_TYPE_f64)
using Element = double;
using Total = double;
#elif defined(PEER_TYPE_f16)
using Element = __half;
using Total = float;
#elif defined(PEER_TYPE_bf16)
using Element = __nv_bfloat16;
using Total = float;
#elif defined(PEER_TYPE_i8)
using Element = int8_t;
using Total = int64_t;
#elif defined(PEER_TYPE_i16)
using Element = int16_t;
using Total = int64_t;
#elif defined(PEER_TYPE_i32)
using Element = int32_t;
using Total = int64_t;
#elif defined(PEER_TYPE_i64)
using Element = int64_t;
using Total = int64_t;
#elif defined(PEER_TYPE_u8)
using Element = uint8_t;
using Total = uint64_t;
#elif defined(PEER_TYPE_u16)
using Element = uint16_t;
using Total = uint64_t;
#elif defined(PEER_TYPE_u32)
using Element = uint32_t;
using Total = uint64_t;
#elif defined(PEER_TYPE_u64)
using Element = uint64_t;
using Total = uint64_t;
#endif

enum Operator { SUM = 0, MIN = 1, MAX = 2, ARGMIN = 3, ARGMAX = 4 };

struct RowStart {
    int64_t length;
    __host__ __device__ int64_t operator()(int64_t row) const { return row * length; }
};

template <typename Begin>
static int segments(int op, const Element *input, void *out, int64_t count, Begin begin, void *scratch,
                    size_t *scratch_bytes, cudaStream_t stream) {
    auto end = begin + 1;
    switch (op) {
    case SUM:
        return cub::DeviceSegmentedReduce::Reduce(scratch, *scratch_bytes, input, static_cast<Total *>(out), count,
                                                  begin, end, cuda::std::plus<Total>{}, Total{}, stream);
    case MIN:
        return cub::DeviceSegmentedReduce::Min(scratch, *scratch_bytes, input, static_cast<Element *>(out), count,
                                               begin, end, stream);
    case MAX:
        return cub::DeviceSegmentedReduce::Max(scratch, *scratch_bytes, input, static_cast<Element *>(out), count,
                                               begin, end, stream);
    }
    return -1;
}

#if defined(PEER_TYPE_f32)
// The version of CUB: 300600 for 3.6.0.
extern "C" int warpfold_cub_version() { return CUB_VERSION; }
#endif

// Reduces each of `rows` rows of `length` elements, or if `offsets` is not null, each of `rows` segments. Argmin and
// argmax also write indices to `index`. If `scratch` is null, only writes the required size to `scratch_bytes`.
// Returns a cudaError_t, or -1 if CUB does not have this reduction.
extern "C" int PEER_NAME(int op, const void *in, void *out, void *index, int64_t rows, int64_t length,
                         const void *offsets, void *scratch, size_t *scratch_bytes, cudaStream_t stream) {
    auto input = static_cast<const Element *>(in);
    if (offsets) {
        return segments(op, input, out, rows, static_cast<const int64_t *>(offsets), scratch, scratch_bytes, stream);
    }
    if (rows == 1) {
        switch (op) {
        case SUM:
            return cub::DeviceReduce::Reduce(scratch, *scratch_bytes, input, static_cast<Total *>(out), length,
                                             cuda::std::plus<Total>{}, Total{}, stream);
        case MIN:
            return cub::DeviceReduce::Min(scratch, *scratch_bytes, input, static_cast<Element *>(out), length, stream);
        case MAX:
            return cub::DeviceReduce::Max(scratch, *scratch_bytes, input, static_cast<Element *>(out), length, stream);
        case ARGMIN:
            return cub::DeviceReduce::ArgMin(scratch, *scratch_bytes, input, static_cast<Element *>(out),
                                             static_cast<int64_t *>(index), length, stream);
        case ARGMAX:
            return cub::DeviceReduce::ArgMax(scratch, *scratch_bytes, input, static_cast<Element *>(out),
                                             static_cast<int64_t *>(index), length, stream);
        }
        return -1;
    }
    auto begin = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), RowStart{length});
    return segments(op, input, out, rows, begin, scratch, scratch_bytes, stream);
}
