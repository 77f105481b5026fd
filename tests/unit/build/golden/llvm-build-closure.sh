#!/bin/sh
# LLVM
set -eu

# what Triton uses of LLVM
mkdir -p /work/envs/dev/llvm-closure

# build LLVM
/home/dev/tritonsmith/.venv/bin/ninja -C /work/envs/dev/llvm-closure build.ninja
set -- $(/home/dev/tritonsmith/.venv/bin/ninja -C /work/envs/dev/llvm-closure -t inputs -E all | sed -n 's|^/work/llvm/a66376b0dc3b/||p')
for name in FileCheck opt; do
  ! /home/dev/tritonsmith/.venv/bin/ninja -C /work/llvm/a66376b0dc3b -t query "bin/$name" > /dev/null 2>&1 || set -- "$@" "bin/$name"
done
/home/dev/tritonsmith/.venv/bin/ninja -C /work/llvm/a66376b0dc3b -j16 "$@"
mkdir -p /work/llvm/a66376b0dc3b/tritonsmith-built
cp /work/llvm/a66376b0dc3b/build.ninja /work/llvm/a66376b0dc3b/tritonsmith-built/build.ninja
mkdir -p /work/llvm/a66376b0dc3b/tritonsmith-built/CMakeFiles
cp /work/llvm/a66376b0dc3b/CMakeFiles/rules.ninja /work/llvm/a66376b0dc3b/tritonsmith-built/CMakeFiles/rules.ninja
