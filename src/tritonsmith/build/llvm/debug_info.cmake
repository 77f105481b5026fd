# Included after LLVM's project(): gives its targets less debug information than the build type does.
#
# CMAKE_CXX_FLAGS would not do: the build type's `-g` comes after it, and of several such options the last one counts.
#
# TRITONSMITH_DEBUG_INFO          option of the compiler
# TRITONSMITH_DEBUG_INFO_WHOLE    regular expressions of targets that keep all of it

include_guard(GLOBAL)

function(tritonsmith_reduce_debug_info folder)
  string(JOIN "|" whole ${TRITONSMITH_DEBUG_INFO_WHOLE})
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(EXECUTABLE|(STATIC|SHARED|MODULE|OBJECT)_LIBRARY)$")
      continue()
    endif()
    string(REGEX REPLACE "^obj[.]" "" library "${target}")
    if(whole AND library MATCHES "^(${whole})$")
      continue()
    endif()
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX>:${TRITONSMITH_DEBUG_INFO}>")
  endforeach()
  get_property(folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    tritonsmith_reduce_debug_info("${below}")
  endforeach()
endfunction()

cmake_language(DEFER CALL tritonsmith_reduce_debug_info "${CMAKE_SOURCE_DIR}")
