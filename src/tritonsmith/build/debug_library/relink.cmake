# Included after Triton's project() where an environment has debug libraries; TRITONSMITH_DEBUG_LIBRARIES is the
# file that `debug-library` writes, which names them. Ninja runs CMake again when that changes.
#
# At the end of the configuration, when all of LLVM's packages have been read, the archives of the debug libraries
# take the places of LLVM's own, so that only links are done again. What else must be done follows from the LLVM
# at hand: the file may be older than that, and of another LLVM.

# tritonsmith_debug_library(LLVM_DIR NAME ARCHIVE [OBJECT...]): a line of that file. The objects, if only they are
# in debug, come first in each link too, so that their copies of inline functions and templates are the ones taken;
# first.a beside the archive holds them.
function(tritonsmith_debug_library llvm name archive)
  cmake_path(COMPARE "${llvm}" EQUAL "${LLVM_DIR}" same)
  if(NOT same)
    message(WARNING "tritonsmith: ${name} in debug is of ${llvm}, this is ${LLVM_DIR}: left out")
    return()
  elseif(NOT TARGET ${name})
    message(WARNING "tritonsmith: LLVM's CMake package has no library ${name}")
    return()
  elseif(NOT EXISTS "${archive}")
    message(FATAL_ERROR "tritonsmith: ${archive} is gone; run `invoke debug-library ${name}` again")
  endif()
  tritonsmith_configurations(${name} configurations)
  foreach(configuration IN LISTS configurations)
    set_target_properties(${name} PROPERTIES IMPORTED_LOCATION_${configuration} "${archive}")
  endforeach()
  cmake_path(GET archive PARENT_PATH folder)
  if(ARGN AND APPLE)
    set_property(TARGET ${name} APPEND PROPERTY INTERFACE_LINK_OPTIONS "LINKER:-force_load,${folder}/first.a")
  elseif(ARGN)
    set_property(TARGET ${name} APPEND PROPERTY INTERFACE_LINK_OPTIONS
      "LINKER:--whole-archive,${folder}/first.a,--no-whole-archive")
  endif()
  message(STATUS "tritonsmith: ${name} is ${archive}")
  if(name MATCHES "^LLVM")  # the shared libLLVM would hold its code a second time
    set(TRITONSMITH_STATIC_LLVM ON PARENT_SCOPE)
  endif()
endfunction()

function(tritonsmith_configurations name result)
  get_target_property(configurations ${name} IMPORTED_CONFIGURATIONS)
  set(${result} "${configurations}" PARENT_SCOPE)
endfunction()

# The opposite of one_llvm.cmake: the shared LLVM, which MLIR names, is made to stand for the static libraries,
# so that the debug library is the only copy of its code. Only what this machine can link is taken: a
# distribution's package names libraries of which it has no files (Polly), and of others' (libpfm, curl).
function(tritonsmith_static_llvm)
  if(NOT TARGET LLVM OR NOT LLVM_LINK_LLVM_DYLIB OR NOT TRITONSMITH_STATIC_LLVM)
    return()
  endif()
  tritonsmith_linkable(libraries)
  tritonsmith_configurations(LLVM configurations)
  list(GET configurations 0 configuration)
  # Usage requirements of libxml2 and others would change the command lines of Triton's compiles.
  foreach(name IN LISTS libraries)
    get_target_property(needs ${name} INTERFACE_LINK_LIBRARIES)
    if(needs)
      list(TRANSFORM needs REPLACE "^([A-Za-z0-9_]+::.*)$" "$<LINK_ONLY:\\1>")
      set_target_properties(${name} PROPERTIES INTERFACE_LINK_LIBRARIES "${needs}")
    endif()
  endforeach()
  get_target_property(support LLVMSupport IMPORTED_LOCATION_${configuration})
  list(TRANSFORM libraries REPLACE "^(.+)$" "$<LINK_ONLY:\\1>" OUTPUT_VARIABLE links)
  foreach(configuration IN LISTS configurations)
    set_target_properties(LLVM PROPERTIES
      IMPORTED_LOCATION_${configuration} "${support}"
      IMPORTED_SONAME_${configuration} ""
      INTERFACE_LINK_LIBRARIES "${links}")
  endforeach()
  list(LENGTH libraries count)
  message(STATUS "tritonsmith: ${count} static libraries of LLVM stand for the shared one")
endfunction()

# Static libraries of LLVM whose files are here, and everything that they need.
function(tritonsmith_linkable result)
  set(left ${LLVM_AVAILABLE_LIBS})
  set(before "")
  while(NOT "${left}" STREQUAL "${before}")  # until nothing falls away any more
    set(before "${left}")
    foreach(name IN LISTS before)
      tritonsmith_can_link(${name} "${left}" good)
      if(NOT good)
        list(REMOVE_ITEM left ${name})
      endif()
    endforeach()
  endwhile()
  set(${result} "${left}" PARENT_SCOPE)
endfunction()

function(tritonsmith_can_link name known result)
  set(${result} FALSE PARENT_SCOPE)
  if(NOT TARGET ${name})
    return()
  endif()
  get_target_property(kind ${name} TYPE)
  tritonsmith_configurations(${name} configurations)
  if(NOT kind STREQUAL "STATIC_LIBRARY" OR NOT configurations)
    return()
  endif()
  list(GET configurations 0 configuration)
  get_target_property(location ${name} IMPORTED_LOCATION_${configuration})
  if(NOT EXISTS "${location}")
    return()
  endif()
  get_target_property(needs ${name} INTERFACE_LINK_LIBRARIES)
  foreach(need IN LISTS needs)
    if(need IN_LIST known OR need MATCHES "^(rt|dl|m|pthread|-lpthread|needs-NOTFOUND)$")
      continue()
    elseif(IS_ABSOLUTE "${need}" AND EXISTS "${need}")
      continue()
    elseif(need MATCHES "::" AND TARGET "${need}")
      continue()
    endif()
    return()
  endforeach()
  set(${result} TRUE PARENT_SCOPE)
endfunction()

include("${TRITONSMITH_DEBUG_LIBRARIES}")
cmake_language(DEFER CALL tritonsmith_static_llvm)
include("${CMAKE_CURRENT_LIST_DIR}/../triton/one_llvm.cmake")
