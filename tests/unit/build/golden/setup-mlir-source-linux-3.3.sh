#!/bin/sh
# LLVM/MLIR from source in /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609
set -eu

# store
rm -rf -- /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609.json

# LLVM sources
# skipped if /home/dev/.local/share/tritonsmith/sources/.llvm-a66376b0dc3b.done is up to date:
git init --quiet /home/dev/.local/share/tritonsmith/sources/llvm-project
git -C /home/dev/.local/share/tritonsmith/sources/llvm-project fetch --depth=1 --filter=blob:none -- https://github.com/llvm/llvm-project a66376b0dc3b2ea8a84fda26faca287980986f78 || git -C /home/dev/.local/share/tritonsmith/sources/llvm-project fetch --depth=1 --filter=blob:none -- https://github.com/triton-lang/llvm-project a66376b0dc3b2ea8a84fda26faca287980986f78
mkdir -p /home/dev/.local/share/tritonsmith/sources
rm -rf -- /home/dev/.local/share/tritonsmith/sources/llvm-a66376b0dc3b
(cd /home/dev/.local/share/tritonsmith/sources && git -C /home/dev/.local/share/tritonsmith/sources/llvm-project worktree add --force --force --detach --no-checkout /home/dev/.local/share/tritonsmith/sources/llvm-a66376b0dc3b a66376b0dc3b2ea8a84fda26faca287980986f78)
(cd /home/dev/.local/share/tritonsmith/sources && git -C /home/dev/.local/share/tritonsmith/sources/llvm-a66376b0dc3b sparse-checkout set cmake llvm mlir third-party)
(cd /home/dev/.local/share/tritonsmith/sources && git -C /home/dev/.local/share/tritonsmith/sources/llvm-a66376b0dc3b checkout --force --detach a66376b0dc3b2ea8a84fda26faca287980986f78)

# configure LLVM
# always:
mkdir -p /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609
# skipped if /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/.tritonsmith-configured is up to date:
rm -rf -- /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/CMakeCache.txt /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/CMakeFiles/3.31.10
mkdir -p /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609
cat > /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/tritonsmith-cache.cmake <<'EOF'
# Written by tritonsmith. To configure by hand, in this folder:
#   /home/dev/tritonsmith/.venv/bin/cmake -C tritonsmith-cache.cmake -G Ninja -S /home/dev/.local/share/tritonsmith/sources/llvm-a66376b0dc3b/llvm -B /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609
set(CMAKE_MAKE_PROGRAM [[/home/dev/tritonsmith/.venv/bin/ninja]] CACHE STRING "" FORCE)
set(CMAKE_BUILD_TYPE [[RelWithDebInfo]] CACHE STRING "" FORCE)
set(CMAKE_EXPORT_COMPILE_COMMANDS [[ON]] CACHE STRING "" FORCE)
set(CMAKE_C_COMPILER [[/usr/lib/llvm-19/bin/clang]] CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER [[/usr/lib/llvm-19/bin/clang++]] CACHE STRING "" FORCE)
set(CMAKE_C_COMPILER_LAUNCHER [[sh;/home/dev/tritonsmith/src/tritonsmith/build/retry_without_header.sh;env;CCACHE_SLOPPINESS=pch_defines,time_macros;/usr/bin/ccache]] CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER_LAUNCHER [[sh;/home/dev/tritonsmith/src/tritonsmith/build/retry_without_header.sh;env;CCACHE_SLOPPINESS=pch_defines,time_macros;/usr/bin/ccache]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_PROJECTS [[mlir]] CACHE STRING "" FORCE)
set(LLVM_TARGETS_TO_BUILD [[Native;NVPTX;AMDGPU]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_ASSERTIONS [[ON]] CACHE STRING "" FORCE)
set(LLVM_OPTIMIZED_TABLEGEN [[OFF]] CACHE STRING "" FORCE)
set(LLVM_PARALLEL_COMPILE_JOBS [[16]] CACHE STRING "" FORCE)
set(LLVM_PARALLEL_LINK_JOBS [[16]] CACHE STRING "" FORCE)
set(LLVM_USE_SPLIT_DWARF [[ON]] CACHE STRING "" FORCE)
set(LLVM_INSTALL_UTILS [[ON]] CACHE STRING "" FORCE)
set(LLVM_BUILD_TESTS [[OFF]] CACHE STRING "" FORCE)
set(LLVM_INCLUDE_BENCHMARKS [[OFF]] CACHE STRING "" FORCE)
set(LLVM_INCLUDE_DOCS [[OFF]] CACHE STRING "" FORCE)
set(LLVM_INCLUDE_EXAMPLES [[OFF]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_LIBXML2 [[OFF]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_TERMINFO [[OFF]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_ZSTD [[OFF]] CACHE STRING "" FORCE)
set(MLIR_ENABLE_BINDINGS_PYTHON [[OFF]] CACHE STRING "" FORCE)
set(BUILD_SHARED_LIBS [[OFF]] CACHE STRING "" FORCE)
set(CMAKE_C_ARCHIVE_CREATE [[<CMAKE_AR> DqcT <TARGET> <LINK_FLAGS> <OBJECTS>]] CACHE STRING "" FORCE)
set(CMAKE_CXX_ARCHIVE_CREATE [[<CMAKE_AR> DqcT <TARGET> <LINK_FLAGS> <OBJECTS>]] CACHE STRING "" FORCE)
set(CMAKE_PROJECT_LLVM_INCLUDE [[/home/dev/tritonsmith/src/tritonsmith/build/llvm/precompiled_headers.cmake]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH [[base;tables;ir;transforms;codegen;aarch64;amdgpu;nvptx;x86;mlir;dialects]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_WITHOUT [[RustDemangle.cpp;Support/TypeID.cpp]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_base_OF [[LLVMSupport]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_base_WAITS [[]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_base_HEADERS [[<algorithm>;<functional>;<map>;<memory>;<optional>;<set>;<string>;<tuple>;<vector>;"llvm/ADT/ArrayRef.h";"llvm/ADT/DenseMap.h";"llvm/ADT/DenseSet.h";"llvm/ADT/STLExtras.h";"llvm/ADT/SmallPtrSet.h";"llvm/ADT/SmallVector.h";"llvm/ADT/StringExtras.h";"llvm/ADT/StringMap.h";"llvm/ADT/StringRef.h";"llvm/ADT/StringSwitch.h";"llvm/ADT/TypeSwitch.h";"llvm/Support/Casting.h";"llvm/Support/CommandLine.h";"llvm/Support/Error.h";"llvm/Support/FormatVariadic.h";"llvm/Support/MemoryBuffer.h";"llvm/Support/raw_ostream.h"]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_base_FOLDERS [[.;../mlir/lib/Support;../mlir/lib/Tools;../mlir/tools/mlir-linalg-ods-gen;../mlir/tools/mlir-pdll;../mlir/tools/mlir-src-sharder;../mlir/tools/tblgen-lsp-server;../mlir/tools/tblgen-to-irdl]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_tables_OF [[LLVMTableGen]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_tables_WAITS [[]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_tables_HEADERS [[<algorithm>;<functional>;<map>;<memory>;<optional>;<set>;<string>;<tuple>;<vector>;"llvm/ADT/ArrayRef.h";"llvm/ADT/DenseMap.h";"llvm/ADT/DenseSet.h";"llvm/ADT/STLExtras.h";"llvm/ADT/SmallPtrSet.h";"llvm/ADT/SmallVector.h";"llvm/ADT/StringExtras.h";"llvm/ADT/StringMap.h";"llvm/ADT/StringRef.h";"llvm/ADT/StringSwitch.h";"llvm/ADT/TypeSwitch.h";"llvm/Support/Casting.h";"llvm/Support/CommandLine.h";"llvm/Support/Error.h";"llvm/Support/FormatVariadic.h";"llvm/Support/MemoryBuffer.h";"llvm/Support/raw_ostream.h";"llvm/TableGen/Error.h";"llvm/TableGen/Record.h";"llvm/TableGen/TableGenBackend.h"]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_tables_FOLDERS [[lib/TableGen;utils/TableGen;../clang/utils/TableGen;../mlir/lib/TableGen;../mlir/tools/mlir-tblgen]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_ir_OF [[LLVMAnalysis]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_ir_WAITS [[]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_ir_HEADERS [["llvm/ADT/FoldingSet.h";"llvm/ADT/SetVector.h";"llvm/ADT/StringExtras.h";"llvm/Analysis/LoopInfo.h";"llvm/IR/Dominators.h";"llvm/IR/IntrinsicInst.h";"llvm/IR/Module.h";"llvm/IR/Operator.h";"llvm/IR/ValueHandle.h";"llvm/InitializePasses.h";"llvm/Support/Endian.h";"llvm/Support/FormatProviders.h";"llvm/Support/MemoryBuffer.h";"llvm/TargetParser/Triple.h"]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_ir_FOLDERS [[lib/Analysis;lib/AsmParser;lib/Bitcode;lib/Frontend;lib/FuzzMutate;lib/IR;lib/IRReader;lib/Linker;lib/ProfileData]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_transforms_OF [[LLVMScalarOpts]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_transforms_WAITS [[]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_transforms_HEADERS [["llvm/ADT/SmallString.h";"llvm/ADT/Statistic.h";"llvm/Analysis/AssumptionCache.h";"llvm/Analysis/DomTreeUpdater.h";"llvm/Analysis/GlobalsModRef.h";"llvm/Analysis/InstructionSimplify.h";"llvm/Analysis/LoopInfo.h";"llvm/Analysis/OptimizationRemarkEmitter.h";"llvm/Analysis/TargetFolder.h";"llvm/Analysis/TargetLibraryInfo.h";"llvm/Analysis/ValueTracking.h";"llvm/IR/InstVisitor.h";"llvm/IR/PatternMatch.h";"llvm/InitializePasses.h";"llvm/Transforms/Utils/BasicBlockUtils.h";"llvm/Transforms/Utils/Local.h";"llvm/Transforms/Utils/LoopUtils.h"]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_transforms_FOLDERS [[lib/LTO;lib/Passes;lib/Transforms]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_codegen_OF [[LLVMSelectionDAG]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_codegen_WAITS [[]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_codegen_HEADERS [["llvm/ADT/PostOrderIterator.h";"llvm/ADT/SmallSet.h";"llvm/ADT/Statistic.h";"llvm/CodeGen/MachineFrameInfo.h";"llvm/CodeGen/TargetInstrInfo.h";"llvm/CodeGen/TargetLowering.h";"llvm/IR/DebugInfoMetadata.h";"llvm/IR/FPEnv.h";"llvm/IR/Module.h";"llvm/IR/ValueHandle.h";"llvm/InitializePasses.h";"llvm/MC/MCContext.h";"llvm/Support/BlockFrequency.h";"llvm/Support/GenericDomTree.h";"llvm/Target/TargetMachine.h"]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_codegen_FOLDERS [[lib/CodeGen;lib/Target]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_aarch64_OF [[LLVMAArch64CodeGen]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_aarch64_WAITS [[]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_aarch64_HEADERS [["llvm/ADT/SmallSet.h";"llvm/ADT/Statistic.h";"llvm/CodeGen/MachineModuleInfo.h";"llvm/IR/DebugInfoMetadata.h";"llvm/IR/FPEnv.h";"llvm/IR/Module.h";"llvm/IR/ValueHandle.h";"llvm/InitializePasses.h";"llvm/MC/MCAsmInfo.h";"llvm/Support/GenericLoopInfo.h";"AArch64.h";"AArch64InstrInfo.h";"AArch64MachineFunctionInfo.h";"AArch64TargetMachine.h";"MCTargetDesc/AArch64AddressingModes.h"]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_aarch64_FOLDERS [[lib/Target/AArch64]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_amdgpu_OF [[LLVMAMDGPUCodeGen]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_amdgpu_WAITS [[]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_amdgpu_HEADERS [["llvm/CodeGen/SlotIndexes.h";"llvm/IR/IRBuilder.h";"llvm/InitializePasses.h";"llvm/MC/MCContext.h";"llvm/Support/GenericDomTree.h";"llvm/Support/KnownBits.h";"AMDGPU.h";"R600RegisterInfo.h";"SIMachineFunctionInfo.h"]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_amdgpu_FOLDERS [[lib/Target/AMDGPU]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_nvptx_OF [[LLVMNVPTXCodeGen]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_nvptx_WAITS [[]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_nvptx_HEADERS [["llvm/Analysis/ValueTracking.h";"llvm/CodeGen/MachineFrameInfo.h";"llvm/IR/Dominators.h";"llvm/IR/IRBuilder.h";"llvm/IR/Module.h";"llvm/MC/MCObjectFileInfo.h";"llvm/Support/FormattedStream.h";"llvm/Support/MD5.h";"llvm/Support/Mutex.h";"MCTargetDesc/NVPTXBaseInfo.h";"NVPTXTargetMachine.h";"NVPTXUtilities.h"]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_nvptx_FOLDERS [[lib/Target/NVPTX]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_x86_OF [[LLVMX86CodeGen]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_x86_WAITS [[]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_x86_HEADERS [["llvm/ADT/SmallSet.h";"llvm/ADT/Statistic.h";"llvm/CodeGen/MachineModuleInfo.h";"llvm/IR/DebugInfoMetadata.h";"llvm/IR/FPEnv.h";"llvm/IR/Module.h";"llvm/IR/ValueHandle.h";"llvm/InitializePasses.h";"llvm/MC/MCAsmInfo.h";"llvm/Support/GenericLoopInfo.h";"X86.h";"X86InstrBuilder.h";"X86MachineFunctionInfo.h";"X86TargetMachine.h"]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_x86_FOLDERS [[lib/Target/X86]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_mlir_OF [[MLIRIR]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_mlir_WAITS [[]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_mlir_HEADERS [["llvm/ADT/SmallString.h";"llvm/Support/Debug.h";"mlir/Pass/Pass.h";"mlir/Rewrite/FrozenRewritePatternSet.h"]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_mlir_FOLDERS [[../mlir/lib;../mlir/test/lib;../mlir/tools]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_dialects_OF [[MLIRFuncDialect]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_dialects_WAITS [[users]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_dialects_HEADERS [["mlir/Conversion/LLVMCommon/TypeConverter.h";"mlir/Dialect/Affine/IR/AffineOps.h";"mlir/Dialect/Bufferization/IR/Bufferization.h";"mlir/Dialect/Func/IR/FuncOps.h";"mlir/Dialect/GPU/IR/GPUDialect.h";"mlir/Dialect/LLVMIR/LLVMDialect.h";"mlir/Dialect/Linalg/Utils/Utils.h";"mlir/Dialect/SCF/Utils/Utils.h";"mlir/Dialect/SPIRV/IR/SPIRVDialect.h";"mlir/Dialect/SPIRV/IR/SPIRVOps.h";"mlir/Dialect/Vector/Transforms/VectorTransforms.h";"mlir/IR/DialectImplementation.h";"mlir/Pass/Pass.h";"mlir/Transforms/DialectConversion.h";"mlir/Transforms/GreedyPatternRewriteDriver.h"]] CACHE STRING "" FORCE)
set(TRITONSMITH_PCH_dialects_FOLDERS [[../mlir/lib/Conversion;../mlir/lib/Dialect;../mlir/lib/ExecutionEngine;../mlir/lib/Target]] CACHE STRING "" FORCE)
set(CMAKE_PROJECT_INCLUDE [[/home/dev/tritonsmith/src/tritonsmith/build/llvm/target_options.cmake]] CACHE STRING "" FORCE)
set(TRITONSMITH_OPTIONS [[whole;rest]] CACHE STRING "" FORCE)
set(TRITONSMITH_TARGETS_whole [[MLIR.*;mlir.*;TableGenLsp.*;tblgen-.*;LLVM(Support|SupportBlake3|Core|TargetParser)]] CACHE STRING "" FORCE)
set(TRITONSMITH_TARGETS_rest [[.*]] CACHE STRING "" FORCE)
set(TRITONSMITH_OPTIONS_rest [[-g1;-gno-split-dwarf]] CACHE STRING "" FORCE)
set(LLVM_USE_LINKER [[lld]] CACHE STRING "" FORCE)
EOF
(cd /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609 && /home/dev/tritonsmith/.venv/bin/cmake -C /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/tritonsmith-cache.cmake -G Ninja -S /home/dev/.local/share/tritonsmith/sources/llvm-a66376b0dc3b/llvm -B /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609)

# Python environment: as in install-triton-linux-3.3.sh

# CUDA headers and tools: as in install-triton-linux-3.3.sh

# what Triton uses of LLVM
# always:
mkdir -p /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure
# skipped if /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure/.tritonsmith-about is up to date:
rm -rf -- /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure/.ninja_deps
# skipped if /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure/.tritonsmith-configured is up to date:
rm -rf -- /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure/CMakeCache.txt /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure/CMakeFiles/3.31.10
mkdir -p /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure
cat > /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure/tritonsmith-cache.cmake <<'EOF'
# Written by tritonsmith. To configure by hand, in this folder:
#   /home/dev/tritonsmith/.venv/bin/cmake -C tritonsmith-cache.cmake -G Ninja -S /home/dev/triton -B /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure
# LLVM: version unknown, commit unknown, RelWithDebInfo, assertions ON, RTTI OFF, shared libLLVM OFF, targets AMDGPU NVPTX Native, configuration 
# compiler: clang++ 19.1.7
set(CMAKE_MAKE_PROGRAM [[/home/dev/tritonsmith/.venv/bin/ninja]] CACHE STRING "" FORCE)
set(CMAKE_BUILD_TYPE [[TritonRelBuildWithAsserts]] CACHE STRING "" FORCE)
set(CMAKE_EXPORT_COMPILE_COMMANDS [[ON]] CACHE STRING "" FORCE)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY [[/home/dev/triton/python/triton/_C]] CACHE STRING "" FORCE)
set(CMAKE_C_COMPILER [[/usr/lib/llvm-19/bin/clang]] CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER [[/usr/lib/llvm-19/bin/clang++]] CACHE STRING "" FORCE)
set(CMAKE_C_COMPILER_LAUNCHER [[env;CCACHE_BASEDIR=/home/dev/.local/share/tritonsmith;CCACHE_NOHASHDIR=1;CCACHE_ABSSTDERR=1;sh;/home/dev/tritonsmith/src/tritonsmith/build/through_link.sh;/home/dev/triton;/home/dev/.local/share/tritonsmith/envs/dev/triton/source;/usr/bin/ccache]] CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER_LAUNCHER [[env;CCACHE_BASEDIR=/home/dev/.local/share/tritonsmith;CCACHE_NOHASHDIR=1;CCACHE_ABSSTDERR=1;sh;/home/dev/tritonsmith/src/tritonsmith/build/through_link.sh;/home/dev/triton;/home/dev/.local/share/tritonsmith/envs/dev/triton/source;/usr/bin/ccache]] CACHE STRING "" FORCE)
set(CMAKE_C_FLAGS [[-Wno-error=deprecated-declarations -gsplit-dwarf -ggnu-pubnames -Xclang -fdebug-compilation-dir=.]] CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS [[-Wno-error=deprecated-declarations -gsplit-dwarf -ggnu-pubnames -Xclang -fdebug-compilation-dir=.]] CACHE STRING "" FORCE)
set(CMAKE_EXE_LINKER_FLAGS [[-fuse-ld=lld -Wl,--gdb-index]] CACHE STRING "" FORCE)
set(CMAKE_MODULE_LINKER_FLAGS [[-fuse-ld=lld -Wl,--gdb-index]] CACHE STRING "" FORCE)
set(CMAKE_SHARED_LINKER_FLAGS [[-fuse-ld=lld -Wl,--gdb-index]] CACHE STRING "" FORCE)
set(LLVM_ENABLE_WERROR [[ON]] CACHE STRING "" FORCE)
set(LLVM_SYSPATH [[/home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609]] CACHE STRING "" FORCE)
set(LLVM_INCLUDE_DIRS [[/home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/include]] CACHE STRING "" FORCE)
set(LLVM_LIBRARY_DIR [[/home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/lib]] CACHE STRING "" FORCE)
set(LLVM_DIR [[/home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/lib/cmake/llvm]] CACHE STRING "" FORCE)
set(MLIR_DIR [[/home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/lib/cmake/mlir]] CACHE STRING "" FORCE)
set(Python3_EXECUTABLE [[/home/dev/.local/share/tritonsmith/envs/dev/venv/bin/python]] CACHE STRING "" FORCE)
set(Python3_INCLUDE_DIR [[/usr/include/python3.11]] CACHE STRING "" FORCE)
set(LLVM_EXTERNAL_LIT [[/home/dev/.local/share/tritonsmith/envs/dev/venv/bin/lit]] CACHE STRING "" FORCE)
set(pybind11_DIR [[/home/dev/.local/share/tritonsmith/envs/dev/venv/lib/python3.11/site-packages/pybind11/share/cmake/pybind11]] CACHE STRING "" FORCE)
set(TRITON_BUILD_PYTHON_MODULE [[ON]] CACHE STRING "" FORCE)
set(TRITON_BUILD_TUTORIALS [[OFF]] CACHE STRING "" FORCE)
set(TRITON_BUILD_PROTON [[OFF]] CACHE STRING "" FORCE)
set(TRITON_BUILD_UT [[OFF]] CACHE STRING "" FORCE)
set(TRITON_BUILD_WITH_CCACHE [[ON]] CACHE STRING "" FORCE)
set(TRITON_CODEGEN_BACKENDS [[nvidia;amd]] CACHE STRING "" FORCE)
set(TRITON_PARALLEL_LINK_JOBS [[16]] CACHE STRING "" FORCE)
EOF
(cd /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure && /home/dev/tritonsmith/.venv/bin/cmake -C /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure/tritonsmith-cache.cmake -G Ninja -S /home/dev/triton -B /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure)

# build LLVM
# always:
/home/dev/tritonsmith/.venv/bin/ninja -C /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure build.ninja
set -- $(/home/dev/tritonsmith/.venv/bin/ninja -C /home/dev/.local/share/tritonsmith/envs/dev/llvm-closure -t inputs -E all | sed -n 's|^/home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/||p')
for name in FileCheck opt; do
  ! /home/dev/tritonsmith/.venv/bin/ninja -C /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609 -t query "bin/$name" > /dev/null 2>&1 || set -- "$@" "bin/$name"
done
/home/dev/tritonsmith/.venv/bin/ninja -C /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609 -j16 "$@"
mkdir -p /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/tritonsmith-built
cp /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/build.ninja /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/tritonsmith-built/build.ninja
mkdir -p /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/tritonsmith-built/CMakeFiles
cp /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/CMakeFiles/rules.ninja /home/dev/.local/share/tritonsmith/llvm/a66376b0dc3b-RelWithDebInfo-asserts-bc76f609/tritonsmith-built/CMakeFiles/rules.ninja
