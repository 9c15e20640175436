/* srht.cuh - what the two files of the SRHT share. */
#ifndef FSI_CUDA_FAMILIES_SRHT_CUH
#define FSI_CUDA_FAMILIES_SRHT_CUH

/* Transforms the first 2^bits of x; the others are undefined. */
template <int RADIX, class Sum> static __device__ __forceinline__ void hadamard_butterflies(Sum (&x)[RADIX], int bits)
{
#pragma unroll
    for (int level = 0; 1 << level < RADIX; level++)
        if (level < bits) {
#pragma unroll
            for (int i = 0; i < RADIX; i++)
                if (!(i >> level & 1)) {
                    const Sum a = x[i], b = x[i + (1 << level)];
                    x[i] = a + b;
                    x[i + (1 << level)] = a - b;
                }
        }
}

#endif
