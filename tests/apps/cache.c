/* cache.c - a cache returns what was stored, to the bit, from whole files, and for the same inputs alone. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/grass/cache.h"
#include "tests/support/files.h"

static const char identity[] = "format 1\nseed 7\nepochs 50\n";

static void must(fs_result result)
{
    if (result != FS_OK) fail_msg("%s: %s", fs_result_name(result), fs_error_message());
}
static void expect_message(fs_result result, const char *words)
{
    assert_int_equal(result, FS_EFILE);
    if (!strstr(fs_error_message(), words)) fail_msg("no '%s' in: %s", words, fs_error_message());
}

static void what_is_kept_comes_back(void **state)
{
    cache c;
    float data[6] = {1, -2, 3.5f, 0x1p-149f, 5, 6}, back[6];
    fs_matrix m = fs_row_major(data, 2, 3, FS_F32), b = fs_row_major(back, 2, 3, FS_F32);
    int found = 1;
    (void)state;
    must(cache_open(&c, "kept", identity));
    must(cache_get(&c, "theta-0", &b, &found));
    assert_int_equal(found, 0);
    must(cache_put(&c, "theta-0", &m));
    cache_close(&c);
    must(cache_open(&c, "kept", identity));
    must(cache_get(&c, "theta-0", &b, &found));
    assert_int_equal(found, 1);
    assert_memory_equal(data, back, sizeof data);
    assert_int_not_equal(access("kept/theta-0.npy.part", F_OK), 0);
    b.rows = 3, b.cols = 2;
    expect_message(cache_get(&c, "theta-0", &b, &found),
                   "kept/theta-0.npy: the file holds 2 x 3 float32 by rows, it should be 3 x 2");
    cache_close(&c);
}

static void another_identity_is_refused_with_the_line_that_differs(void **state)
{
    cache c;
    (void)state;
    must(cache_open(&c, "named", identity));
    cache_close(&c);
    expect_message(cache_open(&c, "named", "format 1\nseed 7\nepochs 10\n"),
                   "named: its contents were computed with 'epochs 50', and this is 'epochs 10'");
    expect_message(cache_open(&c, "named", "format 1\nseed 7\nepochs 50\nmore 1\n"),
                   "computed with '', and this is 'more 1'");
    expect_message(cache_open(&c, "named", "format 2\nseed 7\nepochs 50\n"), "'format 1', and this is 'format 2'");
    must(cache_open(&c, "named", identity));
    cache_close(&c);
    expect_message(cache_open(&c, "no/folder", identity), "no/folder: the folder cannot be created");
    expect_message(cache_open(&c, "named/identity", identity), "named/identity: the folder cannot be read");
}

static void a_folder_in_use_is_refused(void **state)
{
    cache first, second;
    (void)state;
    must(cache_open(&first, "used", identity));
    expect_message(cache_open(&second, "used", identity), "used: the folder is in use by another process");
    cache_close(&first);
    must(cache_open(&second, "used", identity));
    cache_close(&second);
}

/* Files may not grow over 4096 bytes for a while: the write fails as on a full disk. */
static void a_write_that_fails_leaves_what_was_there(void **state)
{
    static float big[4096];
    cache c;
    struct rlimit all, few;
    float old = 3, back = 0;
    fs_matrix small = fs_row_major(&old, 1, 1, FS_F32), b = fs_row_major(&back, 1, 1, FS_F32),
              m = fs_row_major(big, 1, 4096, FS_F32);
    int found;
    (void)state;
    must(cache_open(&c, "full", identity));
    must(cache_put(&c, "x", &small));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    few = all;
    few.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    const fs_result result = cache_put(&c, "x", &m);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    expect_message(result, strerror(EFBIG));
    must(cache_get(&c, "x", &b, &found));
    assert_true(found && back == 3);
    assert_int_not_equal(access("full/x.npy.part", F_OK), 0);
    cache_close(&c);
}

/* Leftovers of a killed process: a part that was not renamed is not a file, and is written again. */
static void a_part_of_a_file_is_no_file(void **state)
{
    cache c;
    float data = 2, back;
    fs_matrix m = fs_row_major(&data, 1, 1, FS_F32), b = fs_row_major(&back, 1, 1, FS_F32);
    bytes junk = {.count = 0};
    int found = 1;
    (void)state;
    must(cache_open(&c, "killed", identity));
    put_text(&junk, "half of something");
    save(&junk, "killed/y.npy.part");
    save(&junk, "killed/y.npy.crc32");
    must(cache_get(&c, "y", &b, &found));
    assert_int_equal(found, 0);
    must(cache_put(&c, "y", &m));
    must(cache_get(&c, "y", &b, &found));
    assert_true(found && back == 2);
    save(&junk, "killed/y.npy");
    expect_message(cache_get(&c, "y", &b, &found), "killed/y.npy");
    cache_close(&c);
}

/* Every bit of an element counts; a checksum that is missing, cut or of another matrix is noticed. */
static void a_flipped_bit_is_noticed(void **state)
{
    cache c;
    float data[3] = {1, 2, 3}, back[3];
    fs_matrix m = fs_row_major(data, 1, 3, FS_F32), b = fs_row_major(back, 1, 3, FS_F32);
    int found;
    (void)state;
    must(cache_open(&c, "flipped", identity));
    must(cache_put(&c, "x", &m));
    must(cache_get(&c, "x", &b, &found));
    for (long at = 128; at < 140; at++)
        for (int bit = 0; bit < 8; bit++) {
            FILE *file = fopen("flipped/x.npy", "r+b");
            assert_non_null(file);
            assert_int_equal(fseek(file, at, SEEK_SET), 0);
            const int byte = fgetc(file);
            assert_int_equal(fseek(file, at, SEEK_SET), 0);
            fputc(byte ^ 1 << bit, file);
            fflush(file);
            expect_message(cache_get(&c, "x", &b, &found), "flipped/x.npy: its elements have CRC-32");
            assert_int_equal(fseek(file, at, SEEK_SET), 0);
            fputc(byte, file);
            fclose(file);
        }
    must(cache_get(&c, "x", &b, &found));
    assert_true(found);
    for (int i = 0; i < 4; i++) {
        static const char *const texts[] = {"", "crc32 ", "crc32 12 13\n", "sum 1\n"};
        bytes text = {.count = 0};
        put_text(&text, "%s", texts[i]);
        save(&text, "flipped/x.npy.crc32");
        expect_message(cache_get(&c, "x", &b, &found), "flipped/x.npy.crc32: this is not a checksum");
    }
    assert_true(cache_has("flipped", "x"));
    assert_int_equal(unlink("flipped/x.npy.crc32"), 0);
    must(cache_get(&c, "x", &b, &found));
    assert_true(!found && !cache_has("flipped", "x"));
    must(cache_put(&c, "x", &m));
    must(cache_get(&c, "x", &b, &found));
    assert_true(found && cache_remove("flipped", "x") && !cache_remove("flipped", "x"));
    assert_int_not_equal(access("flipped/x.npy", F_OK), 0);
    assert_int_not_equal(access("flipped/x.npy.crc32", F_OK), 0);
    cache_close(&c);
}

static void a_folder_without_checksums_is_refused(void **state)
{
    cache c;
    bytes before = {.count = 0};
    (void)state;
    must(cache_open(&c, "old", identity));
    cache_close(&c);
    put_text(&before, identity);
    save(&before, "old/identity");
    expect_message(cache_open(&c, "old", identity), "old: its contents have no checksums");
}

/* The folders made here, with what is in them. */
static int leave(void **state)
{
    static const char *const folders[] = {"kept", "named", "used", "full", "killed", "flipped", "old"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        DIR *d = opendir(folders[i]);
        char path[PATH_MAX];
        for (struct dirent *e; d && (e = readdir(d));) {
            snprintf(path, sizeof path, "%s/%s", folders[i], e->d_name);
            unlink(path);
        }
        if (d) closedir(d);
        rmdir(folders[i]);
    }
    return leave_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_comes_back),
        cmocka_unit_test(another_identity_is_refused_with_the_line_that_differs),
        cmocka_unit_test(a_folder_in_use_is_refused),
        cmocka_unit_test(a_write_that_fails_leaves_what_was_there),
        cmocka_unit_test(a_part_of_a_file_is_no_file),
        cmocka_unit_test(a_flipped_bit_is_noticed),
        cmocka_unit_test(a_folder_without_checksums_is_refused),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave);
}
