# install.cmake - what `cmake --install` puts where: the library, its header, pkg-config and find_package files.
#
# For a wheel (scikit-build-core sets SKBUILD) it is the libraries and the plugin alone, beside the Python files;
# cli/CMakeLists.txt adds the command.
if(SKBUILD)
  install(TARGETS flashsketch LIBRARY DESTINATION flashsketch COMPONENT python)
  install(FILES ${FS_WHEEL_LIBRARIES} DESTINATION flashsketch COMPONENT python)
  if(TARGET flashsketch_files)
    install(TARGETS flashsketch_files LIBRARY DESTINATION flashsketch COMPONENT python)
  endif()
  if(FS_HAVE_CUDA)
    install(TARGETS flashsketch_cuda LIBRARY DESTINATION flashsketch COMPONENT python)
  endif()
  return()
endif()
include(CMakePackageConfigHelpers)
install(TARGETS flashsketch EXPORT flashsketch-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(FS_HAVE_CUDA)
  install(TARGETS flashsketch_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/${FS_PLUGIN_FOLDER})
endif()
if(TARGET flashsketch_files)
  install(TARGETS flashsketch_files EXPORT flashsketch-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} PUBLIC_HEADER DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
# The test vectors of the definition of S, for implementations in other languages.
install(FILES ${PROJECT_SOURCE_DIR}/src/def/vectors.txt DESTINATION ${CMAKE_INSTALL_DATADIR}/flashsketch)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/flashsketch)
install(EXPORT flashsketch-targets NAMESPACE flashsketch:: DESTINATION ${package_dir})
file(WRITE ${PROJECT_BINARY_DIR}/flashsketch-config.cmake
"include(\${CMAKE_CURRENT_LIST_DIR}/flashsketch-targets.cmake)
# libflashsketch_mpi, where it was installed and the program's MPI is found.
if(EXISTS \${CMAKE_CURRENT_LIST_DIR}/flashsketch-mpi-targets.cmake)
  include(CMakeFindDependencyMacro)
  find_package(MPI QUIET COMPONENTS C)
  if(TARGET MPI::MPI_C)
    include(\${CMAKE_CURRENT_LIST_DIR}/flashsketch-mpi-targets.cmake)
  endif()
endif()
")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/flashsketch-config-version.cmake COMPATIBILITY SameMinorVersion)
# The .pc file finds its prefix from where it lies, so that an installed tree may be moved.
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/flashsketch.pc.in ${PROJECT_BINARY_DIR}/flashsketch.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/flashsketch-config.cmake ${PROJECT_BINARY_DIR}/flashsketch-config-version.cmake
  DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/flashsketch.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET flashsketch_files)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/flashsketch_files.pc.in ${PROJECT_BINARY_DIR}/flashsketch_files.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/flashsketch_files.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
# `cpack` in the build makes a tarball of the installed tree, which may be unpacked anywhere.
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_FILE_NAME flashsketch-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_VENDOR "the FlashSketch authors")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
