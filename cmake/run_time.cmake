# run_time.cmake - where the library and the command find what they open at run time: plugins, and in a Python wheel the
# libraries of other packages.
#
# FS_PLUGIN_FOLDER moves the plugins, which have no SONAME, out of the folder of the libraries; Debian wants that.
#
# pip puts the folders of all packages side by side.  FS_WHEEL is set for a wheel: by scikit-build-core (SKBUILD), and by
# scripts/wheels.sh for the plugins.  The dynamic loader searches these folders for what a library opens at run time.
set(FS_PLUGIN_FOLDER "" CACHE STRING "Folder for the plugins, in that of the libraries")
option(FS_WHEEL "Build what a Python wheel holds" OFF)
if(SKBUILD)
  set(FS_WHEEL ON)
endif()
set(FS_WHEEL_LIBRARIES "" CACHE STRING "Libraries that the wheel holds beside its own")
set(FS_CUDA_RPATH "")
if(FS_WHEEL)
  # OpenBLAS is scipy-openblas32's; the plugins are those of libflashsketch-cuda13 and -cuda12.
  set(FS_PLUGIN_RPATH "$ORIGIN/../flashsketch_cuda13:$ORIGIN/../flashsketch_cuda12")
  set(FS_LIBRARY_RPATH "$ORIGIN:${FS_PLUGIN_RPATH}:$ORIGIN/../scipy_openblas32/lib")
  set(FS_COMMAND_RPATH "$ORIGIN/..:$ORIGIN/../../flashsketch_cuda13:$ORIGIN/../../flashsketch_cuda12")
  # cuBLAS, cuSOLVER and NCCL are where NVIDIA's packages have them, which PyTorch and CuPy install.
  set(FS_CUDA_RPATH "$ORIGIN")
  foreach(folder cu13 cublas cusolver nccl)
    string(APPEND FS_CUDA_RPATH ":$ORIGIN/../nvidia/${folder}/lib")
  endforeach()
else()
  set(FS_LIBRARY_RPATH "$ORIGIN")
  set(FS_COMMAND_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  if(FS_PLUGIN_FOLDER)
    string(APPEND FS_LIBRARY_RPATH ":$ORIGIN/${FS_PLUGIN_FOLDER}")
    string(APPEND FS_COMMAND_RPATH ":$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/${FS_PLUGIN_FOLDER}")
  endif()
endif()
