# ccache.cmake - a second build of the same sources takes seconds.
#
# A launcher that is set already is kept.  ccache is tried once: where its folder cannot be written, as in a sandbox
# without a home, every compilation through it would fail.
if(NOT FS_CCACHE OR CMAKE_C_COMPILER_LAUNCHER)
  return()
endif()
find_program(FS_CCACHE_PROGRAM ccache)
mark_as_advanced(FS_CCACHE_PROGRAM)
if(FS_CCACHE_PROGRAM)
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/ccache/probe.c "int probe;\n")
  execute_process(COMMAND ${FS_CCACHE_PROGRAM} ${CMAKE_C_COMPILER} -c probe.c -o probe.o
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/CMakeFiles/ccache RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT failed)
    set(CMAKE_C_COMPILER_LAUNCHER ${FS_CCACHE_PROGRAM})
    if(NOT CMAKE_CUDA_COMPILER_LAUNCHER)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${FS_CCACHE_PROGRAM})
    endif()
  endif()
endif()
