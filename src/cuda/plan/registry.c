/* registry.c - the descriptors of all kernels, in the order of kernels.h. */
#include <string.h>

#include "cuda/plan/kernel.h"

const fsi_kernel *const fsi_kernels[FSI_KERNEL_COUNT] = {
#define ENTRY(NAME, name) &fsi_kernel_##name,
    FSI_KERNELS(ENTRY)
#undef ENTRY
};

const fsi_kernel *fsi_kernel_of(fsi_kernel_id id)
{
    return (int)id > FSI_KERNEL_NONE && (int)id < FSI_KERNEL_END ? fsi_kernels[id - 1] : NULL;
}

fsi_kernel_id fsi_kernel_named(const char *name)
{
    for (int i = 0; i < FSI_KERNEL_COUNT; i++)
        if (strcmp(fsi_kernels[i]->name, name) == 0) return (fsi_kernel_id)(i + 1);
    return FSI_KERNEL_NONE;
}

int fsi_kernel_fits(const fsi_kernel *kernel, const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    return gpu->arch >= kernel->least_arch && gpu->arch <= kernel->most_arch && kernel->inputs >> p->input & 1 &&
           kernel->fits(p, gpu);
}
