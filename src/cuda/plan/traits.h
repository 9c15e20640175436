/* traits.h - what the choice of a kernel depends on of a GPU. */
#ifndef FSI_CUDA_PLAN_TRAITS_H
#define FSI_CUDA_PLAN_TRAITS_H

#include <stdint.h>

typedef struct fsi_gpu_traits {
    int arch;       /* compute capability: 75, 80, 90, 100, ... */
    int processors; /* SMs */
    int64_t shared; /* bytes of shared memory that a thread block may have */
    int64_t shared_per_processor;
    int64_t l2; /* bytes of L2 */
} fsi_gpu_traits;

#endif
