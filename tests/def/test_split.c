/* test_split.c - [n] in parts: contiguous, in order, sizes that differ by at most one, nothing left over. */
#include "property.h"

static void check_part(int64_t n, int64_t parts, int64_t i)
{
    const fsi_split p = fsi_split_make(n, parts);
    const int64_t start = fsi_split_start(&p, i), size = fsi_split_size(&p, i);
    HOLDS(size == n / parts || (size == n / parts + 1 && i < n % parts), I64 " in " I64 ": part " I64 " has " I64, n,
          parts, i, size);
    HOLDS(fsi_split_start(&p, i + 1) == start + size,
          I64 " in " I64 ": part " I64 " starts at " I64 " and has " I64 ", the next starts at " I64, n, parts, i,
          start, size, fsi_split_start(&p, i + 1));
    if (size == 0) return;
    const int64_t first = fsi_split_index(&p, start), last = fsi_split_index(&p, start + size - 1);
    HOLDS(first == i && last == i, I64 " in " I64 ": the ends of part " I64 " are in parts " I64 " and " I64, n, parts,
          i, first, last);
}

static void parts_tile_n_and_part_inverts_start(void **state)
{
    (void)state;
    for (int64_t n = 0; n <= 200; n++)
        for (int64_t parts = 1; parts <= 220; parts++) {
            const fsi_split p = fsi_split_make(n, parts);
            for (int64_t i = 0; i < parts; i++) check_part(n, parts, i);
            HOLDS(fsi_split_start(&p, 0) == 0 && fsi_split_start(&p, parts) == n,
                  I64 " in " I64 ": from " I64 " to " I64, n, parts, fsi_split_start(&p, 0),
                  fsi_split_start(&p, parts));
        }
}

static void the_largest_sizes_do_not_overflow(void **state)
{
    static const int64_t n[] = {FSI_MAX_D, FSI_MAX_D - 1, FSI_MAX_K, 1},
                         parts[] = {1, 3, 1 << 20, FSI_MAX_K - 1, FSI_MAX_K};
    (void)state;
    for (int a = 0; a < COUNT(n); a++)
        for (int b = 0; b < COUNT(parts); b++)
            for (int64_t t = 0; t < 1000; t++) check_part(n[a], parts[b], (parts[b] - 1) / 999 * t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_tile_n_and_part_inverts_start),
        cmocka_unit_test(the_largest_sizes_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
