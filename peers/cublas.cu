// The out-of-place transpose of cuBLAS behind a C ABI.

#include <cstdint>

#include <cublas_v2.h>
#include <cuComplex.h>

static cublasHandle_t handle() {
    static cublasHandle_t made = [] {
        cublasHandle_t made = nullptr;
        cublasCreate(&made);
        return made;
    }();
    return made;
}

// Writes `factor` times the transpose of a row-major matrix of `rows` x `columns` elements of `size` bytes to `out`.
// Returns a cublasStatus_t, or -1 if cuBLAS has no type of this size.
extern "C" int warpfold_cublas_transpose(int size, double factor, const void *in, void *out, int64_t rows,
                                         int64_t columns, cudaStream_t stream) {
    cublasHandle_t cublas = handle();
    if (!cublas) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    cublasSetStream(cublas, stream);
    // cuBLAS is column-major, so for it the input is a matrix of `columns` x `rows`.
    auto geam = [&](auto function, auto scale, auto zero) -> int {
        using Element = decltype(scale);
        auto output = static_cast<Element *>(out);
        return function(cublas, CUBLAS_OP_T, CUBLAS_OP_N, rows, columns, &scale, static_cast<const Element *>(in),
                        columns, &zero, output, rows, output, rows);
    };
    switch (size) {
    case 4:
        return geam(cublasSgeam_64, static_cast<float>(factor), 0.0f);
    case 8:
        return geam(cublasDgeam_64, factor, 0.0);
    case 16:
        return geam(cublasZgeam_64, make_cuDoubleComplex(factor, 0), make_cuDoubleComplex(0, 0));
    }
    return -1;
}
