// cuBLAS behind a C ABI: the out-of-place transpose, the norm, the dot product, and the product with a vector of ones.

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

// Writes the norm of `length` elements, or if `other` is not null, their dot product with its elements, to `out`, which
// is device memory. Types: 0 is f32, 1 f64, 2 f16, 3 bf16. Returns a cublasStatus_t, or -1 for another type.
extern "C" int warpfold_cublas_reduce(int type, const void *in, const void *other, void *out, int64_t length,
                                      cudaStream_t stream) {
    static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF};
    if (type < 0 || type > 3) {
        return -1;
    }
    cublasHandle_t cublas = handle();
    if (!cublas) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    cublasSetStream(cublas, stream);
    cublasSetPointerMode(cublas, CUBLAS_POINTER_MODE_DEVICE);
    cudaDataType element = types[type];
    cudaDataType compute = type == 1 ? CUDA_R_64F : CUDA_R_32F;
    int status = other ? cublasDotEx_64(cublas, length, in, element, 1, other, element, 1, out, element, compute)
                       : cublasNrm2Ex_64(cublas, length, in, element, 1, out, element, compute);
    cublasSetPointerMode(cublas, CUBLAS_POINTER_MODE_HOST);
    return status;
}

// Writes the sum of each row of a row-major matrix, or if `of_columns` is not 0 of each column, to `out`: the product
// with a vector of ones, which has one for each element of a sum. Types: 0 is f32, 1 f64. Returns a cublasStatus_t, or
// -1 for another type.
extern "C" int warpfold_cublas_sums(int type, int of_columns, const void *in, const void *ones, void *out, int64_t rows,
                                    int64_t columns, cudaStream_t stream) {
    cublasHandle_t cublas = handle();
    if (!cublas) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    cublasSetStream(cublas, stream);
    // cuBLAS is column-major, so for it the input is a matrix of `columns` x `rows`.
    auto gemv = [&](auto function, auto one, auto zero) -> int {
        using Element = decltype(one);
        return function(cublas, of_columns ? CUBLAS_OP_N : CUBLAS_OP_T, columns, rows, &one,
                        static_cast<const Element *>(in), columns, static_cast<const Element *>(ones), 1, &zero,
                        static_cast<Element *>(out), 1);
    };
    switch (type) {
    case 0:
        return gemv(cublasSgemv_64, 1.0f, 0.0f);
    case 1:
        return gemv(cublasDgemv_64, 1.0, 0.0);
    }
    return -1;
}
