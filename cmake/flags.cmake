# flags.cmake - the flags of every target, as one interface library.
#
# -ffp-contract=off: gcc -std=gnu11 and clang fuse a * b + c, gcc -std=c11 does not; results must not depend on it.
# -fno-math-errno, -fno-trapping-math: sqrt is one instruction and loops with comparisons vectorize; no result changes.
add_library(fs_flags INTERFACE)
target_compile_options(fs_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes
  -ffp-contract=off -fno-math-errno -fno-trapping-math)
target_compile_definitions(fs_flags INTERFACE _DEFAULT_SOURCE)
if(FS_WERROR)
  target_compile_options(fs_flags INTERFACE -Werror)
endif()
if(FS_SANITIZE)
  target_compile_options(fs_flags INTERFACE -fsanitize=${FS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_link_options(fs_flags INTERFACE -fsanitize=${FS_SANITIZE})
endif()
