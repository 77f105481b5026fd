# Run by `cmake -P`: has CMake itself read LLVM's CMakeLists.txt, from `lib` down to one library's folder, and
# prints what they say of libraries, include folders and tables. Nothing is configured.
#
# The commands that make libraries are replaced by ones that print their arguments; `if`, `foreach`, `list` and
# the other commands of the language are CMake's own.
#
# In: SMITH_PREFIX (the LLVM, whose options the conditions in the files ask for), SMITH_PROJECT (folder
# of llvm-project), SMITH_ROOT (.../llvm/lib), SMITH_FOLDER (below it, `Target/NVPTX`), SMITH_BINARY (where
# generated headers will lie), SMITH_RECORD and SMITH_IGNORE (names of commands).

cmake_minimum_required(VERSION 3.20)

set(LLVM_MAIN_SRC_DIR "${SMITH_PROJECT}/llvm")
set(LLVM_MAIN_INCLUDE_DIR "${SMITH_PROJECT}/llvm/include")
set(MLIR_MAIN_SRC_DIR "${SMITH_PROJECT}/mlir")
set(MLIR_MAIN_INCLUDE_DIR "${SMITH_PROJECT}/mlir/include")
set(CMAKE_SYSTEM_NAME "${CMAKE_HOST_SYSTEM_NAME}")
set(CMAKE_SIZEOF_VOID_P 8)

file(STRINGS "${SMITH_PREFIX}/lib/cmake/llvm/LLVMConfig.cmake" lines REGEX "^ *set\\(LLVM_[A-Z_0-9]+ ")
file(STRINGS "${SMITH_PREFIX}/lib/cmake/mlir/MLIRConfig.cmake" more REGEX "^ *set\\(MLIR_ENABLE_[A-Z_0-9]+ ")
foreach(line IN LISTS lines more)
  cmake_language(EVAL CODE "${line}")
endforeach()
foreach(folder IN ITEMS include tools/mlir/include)  # installed, and in a build folder
  if(EXISTS "${SMITH_PREFIX}/${folder}/mlir/Config/mlir-config.h")
    file(STRINGS "${SMITH_PREFIX}/${folder}/mlir/Config/mlir-config.h" lines REGEX "^#define MLIR_[A-Z_]+ [01]$")
    foreach(line IN LISTS lines)
      string(REGEX MATCH "(MLIR_[A-Z_]+) ([01])" line "${line}")
      set(${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
    endforeach()
  endif()
endforeach()
set(LLVM_BINARY_DIR "${SMITH_BINARY}")

function(smith_print kind)
  string(REPLACE ";" "\t" fields "${ARGN}")
  message(STATUS "smith\t${kind}\t${SMITH_HERE}\t${fields}")
endfunction()

foreach(name IN LISTS SMITH_IGNORE)
  cmake_language(EVAL CODE "macro(${name})\nendmacro()")
endforeach()
foreach(name IN LISTS SMITH_RECORD)
  cmake_language(EVAL CODE "function(${name})\nsmith_print(${name} \"\${CMAKE_CXX_VISIBILITY_PRESET}\" \${ARGV})\nendfunction()")
endforeach()

# Definitions and flags of tables are those of the moment of the call.
function(tablegen project output)
  smith_print(tablegen "${project}" "${output}" "${LLVM_TARGET_DEFINITIONS}" ${LLVM_TABLEGEN_FLAGS} ${ARGN})
endfunction()
function(mlir_tablegen output)
  smith_print(tablegen MLIR "${output}" "${LLVM_TARGET_DEFINITIONS}" ${LLVM_TABLEGEN_FLAGS} ${ARGN})
endfunction()

function(include)  # of modules: what they define is ignored or recorded by name
endfunction()
macro(get_property)
endmacro()
macro(set_property)
endmacro()

# Of the subfolders, only those on the way to the library; as with CMake's own, in a scope of their own.
function(add_subdirectory name)
  set(outside "${SMITH_HERE}")
  set(SMITH_HERE "${SMITH_HERE}/${name}")
  string(FIND "${SMITH_ROOT}/${SMITH_FOLDER}/" "${SMITH_HERE}/" at)
  if(at EQUAL 0)
    smith_read()
    set(CMAKE_CURRENT_SOURCE_DIR "${outside}" PARENT_SCOPE)  # at the end of `include`, CMake forgets it
  endif()
endfunction()

macro(smith_read)
  set(CMAKE_CURRENT_SOURCE_DIR "${SMITH_HERE}")
  string(REPLACE "${SMITH_ROOT}" "${SMITH_BINARY}" CMAKE_CURRENT_BINARY_DIR "${SMITH_HERE}")
  _set_property(GLOBAL PROPERTY SMITH_REACHED "${SMITH_HERE}")
  _include("${SMITH_HERE}/CMakeLists.txt")
endmacro()

set(SMITH_HERE "${SMITH_ROOT}")
smith_read()

# Some folders are added further up (Support), or by an option that LLVM's package does not tell: go on by hand.
string(REPLACE "/" ";" parts "${SMITH_FOLDER}")
foreach(part IN LISTS parts)
  _get_property(reached GLOBAL PROPERTY SMITH_REACHED)
  string(FIND "${reached}/" "${SMITH_HERE}/${part}/" at)
  if(NOT at EQUAL 0)
    add_subdirectory("${part}")
  endif()
  set(SMITH_HERE "${SMITH_HERE}/${part}")
endforeach()
