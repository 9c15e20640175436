"""The library for Conan 2.  A published recipe gets a release's archive in source(), in place of export_sources."""

import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class FlashSketch(ConanFile):
    name = "flashsketch"
    version = "0.1.0"
    license = "BSD-3-Clause"
    description = "Random sketches of matrices, the same on every machine"
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "VERSION", "LICENSE", "cmake/*", "include/*", "src/*", "mpi/*", "apps/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for option in ("CLI", "MPI", "TESTS", "BENCH"):
            toolchain.cache_variables[f"FS_BUILD_{option}"] = "OFF"
        toolchain.cache_variables["FS_CUDA"] = "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        self.cpp_info.libs = ["flashsketch"]
        self.cpp_info.set_property("cmake_target_name", "flashsketch::flashsketch")
        self.cpp_info.set_property("pkg_config_name", "flashsketch")
