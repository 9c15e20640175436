/* gauss.h - the dense Gaussian: S_ij = z_ij / sqrt k, z_ij a function of (seed, i, j) and nothing else.
 *
 * One Philox call per column j and four rows 4 p ... 4 p + 3 gives two Box-Muller pairs
 *     (z, z') = sqrt(-2 ln u) (cos 2 pi v, sin 2 pi v).
 * The logarithm, sine and cosine are short polynomials in pinned float operations (port.h) instead of libm's, so
 * every compiler, CPU and GPU has the same bits.  The coefficients are least-squares fits at 400 Chebyshev nodes,
 * rounded to float.  Against the exact functions of the float u and v the radius is off by at most 5.4e-7, sine and
 * cosine by 1.2e-7; u itself has float's 24 bits, so the smallest radii are as coarse as that. */
#ifndef FSI_DEF_GAUSS_H
#define FSI_DEF_GAUSS_H

#include "def/rng.h"

typedef struct fsi_gauss {
    uint64_t seed;
    int64_t d, k;
} fsi_gauss;

FSI_DEF fsi_gauss fsi_gauss_make(uint64_t seed, int64_t d, int64_t k)
{
    fsi_gauss G;
    G.seed = seed;
    G.d = d;
    G.k = k;
    return G;
}

FSI_DEF float fsi_horner(float x, float c, float tail) { return fsi_addf(fsi_mulf(tail, x), c); }

/* sqrt(-2 ln u), u = (w + 1/2) / 2^32 rounded to float. */
FSI_DEF float fsi_gauss_radius(uint32_t w)
{
    const float u = fsi_mulf(fsi_addf((float)w, 0.5f), 2.3283064365386963e-10f);
    /* u = 2^e (1 + x) with 1 + x in [sqrt(1/2), sqrt 2): shift the exponent boundary to sqrt(1/2). */
    const uint32_t bits = fsi_bits_of_float(u), e = (bits - 0x3F3504F3u) & 0xFF800000u;
    const float x = fsi_addf(fsi_float_of_bits(bits - e), -1.0f);
    float p = 0.0874394551f;
    p = fsi_horner(x, -0.143773302f, p);
    p = fsi_horner(x, 0.149490952f, p);
    p = fsi_horner(x, -0.165606961f, p);
    p = fsi_horner(x, 0.199569777f, p);
    p = fsi_horner(x, -0.250021547f, p);
    p = fsi_horner(x, 0.333341837f, p);
    p = fsi_horner(x, -0.499999881f, p);
    p = fsi_horner(x, 1.0f, p);
    /* e is a multiple of 2^23; as a float it is exact, and so is its product with 2^-23. */
    const float exponent = fsi_mulf((float)(int32_t)e, 1.1920928955078125e-07f);
    const float ln = fsi_addf(fsi_mulf(exponent, 0.693147182f), fsi_mulf(p, x));
    return fsi_sqrtf(fsi_mulf(-2.0f, ln > 0.0f ? 0.0f : ln));
}

/* *c = cos, *s = sin of 2 pi w / 2^32: the nearest quarter turn, then at most pi/4 more. */
FSI_DEF void fsi_gauss_turn(uint32_t w, float *c, float *s)
{
    const uint32_t quarter = (w + 0x20000000u) >> 30;
    const float x = fsi_mulf((float)(int32_t)(w - (quarter << 30)), 1.46291807926715969e-09f);
    const float t = fsi_mulf(x, x);
    float sine = 2.71734939e-06f, cosine = 2.43798804e-05f;
    sine = fsi_horner(t, -0.000198392023f, sine);
    sine = fsi_horner(t, 0.00833332911f, sine);
    sine = fsi_horner(t, -0.166666672f, sine);
    sine = fsi_mulf(fsi_horner(t, 1.0f, sine), x);
    cosine = fsi_horner(t, -0.00138866191f, cosine);
    cosine = fsi_horner(t, 0.0416666158f, cosine);
    cosine = fsi_horner(t, -0.5f, cosine);
    cosine = fsi_horner(t, 1.0f, cosine);
    const float a = quarter & 1 ? sine : cosine, b = quarter & 1 ? cosine : sine;
    *c = (quarter + 1) & 2 ? -a : a;
    *s = quarter & 2 ? -b : b;
}

/* z of rows 4 p ... 4 p + 3 in column j. */
FSI_DEF void fsi_gauss_four(const fsi_gauss *G, int64_t p, int64_t j, float z[4])
{
    const fsi_quad q = fsi_random_quad(G->seed, FSI_TAG_NORMAL, (uint64_t)j, (uint32_t)p, 0);
    for (int pair = 0; pair < 2; pair++) {
        float c, s;
        const float radius = fsi_gauss_radius(q.w[2 * pair]);
        fsi_gauss_turn(q.w[2 * pair + 1], &c, &s);
        z[2 * pair] = fsi_mulf(radius, c);
        z[2 * pair + 1] = fsi_mulf(radius, s);
    }
}

#endif
