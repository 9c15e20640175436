/* check.h - what the tests of ranks share.
 *
 * A property that is broken on one rank ends all of them: a rank that only left the test would leave the others
 * waiting. */
#ifndef FSI_TESTS_MPI_CHECK_H
#define FSI_TESTS_MPI_CHECK_H

#include <stdint.h>

#include "base/dtype.h"
#include "flashsketch_mpi.h"
#include "flashsketch_tasks.h"

extern int rank, ranks; /* of MPI_COMM_WORLD */

/* Ends all ranks after a message unless the condition holds. */
#define EXPECT(condition, ...) \
    do { \
        if (!(condition)) give_up(__FILE__, __LINE__, #condition, __VA_ARGS__); \
    } while (0)
_Noreturn void give_up(const char *file, int line, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The call succeeds on this rank. */
#define MUST(call) EXPECT((call) == FS_OK, "%s", fs_error_message())

/* The call fails on all ranks with this code and one message, which has these words. */
#define REFUSED(call, code, ...) \
    refused((call), (code), __FILE__, __LINE__, #call, (const char *const[]){__VA_ARGS__, NULL})
void refused(fs_result result, fs_result code, const char *file, int line, const char *call, const char *const *words);

/* Begins and ends MPI and a test program; properties are run by main in the same order on all ranks. */
void begin(int *argc, char ***argv);
int end(const char *name);

fs_context *cpu(void);
fs_sketch *sketch(const fs_spec *spec);
fs_mpi *make_ranks(fs_context *ctx, fs_mpi_output output, int root, int ordered, int64_t tile);

/* `count` items of memory that is never NULL. */
void *room(int64_t count, size_t bytes);

/* Entry i of stream `seed`: an integer from -8 to 8; a number from -1 to 1 with all bits. */
double whole_at(uint64_t seed, int64_t i);
double real_at(uint64_t seed, int64_t i);

#endif
