/* nonfinite.c - an Inf or NaN in A reaches exactly the rows of Y where its column of S is stored; sums that overflow do
 * what ref's do.  For every kind of kernel: both orders, few columns and many, all types. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

/* Columns and order of A: few columns, a tile and a bit, both ways for tensor cores, and more tiles than a GPU has
 * SMs; tall: as many rows as it takes until few columns have a kernel of their own, or (2) blocks of 64 rows
 * have, or (3) narrow tiles of two-byte elements, which are one for each SM, or (4) in seven slices. */
static const struct {
    layout how;
    int64_t n;
    int tall;
} places[] = {
    {ROWS, 1, 0},     {ROWS, 19, 0},    {ROWS, 128, 0},    {ROWS, 132, 0},      {COLUMNS, 1, 0},
    {COLUMNS, 19, 0}, {COLUMNS, 64, 0}, {COLUMNS, 128, 0}, {ROWS_SPREAD, 7, 0}, {ROWS, 1, 1},
    {COLUMNS, 5, 1},  {ROWS, 20, 2},    {ROWS, 8712, 0},   {ROWS, 1000, 3},     {ROWS, 504, 4},
};
enum { D = 1333, K = 257, SMALL_D = 333, SMALL_K = 65, TALL_D = 32801, WIDE_D = 2101, PARTS_D = 7301 };

/* The signs with which the rows of the result read an element's row; 0 where they do not.  T is S, exported. */
static signed char *signs_of(const call *c, const fs_sparse *T, int64_t element)
{
    const int64_t *ptr = T->ptr, *index = T->index;
    const double *value = T->value;
    signed char *sign = memset(room(call_out_rows(c), 1), 0, (size_t)call_out_rows(c));
    for (int64_t i = 0; i < T->rows; i++)
        for (int64_t e = ptr[i]; e < ptr[i + 1]; e++)
            if ((c->adjoint ? i : index[e]) == element) sign[c->adjoint ? index[e] : i] = value[e] < 0 ? -1 : 1;
    return sign;
}

static call call_at(int64_t number, int adjoint, const recipe *R)
{
    const type_pair types = type_pairs[number / recipe_count % TYPE_PAIRS];
    call c = {.adjoint = adjoint, .in = types.in, .out = types.out, .alpha = 1};
    const int64_t place = number / recipe_count / TYPE_PAIRS % COUNT(places);
    c.from = c.to = places[place].how;
    c.n = places[place].n;
    const int tall = R->family == FS_BLOCKPERM ? places[place].tall : 0;
    c.rows = tall == 4 ? PARTS_D : tall == 3 ? WIDE_D : tall ? TALL_D : small_set || c.n > D ? SMALL_D : D;
    if (c.from == COLUMNS && c.n >= 64) c.rows -= c.rows % 4; /* whole 16 bytes, for tensor cores */
    const int64_t k = small_set ? SMALL_K : K;
    c.spec = spec_at(R, c.rows, places[place].tall >= 2 ? k - 1 : k, 13);
    call_name(&c, R->name);
    return c;
}

/* one ------------------------------------------------------------------------------------------------------- */

static void check_one(const lane *l, int64_t number, const void *adjoint)
{
    static const double poisons[] = {INFINITY, -INFINITY, NAN};
    const call c = call_at(number, *(const int *)adjoint, &recipes[number % recipe_count]);
    const uint64_t draw = bits_at(3, number);
    const int64_t row = (int64_t)(draw % (uint64_t)call_in_rows(&c)), col = (int64_t)((draw >> 32) % (uint64_t)c.n);
    const double poison = poisons[(draw >> 60) % 3];
    fs_sketch *S = sketch_of(&c.spec);
    fs_sparse T = export_columns(S, 0, c.spec.d, FS_INDEX64, FS_F64);
    signed char *sign = signs_of(&c, &T, row);
    sparse_free(&T);
    view A = call_input(&c);
    put(&A.m, row, col, 5.0);
    view clean = call_on_device(l, &c, l->gpu, &A);
    put(&A.m, row, col, poison);
    view Y = call_on_device(l, &c, l->gpu, &A);
    for (int64_t i = 0; i < Y.m.rows; i++)
        for (int64_t j = 0; j < c.n; j++) {
            const double y = at(&Y.m, i, j), good = at(&clean.m, i, j);
            if (j == col && sign[i] ? isfinite(y) : y != good)
                fail_msg("%s: %g at %" PRId64 ", %" PRId64 " makes %" PRId64 ", %" PRId64 " %g, %s", c.name, poison,
                         row, col, i, j, y, j == col && sign[i] ? "which it must reach" : "which it must not touch");
        }
    free(sign);
    view_free(&A), view_free(&clean), view_free(&Y);
    fs_sketch_destroy(S);
}
static int64_t all_cases(void) { return (int64_t)recipe_count * TYPE_PAIRS * COUNT(places); }
static void a_non_finite_element_of_A_reaches_its_rows_and_no_others(void **state)
{
    (void)state;
    const int adjoint = 0;
    for_each_case(all_cases(), 60, check_one, &adjoint);
}
static void a_non_finite_element_of_Y_reaches_its_rows_of_the_adjoint_and_no_others(void **state)
{
    (void)state;
    const int adjoint = 1;
    for_each_case(all_cases(), 40, check_one, &adjoint);
}

/* two ------------------------------------------------------------------------------------------------------- */

/* Another row of A that some row of S, *meeting, reads beside one whose signs are given; -1 if there is none. */
static int64_t partner(const fs_sparse *T, int64_t first, const signed char *sign, int64_t *meeting)
{
    const int64_t *ptr = T->ptr, *index = T->index;
    for (int64_t i = 0; i < T->rows; i++)
        for (int64_t e = ptr[i]; sign[i] && e < ptr[i + 1]; e++)
            if (index[e] != first) {
                *meeting = i;
                return index[e];
            }
    return -1;
}

/* A is 0 but for two elements of a column, x times the signs with which S reads them into the row where they meet, the
 * second times `turn`. */
typedef struct pair {
    int64_t meeting, col;
    view A;
} pair;
static int make_pair(pair *p, const call *c, const fs_sketch *S, uint64_t draw, double x, double turn)
{
    fs_sparse T = export_columns(S, 0, c->spec.d, FS_INDEX64, FS_F64);
    const int64_t first = (int64_t)(draw % (uint64_t)c->rows);
    signed char *one = signs_of(c, &T, first), *two = NULL;
    const int64_t second = partner(&T, first, one, &p->meeting);
    if (second >= 0) {
        two = signs_of(c, &T, second);
        p->col = (int64_t)((draw >> 32) % (uint64_t)c->n);
        p->A = view_make(c->from, c->rows, c->n, c->in);
        for (int64_t i = 0; i < c->rows; i++)
            for (int64_t j = 0; j < c->n; j++) put(&p->A.m, i, j, 0.0);
        put(&p->A.m, first, p->col, one[p->meeting] * x);
        put(&p->A.m, second, p->col, two[p->meeting] * turn * x);
    }
    sparse_free(&T);
    free(one), free(two);
    return second >= 0;
}

static void check_infinities(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const call c = call_at(number, 0, &recipes[number % recipe_count]);
    fs_sketch *S = sketch_of(&c.spec);
    pair p;
    if (make_pair(&p, &c, S, bits_at(4, number), INFINITY, -1.0)) {
        view Y = call_on_device(l, &c, l->gpu, &p.A);
        const double y = at(&Y.m, p.meeting, p.col);
        if (!isnan(y)) fail_msg("%s: Inf and -Inf make row %" PRId64 " %g, not NaN", c.name, p.meeting, y);
        view_free(&Y), view_free(&p.A);
    }
    fs_sketch_destroy(S);
}
static void opposite_infinities_that_meet_give_NaN(void **state)
{
    (void)state;
    for_each_case(all_cases(), 40, check_infinities, NULL);
}

/* overflow -------------------------------------------------------------------------------------------------- */

static double largest(fs_dtype t)
{
    return t == FS_F64 ? DBL_MAX : t == FS_F32 ? FLT_MAX : t == FS_F16 ? 65504.0 : 0x1.FEp127;
}

/* With two elements that are not 0 every sum has at most two terms and one order.  The largest number alone, twice, and
 * against itself: infinities and zeros must be ref's exactly, other numbers nearly.  Dense families are left out: a
 * fast Hadamard transform adds up other things on the way. */
static void check_overflow(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const struct {
        double part, turn;
    } forms[] = {{1, 1}, {1, -1}, {1, 0}, {0.75, 1}, {0.5, 1}};
    const recipe *R = &recipes[number % recipe_count];
    if (R->family != FS_BLOCKPERM && R->family != FS_SJLT) return;
    const call c = call_at(number, 0, R);
    const double slack = fsi_dtype_size(c.out) == 2 ? 0x1p-7 : 0x1p-20;
    fs_sketch *S = sketch_of(&c.spec);
    for (int64_t f = 0; f < COUNT(forms); f++) {
        pair p;
        if (!make_pair(&p, &c, S, bits_at(5, number), forms[f].part * largest(c.in), forms[f].turn)) continue;
        view Y = call_on_device(l, &c, l->gpu, &p.A), want = call_output(&c);
        MUST(call_run(&c, l->ref, S, &p.A.m, &want.m));
        for (int64_t i = 0; i < Y.m.rows; i++)
            for (int64_t j = 0; j < c.n; j++) {
                const double y = at(&Y.m, i, j), w = at(&want.m, i, j);
                if (!(y == w || (isfinite(w) && fabs(y - w) <= slack * fabs(w))))
                    fail_msg("%s, %g times the largest number and %g times that: row %" PRId64 ", column %" PRId64
                             " is %g, ref's is %g",
                             c.name, forms[f].part, forms[f].turn, i, j, y, w);
            }
        view_free(&Y), view_free(&want), view_free(&p.A);
    }
    fs_sketch_destroy(S);
}
static void sums_of_the_largest_numbers_overflow_as_in_ref(void **state)
{
    (void)state;
    for_each_case(all_cases(), 40, check_overflow, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_non_finite_element_of_A_reaches_its_rows_and_no_others),
        cmocka_unit_test(a_non_finite_element_of_Y_reaches_its_rows_of_the_adjoint_and_no_others),
        cmocka_unit_test(opposite_infinities_that_meet_give_NaN),
        cmocka_unit_test(sums_of_the_largest_numbers_overflow_as_in_ref),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
