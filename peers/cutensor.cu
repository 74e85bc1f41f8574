// cuTENSOR's permutations and reductions behind a C ABI. A plan is made once, and then called many times.

#include <cstdint>
#include <vector>

#include <cuda_runtime.h>
#include <cutensor.h>

static constexpr int unsupported = -1;

// All tensors begin where an allocation does. With an `alignmentRequirement` of 4, for an input that begins one f32
// past it, cuTENSOR 2.8.1 faulted on an H200 (the maximum of 2^20 f32).
static constexpr uint32_t alignment = 256;

static int missing(int status) { return status == CUTENSOR_STATUS_NOT_SUPPORTED ? unsupported : status; }

static cutensorHandle_t handle() {
    static cutensorHandle_t made = [] {
        cutensorHandle_t made = nullptr;
        cutensorCreate(&made);
        return made;
    }();
    return made;
}

// A plan, and the factor of its results in the type that cuTENSOR takes it in.
struct Plan {
    cutensorPlan_t plan = nullptr;
    uint64_t workspace_bytes = 0;
    double factor[2] = {1, 0};
};

static void write_factor(double (&to)[2], cudaDataType_t type, double factor) {
    if (type == CUDA_R_32F) {
        *reinterpret_cast<float *>(to) = static_cast<float>(factor);
    } else {
        // A double, or a complex number of two.
        to[0] = factor;
        to[1] = 0;
    }
}

// A packed row-major tensor: the strides, in elements, of its axes.
static std::vector<int64_t> strides(const std::vector<int64_t> &extents) {
    std::vector<int64_t> strides(extents.size());
    int64_t stride = 1;
    for (size_t axis = extents.size(); axis-- > 0; stride *= extents[axis]) {
        strides[axis] = stride;
    }
    return strides;
}

// The input's tensor and the output's, and the names of their modes: an axis is named by its number in the input.
struct Tensors {
    cutensorTensorDescriptor_t in = nullptr, out = nullptr;
    std::vector<int32_t> in_modes, out_modes;
    int status = CUTENSOR_STATUS_SUCCESS;

    Tensors(const int64_t *extents, int rank, const int *out_axes, int out_rank, cudaDataType_t type) {
        std::vector<int64_t> in_extents(extents, extents + rank), out_extents;
        for (int axis = 0; axis < rank; ++axis) {
            in_modes.push_back(axis);
        }
        for (int i = 0; i < out_rank; ++i) {
            out_modes.push_back(out_axes[i]);
            out_extents.push_back(extents[out_axes[i]]);
        }
        status = cutensorCreateTensorDescriptor(handle(), &in, rank, in_extents.data(), strides(in_extents).data(),
                                                type, alignment);
        if (status == CUTENSOR_STATUS_SUCCESS) {
            status = cutensorCreateTensorDescriptor(handle(), &out, out_rank, out_extents.data(),
                                                    strides(out_extents).data(), type, alignment);
        }
    }

    ~Tensors() {
        if (in) cutensorDestroyTensorDescriptor(in);
        if (out) cutensorDestroyTensorDescriptor(out);
    }
};

// Makes a plan for an operation, which it destroys. The preferences are cuTENSOR's own: kernels compiled just in time,
// the patient search and the next best kernels took the same time on an H200, for all shapes tried.
static int make_plan(cutensorOperationDescriptor_t operation, double factor, Plan **made) {
    cudaDataType_t scalar = CUDA_R_32F;
    int status = cutensorOperationDescriptorGetAttribute(handle(), operation, CUTENSOR_OPERATION_DESCRIPTOR_SCALAR_TYPE,
                                                         &scalar, sizeof scalar);
    cutensorPlanPreference_t preference = nullptr;
    if (status == CUTENSOR_STATUS_SUCCESS) {
        status = cutensorCreatePlanPreference(handle(), &preference, CUTENSOR_ALGO_DEFAULT, CUTENSOR_JIT_MODE_NONE);
    }
    auto plan = new Plan;
    write_factor(plan->factor, scalar, factor);
    uint64_t most = 0;
    if (status == CUTENSOR_STATUS_SUCCESS) {
        status = cutensorEstimateWorkspaceSize(handle(), operation, preference, CUTENSOR_WORKSPACE_MAX, &most);
    }
    if (status == CUTENSOR_STATUS_SUCCESS) {
        status = cutensorCreatePlan(handle(), &plan->plan, operation, preference, most);
    }
    if (status == CUTENSOR_STATUS_SUCCESS) {
        status = cutensorPlanGetAttribute(handle(), plan->plan, CUTENSOR_PLAN_REQUIRED_WORKSPACE,
                                          &plan->workspace_bytes, sizeof plan->workspace_bytes);
    }
    if (preference) cutensorDestroyPlanPreference(preference);
    cutensorDestroyOperationDescriptor(operation);
    if (status != CUTENSOR_STATUS_SUCCESS) {
        if (plan->plan) cutensorDestroyPlan(plan->plan);
        delete plan;
        return missing(status);
    }
    *made = plan;
    return CUTENSOR_STATUS_SUCCESS;
}

// The version of cuTENSOR: 20801 for 2.8.1.
extern "C" int warpfold_cutensor_version() { return static_cast<int>(cutensorGetVersion()); }

// Makes a plan of a permutation: the output's axis `i` is the input's axis `axes[i]`, and each element is multiplied by
// `factor`. Elements of `size` bytes are f16, f32, f64 or complex f64. Returns a cutensorStatus_t, or -1 if cuTENSOR
// does not have this permutation.
extern "C" int warpfold_cutensor_permutation(int size, double factor, const int64_t *extents, const int *axes, int rank,
                                             Plan **plan) {
    cudaDataType_t type;
    cutensorComputeDescriptor_t compute;
    switch (size) {
    case 2:
        type = CUDA_R_16F, compute = CUTENSOR_COMPUTE_DESC_32F;
        break;
    case 4:
        type = CUDA_R_32F, compute = CUTENSOR_COMPUTE_DESC_32F;
        break;
    case 8:
        type = CUDA_R_64F, compute = CUTENSOR_COMPUTE_DESC_64F;
        break;
    case 16:
        type = CUDA_C_64F, compute = CUTENSOR_COMPUTE_DESC_64F;
        break;
    default:
        return unsupported;
    }
    if (!handle()) {
        return CUTENSOR_STATUS_NOT_INITIALIZED;
    }
    Tensors tensors(extents, rank, axes, rank, type);
    if (tensors.status != CUTENSOR_STATUS_SUCCESS) {
        return missing(tensors.status);
    }
    cutensorOperationDescriptor_t operation = nullptr;
    int status = cutensorCreatePermutation(handle(), &operation, tensors.in, tensors.in_modes.data(),
                                           CUTENSOR_OP_IDENTITY, tensors.out, tensors.out_modes.data(), compute);
    return status == CUTENSOR_STATUS_SUCCESS ? make_plan(operation, factor, plan) : missing(status);
}

// Starts a permutation.
extern "C" int warpfold_cutensor_permute(const Plan *plan, const void *in, void *out, cudaStream_t stream) {
    return cutensorPermute(handle(), plan->plan, plan->factor, in, out, stream);
}

// Makes a plan of a reduction: all axes but the `kept_rank` axes `kept` are reduced, and each result is multiplied by
// `factor`. Operators: 0 is the sum, 1 the minimum, 2 the maximum, 3 the product. Types, of the elements and of the
// results: 0 is f32, 1 f64, 2 f16, 3 bf16. Writes the size of the memory that each call needs to `workspace_bytes`.
// Returns a cutensorStatus_t, or -1 if cuTENSOR does not have this reduction.
extern "C" int warpfold_cutensor_reduction(int op, int type, double factor, const int64_t *extents, int rank,
                                           const int *kept, int kept_rank, Plan **plan, uint64_t *workspace_bytes) {
    static const cutensorOperator_t operators[] = {CUTENSOR_OP_ADD, CUTENSOR_OP_MIN, CUTENSOR_OP_MAX, CUTENSOR_OP_MUL};
    static const cudaDataType_t types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF};
    if (op < 0 || op > 3 || type < 0 || type > 3) {
        return unsupported;
    }
    if (!handle()) {
        return CUTENSOR_STATUS_NOT_INITIALIZED;
    }
    Tensors tensors(extents, rank, kept, kept_rank, types[type]);
    if (tensors.status != CUTENSOR_STATUS_SUCCESS) {
        return missing(tensors.status);
    }
    cutensorOperationDescriptor_t operation = nullptr;
    // The result is also an input, times 0, so that it is not read.
    int status = cutensorCreateReduction(handle(), &operation, tensors.in, tensors.in_modes.data(),
                                         CUTENSOR_OP_IDENTITY, tensors.out, tensors.out_modes.data(),
                                         CUTENSOR_OP_IDENTITY, tensors.out, tensors.out_modes.data(), operators[op],
                                         type == 1 ? CUTENSOR_COMPUTE_DESC_64F : CUTENSOR_COMPUTE_DESC_32F);
    status = status == CUTENSOR_STATUS_SUCCESS ? make_plan(operation, factor, plan) : missing(status);
    if (status == CUTENSOR_STATUS_SUCCESS) {
        *workspace_bytes = (*plan)->workspace_bytes;
    }
    return status;
}

// Starts a reduction.
extern "C" int warpfold_cutensor_reduce(const Plan *plan, const void *in, void *out, void *workspace,
                                        cudaStream_t stream) {
    static const double zero[2] = {0, 0};
    return cutensorReduce(handle(), plan->plan, plan->factor, in, zero, out, out, workspace, plan->workspace_bytes,
                          stream);
}

// Frees a plan.
extern "C" void warpfold_cutensor_free(Plan *plan) {
    cutensorDestroyPlan(plan->plan);
    delete plan;
}
