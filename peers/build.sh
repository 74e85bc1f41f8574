#!/usr/bin/env bash
# Builds libwarpfold_cublas.so, and libwarpfold_cub.so: one object for each element type, several at a time, since CUB
# takes long to compile.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p build
arch="${ARCH:-sm_90}"
types="f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64"
echo $types | tr ' ' '\n' | xargs -P "$(nproc)" -I{} \
    nvcc -std=c++17 -O3 -arch="$arch" -Xcompiler -fPIC -DPEER_TYPE_{} -DPEER_NAME=warpfold_cub_{} \
    -c cub.cu -o build/cub_{}.o
nvcc -shared -arch="$arch" -o build/libwarpfold_cub.so build/cub_*.o
nvcc -std=c++17 -O3 -arch="$arch" -Xcompiler -fPIC -shared cublas.cu -o build/libwarpfold_cublas.so -lcublas
