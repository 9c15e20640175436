/* staging.c - matrices in host memory on a CUDA context: they pass through its staging buffers and give what the same
 * matrices in device memory give.  Data are integers, so that results are compared by ==. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

/* small, in all layouts ------------------------------------------------------------------------------------- */

/* The digits are recipe, types, layout and which of the two matrices is in host memory. */
static void check_small(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const int64_t widths[] = {1, 3, 17, 64, 130}, depths[] = {1, 33, 129, 1000};
    const recipe *R = &recipes[number % recipe_count];
    const uint64_t draw = bits_at(61, number);
    int64_t digits = number / recipe_count;
    const type_pair types = type_pairs[digits % TYPE_PAIRS];
    digits /= TYPE_PAIRS;
    call c = {.in = types.in, .out = types.out, .from = (layout)(digits % INPUT_LAYOUTS), .adjoint = draw % 3 == 0};
    digits /= INPUT_LAYOUTS;
    c.from_host = digits % 3 != 0;
    c.to_host = digits % 3 != 1;
    c.to = (layout)((draw >> 8) % OUTPUT_LAYOUTS);
    c.rows = depths[draw >> 16 & 3];
    c.n = widths[(draw >> 24) % 5];
    c.row0 = draw >> 32 & 1 ? 19 : 0;
    c.spec = spec_at(R, c.row0 + c.rows + 2, draw >> 33 & 1 ? 65 : 100, draw);
    draw_scalars(&c, draw >> 40);
    call_name(&c, R->name);
    call_check(l, &c);
}
static void matrices_in_host_memory_equal_ref(void **state)
{
    (void)state;
    for_each_case((int64_t)recipe_count * TYPE_PAIRS * INPUT_LAYOUTS * 3, 60, check_small, NULL);
}

/* larger than any staging buffer ---------------------------------------------------------------------------- */

enum { LINE = 128, HEIGHT = 1024, PERIOD = 1000003 };
static int64_t lines(void) { return small_set || dry ? 3000 : 600000; }
static int64_t buffer_bytes(void) { return lines() * LINE * 4; }

/* Views of one buffer of 600000 x 128 floats, 307 MB: packed, with padding on both sides of every line, and as two
 * samples that are longer than all staging memory. */
typedef enum shape { PACKED_ROWS, INNER_ROWS, PACKED_SAMPLES, INNER_SAMPLES, LONG_SAMPLES, SHAPES } shape;
static int64_t rows_of(shape how) { return how == LONG_SAMPLES ? lines() * LINE / 2 : lines(); }
static fs_matrix view_of(shape how, void *buffer, fs_memory memory)
{
    const int64_t across = lines() * LINE / rows_of(how);
    fs_matrix m = how < PACKED_SAMPLES ? fs_row_major(buffer, rows_of(how), across, FS_F32)
                                       : fs_batch_major(buffer, across, rows_of(how), FS_F32);
    if (how == INNER_ROWS) m.offset = 1, m.cols -= 3;
    if (how == INNER_SAMPLES) m.offset = 1, m.rows -= 5;
    m.size = lines() * LINE;
    m.memory = memory;
    return m;
}
static fs_sketch *sketch_for(shape how)
{
    const fs_shuffle shuffle = how < PACKED_SAMPLES ? FS_SHUFFLE_ROWS : FS_SHUFFLE_GROUPS;
    const recipe R = {"staged", FS_BLOCKPERM, shuffle, 16, 1, 4, shuffle == FS_SHUFFLE_GROUPS ? 16 : 0, 0, 0, 1};
    const fs_spec spec = spec_at(&R, rows_of(how), HEIGHT, 23);
    return sketch_of(&spec);
}
static void fill_buffer(float *buffer)
{
    const int64_t count = lines() * LINE, first = count < PERIOD ? count : PERIOD;
    for (int64_t e = 0; e < first; e++) buffer[e] = (float)whole_at(71, e, 8);
    for (int64_t filled = first; filled < count; filled *= 2)
        memcpy(buffer + filled, buffer, (size_t)(filled < count - filled ? filled : count - filled) * sizeof *buffer);
}

/* Y = Y + S A for a host A, with Y in host and in device memory, against both on the device. */
static void apply_law(int pinned)
{
    const lane *l = &lanes[0];
    float *host = pinned ? pinned_alloc(buffer_bytes()) : room(buffer_bytes(), 1);
    fill_buffer(host);
    void *device = device_alloc(l->stream, buffer_bytes());
    copy_in(l->stream, device, host, buffer_bytes());
    for (shape how = 0; how < SHAPES; how++) {
        char name[100];
        snprintf(name, sizeof name, "%s A, shape %d", pinned ? "pinned" : "pageable", (int)how);
        fs_sketch *S = sketch_for(how);
        const fs_matrix from_host = view_of(how, host, FS_MEMORY_HOST),
                        from_device = view_of(how, device, device_place());
        view Y = view_make(how < PACKED_SAMPLES ? ROWS_PADDED : COLUMNS_PADDED, HEIGHT, from_host.cols, FS_F32);
        fill_whole(&Y.m, 72, 8);
        view_seal(&Y);
        view want = view_copy(&Y), fetched = view_copy(&Y);
        mirror to = mirror_make(l, &Y), from_both = mirror_make(l, &Y);
        MUST(fs_apply(l->gpu, S, 0, 1.0, &from_device, 1.0, &from_both.m));
        MUST(fs_apply(l->gpu, S, 0, 1.0, &from_host, 1.0, &to.m));
        MUST(fs_apply(l->gpu, S, 0, 1.0, &from_host, 1.0, &Y.m));
        stream_wait(l->stream);
        mirror_fetch(l, name, &from_both, &want);
        mirror_fetch(l, name, &to, &fetched);
        expect_equal(name, &fetched.m, &want.m);
        expect_equal(name, &Y.m, &want.m);
        expect_padding_untouched(name, &Y);
        expect_padding_untouched(name, &fetched);
        mirror_free(l, &to), mirror_free(l, &from_both);
        view_free(&Y), view_free(&want), view_free(&fetched);
        fs_sketch_destroy(S);
    }
    device_free(l->stream, device);
    if (pinned) pinned_free(host);
    else free(host);
}
static void a_pageable_matrix_in_pieces_gives_what_the_device_gives(void **state)
{
    (void)state;
    apply_law(0);
}
static void a_pinned_matrix_in_pieces_gives_what_the_device_gives(void **state)
{
    (void)state;
    apply_law(1);
}

static void expect_same_floats(const char *name, const float *got, const float *want)
{
    const int64_t count = lines() * LINE;
    if (memcmp(got, want, (size_t)count * sizeof *got) == 0) return;
    for (int64_t e = 0; e < count; e++)
        if (got[e] != want[e])
            fail_msg("%s: element %" PRId64 " of the buffer is %g, it must be %g", name, e, (double)got[e],
                     (double)want[e]);
}

/* X = X / 2 + S' Y into a host X, with Y in host and in device memory, against both on the device.  The buffers hold
 * padding too, and must be the same everywhere. */
static void adjoint_law(int pinned)
{
    const lane *l = &lanes[0];
    float *host = pinned ? pinned_alloc(buffer_bytes()) : room(buffer_bytes(), 1), *want = room(buffer_bytes(), 1);
    void *device = device_alloc(l->stream, buffer_bytes());
    for (shape how = 0; how < SHAPES; how++) {
        fs_sketch *S = sketch_for(how);
        fill_buffer(host);
        copy_in(l->stream, device, host, buffer_bytes());
        fs_matrix to_host = view_of(how, host, FS_MEMORY_HOST), to_device = view_of(how, device, device_place());
        view Y = view_make(how < PACKED_SAMPLES ? ROWS : COLUMNS, HEIGHT, to_host.cols, FS_F32);
        fill_whole(&Y.m, 73, 8);
        mirror from = mirror_make(l, &Y);
        MUST(fs_apply_adjoint(l->gpu, S, 0, 1.0, &from.m, 0.5, &to_device));
        stream_wait(l->stream);
        copy_out(l->stream, want, device, buffer_bytes());
        for (int from_host = 0; from_host < 2; from_host++) {
            char name[100];
            snprintf(name, sizeof name, "%s X, shape %d, Y in %s memory", pinned ? "pinned" : "pageable", (int)how,
                     from_host ? "host" : "device");
            fill_buffer(host);
            MUST(fs_apply_adjoint(l->gpu, S, 0, 1.0, from_host ? &Y.m : &from.m, 0.5, &to_host));
            expect_same_floats(name, host, want);
        }
        mirror_free(l, &from);
        view_free(&Y);
        fs_sketch_destroy(S);
    }
    device_free(l->stream, device);
    free(want);
    if (pinned) pinned_free(host);
    else free(host);
}
static void an_adjoint_into_pageable_memory_gives_what_the_device_gives(void **state)
{
    (void)state;
    adjoint_law(0);
}
static void an_adjoint_into_pinned_memory_gives_what_the_device_gives(void **state)
{
    (void)state;
    adjoint_law(1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_in_host_memory_equal_ref),
        cmocka_unit_test(a_pageable_matrix_in_pieces_gives_what_the_device_gives),
        cmocka_unit_test(a_pinned_matrix_in_pieces_gives_what_the_device_gives),
        cmocka_unit_test(an_adjoint_into_pageable_memory_gives_what_the_device_gives),
        cmocka_unit_test(an_adjoint_into_pinned_memory_gives_what_the_device_gives),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
