#!/usr/bin/env bash
# Builds the peers' libraries: libwarpfold_cub.so, libwarpfold_cublas.so and libwarpfold_cutensor.so. CUB takes long to
# compile, so each element type is a separate object, and the objects are compiled in parallel.
#   ARCH=sm_90        the GPU's architecture
#   CCCL=FOLDER       the headers of CUB in FOLDER instead of the toolkit's
#   CUTENSOR=FOLDER   cuTENSOR in FOLDER, which has include/ and lib/, as in the package cutensor-cu13 of PyPI; without
#                     it, the compiler's folders are searched
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p build
arch="${ARCH:-sm_90}"
options=(-std=c++17 -O3 -arch="$arch" -Xcompiler -fPIC ${CCCL:+-I"$CCCL"})
types="f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64"

cutensor=()
if [ -n "${CUTENSOR:-}" ]; then
    lib=$(realpath "$CUTENSOR/lib")
    cutensor=(-I"$CUTENSOR/include" -L"$lib" -Xlinker -rpath,"$lib")
fi
if echo '#include <cutensor.h>' | nvcc "${cutensor[@]}" -x cu -E - >/dev/null 2>&1; then
    nvcc "${options[@]}" "${cutensor[@]}" -shared cutensor.cu -o build/libwarpfold_cutensor.so -l:libcutensor.so.2
else
    rm -f build/libwarpfold_cutensor.so
    echo "without cuTENSOR: there is no cutensor.h; CUTENSOR=FOLDER names the folder that has it in include/" >&2
fi
nvcc "${options[@]}" -shared cublas.cu -o build/libwarpfold_cublas.so -lcublas
echo "$types" | tr ' ' '\n' | xargs -P "$(nproc)" -I{} \
    nvcc "${options[@]}" -DPEER_TYPE_{} -DPEER_NAME=warpfold_cub_{} -c cub.cu -o build/cub_{}.o
nvcc "${options[@]}" -c cub_reproducible.cu -o build/cub_reproducible.o
nvcc -shared -arch="$arch" -o build/libwarpfold_cub.so build/cub_*.o
