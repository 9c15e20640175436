# For Julia's Yggdrasil: flashsketch_jll, which bindings/julia/FlashSketch.jl can take its library from.  A published recipe
# has ArchiveSource(url, sha256) in place of the DirectorySource.
using BinaryBuilder

version = VersionNumber("0.1.0")
sources = [DirectorySource(joinpath(@__DIR__, "..", ".."))]
script = raw"""
cd ${WORKSPACE}/srcdir
cmake -S . -B build -DCMAKE_INSTALL_PREFIX=${prefix} -DCMAKE_TOOLCHAIN_FILE=${CMAKE_TARGET_TOOLCHAIN} \
    -DCMAKE_BUILD_TYPE=Release -DFS_CUDA=OFF -DFS_BUILD_MPI=OFF -DFS_BUILD_CLI=OFF -DFS_BUILD_TESTS=OFF -DFS_BUILD_BENCH=OFF
cmake --build build --parallel ${nproc}
cmake --install build
install_license LICENSE
"""
platforms = [Platform("x86_64", "linux"; libc = "glibc"), Platform("aarch64", "linux"; libc = "glibc")]
products = [LibraryProduct("libflashsketch", :libflashsketch)]
dependencies = [
    Dependency("CompilerSupportLibraries_jll"),  # libgomp
    RuntimeDependency("OpenBLAS32_jll"),         # opened at run time, by solvers
]
build_tarballs(ARGS, "flashsketch", version, sources, script, platforms, products, dependencies;
               julia_compat = "1.6", preferred_gcc_version = v"9")
