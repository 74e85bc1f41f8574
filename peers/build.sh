#!/usr/bin/env bash
# Builds libwarpfold_cub.so and libwarpfold_cublas.so. CUB takes long to compile, so each element type is a separate
# object, and the objects are compiled in parallel. With CCCL=FOLDER, the headers of CUB are those in FOLDER instead of
# the toolkit's.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p build
arch="${ARCH:-sm_90}"
options="-std=c++17 -O3 -arch=$arch -Xcompiler -fPIC ${CCCL:+-I$CCCL}"
types="f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64"
echo $types | tr ' ' '\n' | xargs -P "$(nproc)" -I{} \
    nvcc $options -DPEER_TYPE_{} -DPEER_NAME=warpfold_cub_{} -c cub.cu -o build/cub_{}.o
nvcc $options -c cub_reproducible.cu -o build/cub_reproducible.o
nvcc -shared -arch="$arch" -o build/libwarpfold_cub.so build/cub_*.o
nvcc $options -shared cublas.cu -o build/libwarpfold_cublas.so -lcublas
