# Included after LLVM's project(): compiler options for single targets, or for sources of theirs.
#
# CMAKE_CXX_FLAGS would not do for -O and -g: the build type's come after it, and of several the last one counts.
#
# TRITONSMITH_OPTIONS            names of rules; the first one of whole targets that fits decides
# TRITONSMITH_OPTIONS_<name>     options for C, C++ and assembly; may be empty
# TRITONSMITH_TARGETS_<name>     regular expressions of targets
# TRITONSMITH_SOURCES_<name>     names of files, for a rule of these alone
#
# It runs before precompiled_headers.cmake, which compares options: CMake includes CMAKE_PROJECT_INCLUDE first.

include_guard(GLOBAL)

function(tritonsmith_add_source_options target names options)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME)
    if(name IN_LIST names)
      get_filename_component(source "${source}" ABSOLUTE BASE_DIR "${folder}")
      set_property(SOURCE "${source}" TARGET_DIRECTORY ${target} APPEND PROPERTY COMPILE_OPTIONS ${options})
      # A header that is precompiled without them does not fit.
      set_property(SOURCE "${source}" TARGET_DIRECTORY ${target} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

function(tritonsmith_add_options folder)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(EXECUTABLE|(STATIC|SHARED|MODULE|OBJECT)_LIBRARY)$")
      continue()
    endif()
    string(REGEX REPLACE "^obj[.]" "" library "${target}")
    foreach(name IN LISTS TRITONSMITH_OPTIONS)
      string(JOIN "|" fitting ${TRITONSMITH_TARGETS_${name}})
      if(NOT library MATCHES "^(${fitting})$")
        continue()
      endif()
      if(TRITONSMITH_SOURCES_${name})
        tritonsmith_add_source_options(${target} "${TRITONSMITH_SOURCES_${name}}" "${TRITONSMITH_OPTIONS_${name}}")
        continue()
      endif()
      # LLVM from 22 on gives a target the header of a library that it links, which has other options.
      get_target_property(reused ${target} PRECOMPILE_HEADERS_REUSE_FROM)
      if(reused AND "${TRITONSMITH_OPTIONS_${name}}" MATCHES "-[OD]")
        set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
      endif()
      foreach(option IN LISTS TRITONSMITH_OPTIONS_${name})
        target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX,ASM>:${option}>")
      endforeach()
      break()
    endforeach()
  endforeach()
  get_property(folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    tritonsmith_add_options("${below}")
  endforeach()
endfunction()

cmake_language(DEFER CALL tritonsmith_add_options "${CMAKE_SOURCE_DIR}")
