# Included after Triton's project() when the LLVM is one whose MLIR links the shared libLLVM (distributions).
#
# Triton names LLVM's static libraries. With both in one process every command-line option of LLVM is
# registered twice, and `import triton` aborts ("Option ... registered more than once"). So, at the end of the
# configuration, each static library of LLVM is made to stand for the shared one. LLVM's package says whether it is
# such a one; a library of LLVM itself in debug (debug_library/relink.cmake) needs the opposite.

function(tritonsmith_one_llvm)
  if(NOT TARGET LLVM OR NOT LLVM_LINK_LLVM_DYLIB OR TRITONSMITH_STATIC_LLVM)
    return()
  endif()
  get_target_property(configurations LLVM IMPORTED_CONFIGURATIONS)
  list(GET configurations 0 configuration)
  get_target_property(shared LLVM IMPORTED_LOCATION_${configuration})
  foreach(name IN LISTS LLVM_AVAILABLE_LIBS)
    if(NOT TARGET ${name})
      continue()
    endif()
    get_target_property(kind ${name} TYPE)
    if(kind STREQUAL "STATIC_LIBRARY")
      set_target_properties(${name} PROPERTIES
        IMPORTED_LOCATION_${configuration} "${shared}"
        INTERFACE_LINK_LIBRARIES "")
    endif()
  endforeach()
  message(STATUS "tritonsmith: LLVM's static libraries stand for ${shared}")
endfunction()

cmake_language(DEFER CALL tritonsmith_one_llvm)
