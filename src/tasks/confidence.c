/* confidence.c - when the interval that a task reports for its own error is known to hold.
 *
 * Known means measured: coverage of 99 of 100 draws on every input tried, with and without dominant rows in A and
 * outliers in B (the kinds of tests/tasks/coverage.c; n = 4 to 256, k = n + 8 to 16 n, 60 to 500 draws each,
 * every rung).  Sketches that failed there have no interval:
 *
 * - FlashBlockRow misses the rows that it does not sample, and Y does not show it (0 to 99 % coverage);
 * - the rows of an SRHT repeat each other on inputs with structure (0 to 20 % for an identity in neighbouring rows and
 *   k <= 3 n);
 * - blockperm with contiguous blocks or row groups loses directions of inputs whose dominant rows lie at certain
 *   distances, and so do fewer than four nonzeros in a column (40 to 90 % for s = 2, k = 2 n);
 * - other sparse sketches below k = 2 n (up to 13 % misses at k = 1.25 n), and where about n rows outweigh all others
 *   below 4 n (1 to 3 %) or, with four nonzeros in blocks of 64 rows, n^2 / 25 (1 % at n = 128, k = 512): the smallest
 *   singular value of S on the range of A then has a long tail;
 * - every sketch with fewer than 8 equations to spare (1.6 % misses of a Gaussian at 4, 5 % at 1). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/sketch.h"
#include "tasks/workspace.h"

enum { SPARE = 8, FEWEST_NONZEROS = 4 };
static const char samples_rows[] = "S samples rows of A (blockrow); take another family";
static const char repeats_rows[] = "the rows of S depend on each other (srht); take another family";

static int64_t nonzeros(const fs_spec *S) { return (S->family == FS_BLOCKPERM ? S->kappa : 1) * S->s; }

/* Leverages h_i of the rows of Y, whose sum is p, are called uneven where k sum h_i^2 / p^2 - 1 is above this.  n rows
 * of A that have all leverage make it 0.44 to 0.26 times (k / p) (1 - p / k)^2 for s = 4, k = 2 n to 16 n; 2 n of them
 * half of that, and rows that fall as 1 / i^2 two thirds; spread inputs nearly 0. */
static double uneven(double k, double p) { return 0.23 * k / p * (1 - p / k) * (1 - p / k); }

/* The chance that two of n rows of A that outweigh all others meet the same rows of Y with the same signs, or opposite
 * ones: then S loses their difference.  They are in one of M blocks of B = k / M rows; each of the kappa s nonzeros of a
 * column has B / s places.  Where that is below 0.0015 (for kappa s = 4: k > n^2 / 197, in blocks of 64 rows n^2 / 25;
 * for 8 or more always) misses of such inputs, which nearly equal columns cause too, were below 1 of 100. */
static double chance_of_a_lost_direction(const fs_spec *S, double n)
{
    const double blocks = S->family == FS_BLOCKPERM ? (double)S->M : 1, s = (double)S->s;
    if (S->family == FS_GAUSSIAN) return 0;
    return n * n / blocks * pow(s * blocks / (double)S->k / 2, (double)nonzeros(S));
}

/* Why residuals are not known to be in their interval; 0: they are. */
static int doubt_of_fit(const fs_workspace *w, const fsi_fit_facts *f, char *text, size_t bytes)
{
    const fs_spec *S = &w->made_by;
    const double k = (double)w->shape.k, p = f->freedom;
    const int gaussian = S->family == FS_GAUSSIAN;
    if (!S->size) return snprintf(text, bytes, "the S of the sketch is not known; set it with fs_workspace_set_sketch");
    if (S->family == FS_BLOCKROW) return snprintf(text, bytes, "%s", samples_rows);
    if (S->family == FS_SRHT) return snprintf(text, bytes, "%s", repeats_rows);
    if (S->family == FS_BLOCKPERM && S->shuffle != FS_SHUFFLE_ROWS)
        return snprintf(text, bytes, "the blocks of S are runs of rows of A (shuffle none, groups); take shuffle rows");
    if (!gaussian && nonzeros(S) < FEWEST_NONZEROS)
        return snprintf(text, bytes, "S has %" PRId64 " nonzeros in a column; take s = %d", nonzeros(S),
                        FEWEST_NONZEROS);
    if (!gaussian && k < 2 * p)
        return snprintf(text, bytes, "k = %.0f is less than twice the degrees of freedom, %.4g; take k >= %.0f", k, p,
                        ceil(2 * p));
    if (k - p < SPARE)
        return snprintf(text, bytes, "k = %.0f is less than %d above the degrees of freedom, %.4g; take k >= %.0f", k,
                        SPARE, p, ceil(p) + SPARE);
    /* A sparse S loses nothing of an A without dominant rows. */
    if (gaussian || f->unevenness <= uneven(k, p)) return 0;
    const double enough = fmax(4 * p, k * chance_of_a_lost_direction(S, (double)w->shape.n) / 0.0015);
    if (k < enough)
        return snprintf(text, bytes, "%s, and k = %.0f is too small for that; take k >= %.0f",
                        isnan(f->unevenness) ? "Y has not full rank" : "few rows of A dominate", k, ceil(enough));
    return 0;
}

/* The meaning of a rank below n where the sketch has n rows or more. */
static int explain_rank(const fs_workspace *w, int64_t rank, char *text, size_t bytes)
{
    const int64_t k = w->shape.k, n = w->shape.n;
    if (k < 2 * n)
        return snprintf(text, bytes,
                        "S A has rank %" PRId64 " < n = %" PRId64 ": either A has dependent columns or k = %" PRId64
                        " is too small for A; take k >= %" PRId64 " (2 n)",
                        rank, n, k, 2 * n);
    return snprintf(text, bytes,
                    "S A has rank %" PRId64 " < n = %" PRId64 ": A has dependent columns or, rarely, S has lost a "
                    "direction of A; sketch with another seed to find out",
                    rank, n);
}

int fsi_confidence_in_fit(const fs_workspace *w, const fsi_fit_facts *f, char *note, size_t bytes)
{
    static const char unknown[] = "the interval is not known: ";
    size_t at = 0;
    note[0] = 0;
    if (f->explain && f->rank < w->shape.n && w->shape.k >= w->shape.n) {
        at = (size_t)explain_rank(w, f->rank, note, bytes);
        at += (size_t)snprintf(note + at, bytes - at, "; ");
    }
    const size_t reason = at + sizeof unknown - 1;
    if (doubt_of_fit(w, f, note + reason, bytes - reason)) {
        memcpy(note + at, unknown, sizeof unknown - 1);
        return 0;
    }
    note[at ? at - 2 : 0] = 0;
    return 1;
}

int fsi_confidence_in_gram(const fs_sketch *S, char *note, size_t bytes)
{
    const char *doubt = NULL;
    if (!S) doubt = "S was not given";
    else if (S->spec.family == FSI_DEF_BLOCKROW) doubt = samples_rows;
    else if (S->spec.family == FSI_DEF_SRHT) doubt = repeats_rows;
    note[0] = 0;
    if (doubt) snprintf(note, bytes, "the bound is not known: %s", doubt);
    return !doubt;
}

double fsi_relative_fourth(const double *squares, int64_t count)
{
    double sum = 0, fourth = 0;
    for (int64_t i = 0; i < count; i++) sum += squares[i];
    for (int64_t i = 0; i < count && sum > 0; i++) fourth += squares[i] / sum * (squares[i] / sum);
    return (double)count * fourth;
}
