#!/bin/sh
# LLVM
set -eu

# build LLVM
(cd /work/llvm/a66376b0dc3b && env NINJA_STATUS='[%f/%t] ' /home/dev/tritonsmith/.venv/bin/ninja -C /work/llvm/a66376b0dc3b -j16 FileCheck)

# what Triton uses of LLVM: as in llvm-build-closure.sh

# build LLVM: as in llvm-build-closure.sh
