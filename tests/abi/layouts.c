/* layouts.c - the public structs have the sizes and offsets of layouts.h; a difference does not compile. */
#include <stddef.h>
#include <stdio.h>

#include "flashsketch.h"
#include "flashsketch_attribution.h"
#include "flashsketch_files.h"
#include "flashsketch_tasks.h"
#ifdef LAYOUTS_WITH_MPI
#include "flashsketch_mpi.h"
#endif

#define STRUCT(type, bytes) _Static_assert(sizeof(type) == (bytes), "size of " #type);
#define FIELD(type, member, offset) _Static_assert(offsetof(type, member) == (offset), "offset of " #type "." #member);
#if __SIZEOF_POINTER__ == 8 && __SIZEOF_LONG__ == 8
#include "layouts.h"
#endif

/* Enumerations are members of structs: they are as large as int with every C compiler of the platform's ABI. */
#define ENUM(type) _Static_assert(sizeof(type) == sizeof(int), "size of " #type);
ENUM(fs_result)
ENUM(fs_family)
ENUM(fs_shuffle)
ENUM(fs_backend_kind)
ENUM(fs_precision)
ENUM(fs_dtype)
ENUM(fs_memory)
ENUM(fs_sparse_format)
ENUM(fs_index_type)
ENUM(fs_multi_sum)
ENUM(fs_method)
ENUM(fs_lstsq_method)

int main(void)
{
    puts("compiled, so the layouts are those of layouts.h");
    return 0;
}
