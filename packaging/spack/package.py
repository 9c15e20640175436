from spack.package import *


class Flashsketch(CMakePackage, CudaPackage):
    """Random sketches Y = S A of tall matrices, the same S on every machine, on CPUs and NVIDIA GPUs, and least
    squares, QR and SVD with the sketch."""

    # A published recipe has the address of the archives here: url = "...", and sha256 in version().
    license("BSD-3-Clause")
    version("0.1.0")

    variant("cli", default=True, description="Build the command flashsketch and libflashsketch_files")
    variant("mpi", default=False, description="Build libflashsketch_mpi")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("cmake@3.20:", type="build")
    depends_on("cuda@12:", when="+cuda")
    depends_on("mpi", when="+mpi")
    depends_on("openblas", type="run")  # opened at run time, by tasks and solvers
    depends_on("zlib-api", when="+cli")
    depends_on("cjson", when="+cli")

    def cmake_args(self):
        numbers = [number for number in self.spec.variants["cuda_arch"].value if number != "none"]
        architectures = [f"{'90a' if number == '90' else number}-real" for number in numbers]
        return [
            self.define_from_variant("FS_BUILD_CLI", "cli"),
            self.define_from_variant("FS_BUILD_MPI", "mpi"),
            self.define_from_variant("FS_CUDA", "cuda"),
            self.define("FS_CUDA_ARCHITECTURES", architectures),
            self.define("FS_BUILD_TESTS", False),
            self.define("FS_BUILD_BENCH", False),
        ]

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        if "+cli" in self.spec:
            Executable(join_path(self.prefix.bin, "flashsketch"))("check")
