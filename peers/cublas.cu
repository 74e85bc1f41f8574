// The out-of-place transpose, the norm and the dot product of cuBLAS behind a C ABI.

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

// Writes the norm of `length` elements, or their dot product with those of `other` if it is not null, to `out`, which is
// device memory. Types: 0 is f32, 1 f64, 2 f16, 3 bf16. Returns a cublasStatus_t, or -1 for another type.
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
