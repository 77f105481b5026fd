#!/bin/sh
# LLVM
set -eu

# what Triton uses of LLVM: as in llvm-build-closure.sh

# build LLVM
/home/dev/tritonsmith/.venv/bin/ninja -C /work/envs/dev/llvm-closure build.ninja
set -- $(/home/dev/tritonsmith/.venv/bin/ninja -C /work/envs/dev/llvm-closure -t inputs -E triton | sed -n 's|^/work/llvm/a66376b0dc3b/||p')
/home/dev/tritonsmith/.venv/bin/ninja -C /work/llvm/a66376b0dc3b -j16 "$@"
mkdir -p /work/llvm/a66376b0dc3b/tritonsmith-built
cp /work/llvm/a66376b0dc3b/build.ninja /work/llvm/a66376b0dc3b/tritonsmith-built/build.ninja
mkdir -p /work/llvm/a66376b0dc3b/tritonsmith-built/CMakeFiles
cp /work/llvm/a66376b0dc3b/CMakeFiles/rules.ninja /work/llvm/a66376b0dc3b/tritonsmith-built/CMakeFiles/rules.ninja
