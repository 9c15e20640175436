/* cli.h - what the commands of flashsketch share: failures, numbers from the command line, memory, time.
 *
 * A command is a file cmd_NAME.c with one table (command.h) and a line in the list of main.c.  Its function has main's
 * signature (argv[0] is the command's own name) and returns the exit code: 0, EXIT_FAILURE (1), or EXIT_USAGE (2) for
 * a wrong command line.  Results go to stdout; stderr has one error message that says what to do, or the progress bar. */
#ifndef FSI_CLI_CLI_H
#define FSI_CLI_CLI_H

#include <flashsketch.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_USAGE = 2 };

/* Prints "flashsketch: message" on stderr; returns EXIT_FAILURE, so that a command ends with it. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same with the library's message for its last failure, without the name of the function that failed. */
int cli_library_fail(void);

/* The same with the name of its file in front. */
int cli_input_fail(const char *name);

/* The same for a wrong command line, followed by a reference to the help; returns EXIT_USAGE.  command may be NULL. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads an integer of `option` from low to high.  Returns 0, or EXIT_USAGE after printing what is wrong. */
int cli_number(const char *command, const char *option, const char *text, int64_t low, int64_t high, int64_t *number);

/* Reads a number of `option` between low and high, both excluded.  Returns as cli_number. */
int cli_real(const char *command, const char *option, const char *text, double low, double high, double *number);

/* Reads a number of bytes from low on, "64M": K, M, G and T stand for powers of 1024.  Returns as cli_number. */
int cli_size(const char *command, const char *option, const char *text, int64_t low, int64_t *bytes);

/* Reads a seed: 64 bits, decimal or 0x hexadecimal.  Returns as cli_number. */
int cli_seed(const char *command, const char *text, uint64_t *seed);

/* Whether a name ends in `ending` and is longer than that. */
int cli_ends_with(const char *name, const char *ending);

/* rows x cols items of `bytes` bytes each from malloc; NULL also when that many bytes cannot be counted. */
void *cli_array(int64_t rows, int64_t cols, size_t bytes);

/* The median of count >= 1 values, the lower of the two in the middle; sorts them. */
double cli_median(double *values, int count);

/* The type of sums of elements of a type: f64 for f64, otherwise f32. */
static inline fs_dtype cli_sum_dtype(fs_dtype dtype) { return dtype == FS_F64 ? FS_F64 : FS_F32; }

/* Seconds on the monotonic clock. */
double cli_seconds(void);

#endif
