// CUB's reductions behind a C ABI, for one element type. The macros PEER_TYPE_... and PEER_NAME select it.

#include <climits>
#include <cstddef>
#include <cstdint>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/version.cuh>
#include <cuda/std/cmath>
#include <cuda/std/functional>
#include <cuda/std/utility>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>

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

// The overloads of `DeviceSegmentedReduce` with a segment size are in CUB 3.2 and later, and take it as an `int`.
#define HAS_SEGMENT_SIZE (CUB_VERSION >= 300200)

// The last four are only for floats.
enum Operator { SUM = 0, MIN = 1, MAX = 2, ARGMIN = 3, ARGMAX = 4, PRODUCT = 5, SQUARES = 6, MEAN = 7, NORM = 8 };

static constexpr bool is_float = cuda::std::is_floating_point_v<Total>;

static constexpr int unsupported = -1;

struct RowStart {
    int64_t length;
    __host__ __device__ int64_t operator()(int64_t row) const { return row * length; }
};

struct Square {
    __host__ __device__ Total operator()(Element element) const {
        Total wide = static_cast<Total>(element);
        return wide * wide;
    }
};

struct Root {
    __host__ __device__ Total operator()(Total squares) const { return cuda::std::sqrt(squares); }
};

struct Times {
    Total factor;
    __host__ __device__ Total operator()(Total total) const { return total * factor; }
};

// The scratch memory and the stream of a call. Without memory, the call only writes the size that it needs.
struct Call {
    void *scratch;
    size_t &bytes;
    cudaStream_t stream;
};

// Reduces the whole input.
static int whole(int op, const Element *in, void *out, void *index, int64_t length, Call call) {
    auto [scratch, bytes, stream] = call;
    auto total = static_cast<Total *>(out);
    auto element = static_cast<Element *>(out);
    auto place = static_cast<int64_t *>(index);
    cuda::std::plus<Total> plus;
    switch (op) {
    case SUM:
        return cub::DeviceReduce::Reduce(scratch, bytes, in, total, length, plus, Total{}, stream);
    case MIN:
        return cub::DeviceReduce::Min(scratch, bytes, in, element, length, stream);
    case MAX:
        return cub::DeviceReduce::Max(scratch, bytes, in, element, length, stream);
    case ARGMIN:
        return cub::DeviceReduce::ArgMin(scratch, bytes, in, element, place, length, stream);
    case ARGMAX:
        return cub::DeviceReduce::ArgMax(scratch, bytes, in, element, place, length, stream);
    }
    if constexpr (is_float) {
        auto mean = thrust::make_transform_output_iterator(total, Times{Total(1) / Total(length)});
        auto norm = thrust::make_transform_output_iterator(total, Root{});
        cuda::std::multiplies<Total> multiply;
        switch (op) {
        case PRODUCT:
            return cub::DeviceReduce::Reduce(scratch, bytes, in, total, length, multiply, Total{1}, stream);
        case SQUARES:
            return cub::DeviceReduce::TransformReduce(scratch, bytes, in, total, length, plus, Square{}, Total{},
                                                      stream);
        case MEAN:
            return cub::DeviceReduce::Reduce(scratch, bytes, in, mean, length, plus, Total{}, stream);
        case NORM:
            return cub::DeviceReduce::TransformReduce(scratch, bytes, in, norm, length, plus, Square{}, Total{},
                                                      stream);
        }
    }
    return unsupported;
}

// Reduces segments by the offsets of their first elements.
template <typename Begin>
static int by_offsets(int op, const Element *in, void *out, int64_t count, Begin begin, Call call) {
    auto [scratch, bytes, stream] = call;
    auto total = static_cast<Total *>(out);
    auto element = static_cast<Element *>(out);
    auto end = begin + 1;
    switch (op) {
    case SUM:
        return cub::DeviceSegmentedReduce::Reduce(scratch, bytes, in, total, count, begin, end,
                                                  cuda::std::plus<Total>{}, Total{}, stream);
    case MIN:
        return cub::DeviceSegmentedReduce::Min(scratch, bytes, in, element, count, begin, end, stream);
    case MAX:
        return cub::DeviceSegmentedReduce::Max(scratch, bytes, in, element, count, begin, end, stream);
    }
    return unsupported;
}

#if HAS_SEGMENT_SIZE
// Reduces segments of one size. `out` has a pair of an `int` and an element for each argmin and argmax.
static int by_size(int op, const Element *in, void *out, int64_t count, int size, Call call) {
    auto [scratch, bytes, stream] = call;
    auto total = static_cast<Total *>(out);
    auto element = static_cast<Element *>(out);
    auto pair = static_cast<cuda::std::pair<int, Element> *>(out);
    cuda::std::plus<Total> plus;
    switch (op) {
    case SUM:
        return cub::DeviceSegmentedReduce::Reduce(scratch, bytes, in, total, count, size, plus, Total{}, stream);
    case MIN:
        return cub::DeviceSegmentedReduce::Min(scratch, bytes, in, element, count, size, stream);
    case MAX:
        return cub::DeviceSegmentedReduce::Max(scratch, bytes, in, element, count, size, stream);
    case ARGMIN:
        return cub::DeviceSegmentedReduce::ArgMin(scratch, bytes, in, pair, count, size, stream);
    case ARGMAX:
        return cub::DeviceSegmentedReduce::ArgMax(scratch, bytes, in, pair, count, size, stream);
    }
    if constexpr (is_float) {
        auto squares = thrust::make_transform_iterator(in, Square{});
        auto mean = thrust::make_transform_output_iterator(total, Times{Total(1) / Total(size)});
        auto norm = thrust::make_transform_output_iterator(total, Root{});
        cuda::std::multiplies<Total> multiply;
        switch (op) {
        case PRODUCT:
            return cub::DeviceSegmentedReduce::Reduce(scratch, bytes, in, total, count, size, multiply, Total{1},
                                                      stream);
        case SQUARES:
            return cub::DeviceSegmentedReduce::Reduce(scratch, bytes, squares, total, count, size, plus, Total{},
                                                      stream);
        case MEAN:
            return cub::DeviceSegmentedReduce::Reduce(scratch, bytes, in, mean, count, size, plus, Total{}, stream);
        case NORM:
            return cub::DeviceSegmentedReduce::Reduce(scratch, bytes, squares, norm, count, size, plus, Total{},
                                                      stream);
        }
    }
    return unsupported;
}
#endif

static bool has_size(int64_t length) { return HAS_SEGMENT_SIZE && length <= INT_MAX; }

#if defined(PEER_TYPE_f32)
// The version of CUB: 300600 for 3.6.0.
extern "C" int warpfold_cub_version() { return CUB_VERSION; }

// Whether rows of `length` elements are reduced by their size; otherwise it is by offsets.
extern "C" int warpfold_cub_by_segment_size(int64_t length) { return has_size(length); }
#endif

// Reduces each of `rows` rows of `length` elements, or if `offsets` is not null, each of `rows` segments. `out` has 16
// bytes for each result. Argmin and argmax of one row write the element there, and its place to `index`; those of
// several rows write a pair of the place and the element. If `scratch` is null, only writes the required size to
// `scratch_bytes`. Returns a cudaError_t, or -1 if CUB does not have this reduction.
extern "C" int PEER_NAME(int op, const void *in, void *out, void *index, int64_t rows, int64_t length,
                         const void *offsets, void *scratch, size_t *scratch_bytes, cudaStream_t stream) {
    auto input = static_cast<const Element *>(in);
    Call call{scratch, *scratch_bytes, stream};
    if (offsets) {
        return by_offsets(op, input, out, rows, static_cast<const int64_t *>(offsets), call);
    }
    if (rows == 1) {
        return whole(op, input, out, index, length, call);
    }
#if HAS_SEGMENT_SIZE
    if (has_size(length)) {
        return by_size(op, input, out, rows, static_cast<int>(length), call);
    }
#endif
    auto begin = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), RowStart{length});
    return by_offsets(op, input, out, rows, begin, call);
}
