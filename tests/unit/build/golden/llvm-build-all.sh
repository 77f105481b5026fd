#!/bin/sh
# LLVM
set -eu

# build LLVM
(cd /work/llvm/a66376b0dc3b && env NINJA_STATUS='[%f/%t] ' /home/dev/tritonsmith/.venv/bin/ninja -C /work/llvm/a66376b0dc3b -j16)
mkdir -p /work/llvm/a66376b0dc3b/tritonsmith-built
cp /work/llvm/a66376b0dc3b/build.ninja /work/llvm/a66376b0dc3b/tritonsmith-built/build.ninja
mkdir -p /work/llvm/a66376b0dc3b/tritonsmith-built/CMakeFiles
cp /work/llvm/a66376b0dc3b/CMakeFiles/rules.ninja /work/llvm/a66376b0dc3b/tritonsmith-built/CMakeFiles/rules.ninja
