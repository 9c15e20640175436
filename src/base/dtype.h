/* dtype.h - the four element types: sizes, and f16 and bf16 to and from float in plain integer code.
 *
 * The conversions are branch-free so that compilers vectorize them on every target; to f16 and bf16 they round to
 * nearest, ties to even, as hardware does.  NaN stays NaN, overflow becomes infinity. */
#ifndef FSI_BASE_DTYPE_H
#define FSI_BASE_DTYPE_H

#include "flashsketch.h"
#include "def/port.h"

static inline int64_t fsi_dtype_size(fs_dtype t) { return t == FS_F64 ? 8 : t == FS_F32 ? 4 : 2; }
static inline int fsi_dtype_known(fs_dtype t) { return t >= FS_F32 && t <= FS_BF16; }
/* The type of sums. */
static inline fs_dtype fsi_dtype_sum(fs_dtype t) { return t == FS_F64 ? FS_F64 : FS_F32; }

static inline float fsi_float_of_bf16(uint16_t h) { return fsi_float_of_bits((uint32_t)h << 16); }
static inline uint16_t fsi_bf16_of_float(float f)
{
    const uint32_t u = fsi_bits_of_float(f), rounded = u + 0x7FFFu + (u >> 16 & 1);
    const uint32_t nan = u >> 16 | 0x40u;
    return (uint16_t)((u & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded >> 16);
}
static inline float fsi_float_of_f16(uint16_t h)
{
    /* Exponent and mantissa moved into place are off by 2^112, which one exact product repairs, subnormals too. */
    const uint32_t magnitude = (uint32_t)(h & 0x7FFF) << 13;
    const float scaled = fsi_float_of_bits(magnitude) * 0x1p112f;
    const uint32_t special = magnitude + 0x70000000u;
    const uint32_t bits = magnitude >= 0x0F800000u ? special : fsi_bits_of_float(scaled);
    return fsi_float_of_bits(bits | (uint32_t)(h & 0x8000) << 16);
}
static inline uint16_t fsi_f16_of_float(float f)
{
    const uint32_t u = fsi_bits_of_float(f), sign = u >> 16 & 0x8000u, a = u & 0x7FFFFFFFu;
    /* Subnormal f16: adding 1/2 puts the last kept bit at the unit of the float sum, which rounds it. */
    const uint32_t tiny = fsi_bits_of_float(fsi_float_of_bits(a) + 0.5f) - 0x3F000000u;
    const uint32_t normal = (a + 0xFFFu + (a >> 13 & 1) - 0x38000000u) >> 13;
    const uint32_t huge = a > 0x7F800000u ? 0x7E00u : 0x7C00u;
    const uint32_t finite = a < 0x38800000u ? tiny : normal;
    return (uint16_t)(sign | (a >= 0x477FF000u ? huge : finite));
}

/* Entry i of an array of 32- or 64-bit indices, and a value put there. */
static inline int64_t fsi_index_load(const void *array, fs_index_type type, int64_t i)
{
    return type == FS_INDEX32 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}
static inline void fsi_index_store(void *array, fs_index_type type, int64_t i, int64_t value)
{
    if (type == FS_INDEX32) ((int32_t *)array)[i] = (int32_t)value;
    else ((int64_t *)array)[i] = value;
}

/* Element i of an array of any type, as double; and a double rounded into it. */
static inline double fsi_load(const void *data, fs_dtype t, int64_t i)
{
    switch (t) {
    case FS_F64: return ((const double *)data)[i];
    case FS_F32: return ((const float *)data)[i];
    case FS_F16: return fsi_float_of_f16(((const uint16_t *)data)[i]);
    default: return fsi_float_of_bf16(((const uint16_t *)data)[i]);
    }
}
static inline void fsi_store(void *data, fs_dtype t, int64_t i, double x)
{
    switch (t) {
    case FS_F64: ((double *)data)[i] = x; break;
    case FS_F32: ((float *)data)[i] = (float)x; break;
    case FS_F16: ((uint16_t *)data)[i] = fsi_f16_of_float((float)x); break;
    default: ((uint16_t *)data)[i] = fsi_bf16_of_float((float)x);
    }
}

#endif
