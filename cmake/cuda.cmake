# cuda.cmake - whether the CUDA backend is built, and for which GPUs.
#
# From CUDA 12 on.  nvcc is looked for on the PATH, where CUDACXX says, and in /usr/local/cuda.
set(FS_HAVE_CUDA OFF)
if(FS_CUDA STREQUAL "OFF")
  return()
endif()
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
  set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(FS_CUDA STREQUAL "ON")
    message(FATAL_ERROR "FS_CUDA is ON, but nvcc was not found: put it on the PATH, or set CUDACXX")
  endif()
  message(STATUS "The CUDA backend is not built: nvcc was not found")
  return()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES OFF)
endif()
enable_language(CXX CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
  if(FS_CUDA STREQUAL "ON")
    message(FATAL_ERROR "FS_CUDA is ON, but nvcc is ${CMAKE_CUDA_COMPILER_VERSION}; 12 is the least")
  endif()
  message(STATUS "The CUDA backend is not built: nvcc is ${CMAKE_CUDA_COMPILER_VERSION}, 12 is the least")
  return()
endif()
set(FS_HAVE_CUDA ON)
# C++20, for designated initialisers: nvcc 12 has it, but CMake 3.25 does not know its flag.
foreach(kind STANDARD EXTENSION)
  if(NOT CMAKE_CUDA20_${kind}_COMPILE_OPTION)
    set(CMAKE_CUDA20_${kind}_COMPILE_OPTION "-std=c++20")
  endif()
endforeach()
# A wheel is built for the GPUs of this machine, as `make build` does, and for every GPU where there is none.
if(SKBUILD AND NOT FS_CUDA_ARCHITECTURES)
  execute_process(COMMAND sh ${PROJECT_SOURCE_DIR}/scripts/cuda.sh this OUTPUT_VARIABLE here)
  if(here MATCHES "FS_CUDA_ARCHITECTURES=([^ \n]+)")
    set(FS_CUDA_ARCHITECTURES ${CMAKE_MATCH_1})
  endif()
endif()
# sm_90a has wgmma; the others from sm_80 on run mma.sync, sm_75 plain additions; PTX is for GPUs to come.
if(NOT FS_CUDA_ARCHITECTURES)
  set(FS_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90a-real)
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
    list(APPEND FS_CUDA_ARCHITECTURES 100-real 120-real 120-virtual)
  else()
    list(APPEND FS_CUDA_ARCHITECTURES 90-virtual)
  endif()
endif()
message(STATUS "The CUDA backend: nvcc ${CMAKE_CUDA_COMPILER_VERSION} for ${FS_CUDA_ARCHITECTURES}")

# fs_cuda_plugin(target): what every plugin with device code has: code for the GPUs above, cudart inside, no symbol that
# is not marked, warnings.  An architecture is NUMBER-real (machine code) or NUMBER-virtual (PTX, which a driver compiles
# for what comes later).
function(fs_cuda_plugin target)
  foreach(architecture ${FS_CUDA_ARCHITECTURES})
    if(NOT architecture MATCHES "^[0-9]+[af]?-(real|virtual)$")
      message(FATAL_ERROR "FS_CUDA_ARCHITECTURES: '${architecture}' is not like 90a-real or 120-virtual")
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden CUDA_RUNTIME_LIBRARY Static CUDA_ARCHITECTURES "${FS_CUDA_ARCHITECTURES}"
    CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON INSTALL_RPATH "${FS_CUDA_RPATH}")
  # fs_flags are a C compiler's.  nvcc passes its host compiler a subset: code that nvcc generates is not pedantic, and
  # parameters that only device code uses are unused there.  Constants are enumerators, as in C: C++20 deprecates
  # arithmetic between those of two enumerations.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:C>:$<TARGET_PROPERTY:fs_flags,INTERFACE_COMPILE_OPTIONS>>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wno-unused-parameter,-Wno-deprecated-enum-enum-conversion>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffp-contract=off,-fopenmp>)
  target_compile_definitions(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:C>:$<TARGET_PROPERTY:fs_flags,INTERFACE_COMPILE_DEFINITIONS>>)
  if(FS_WERROR)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>)
  endif()
  if(FS_SANITIZE)
    string(REPLACE "," ";" sanitizers "${FS_SANITIZE}")
    list(TRANSFORM sanitizers PREPEND "-Xcompiler=-fsanitize=")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:${sanitizers}>)
    target_link_options(${target} PRIVATE -fsanitize=${FS_SANITIZE})
  endif()
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
endfunction()
