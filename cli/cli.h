/* cli.h - what the commands of flashsketch share: the table of commands, failures, numbers from the command line.
 *
 * A command is a file cmd_NAME.c with one function of main's signature (argv[0] is the command's own name) and a
 * line in the table of main.c.  It returns the exit code: 0, EXIT_FAILURE (1), or EXIT_USAGE (2) for a wrong
 * command line.  Results go to stdout; stderr has one sentence that says what to do, or the progress bar. */
#ifndef FLASHSKETCH_CLI_H
#define FLASHSKETCH_CLI_H

#include <stddef.h>
#include <stdint.h>

enum { EXIT_USAGE = 2 };

int cmd_demo(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* Prints "flashsketch: sentence" on stderr; returns EXIT_FAILURE, so that a command ends with it. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a wrong command line, followed by where the help is; returns EXIT_USAGE.  command may be NULL. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What getopt_long did not understand, said in a sentence: choice is what it returned ('?', or ':' for a missing
 * argument).  Commands set opterr to 0 and start their short options with ':'.  Returns EXIT_USAGE. */
int cli_bad_option(int choice, char **argv);

/* Reads a whole number of `option` from low to high.  Returns 0, or EXIT_USAGE after saying what was wrong. */
int cli_number(const char *command, const char *option, const char *text, int64_t low, int64_t high, int64_t *number);

/* Reads a seed: 64 bits, decimal or 0x hexadecimal.  Returns as cli_number. */
int cli_seed(const char *command, const char *text, uint64_t *seed);

/* rows x cols things of `bytes` bytes each from malloc; NULL also when that many bytes cannot be counted. */
void *cli_array(int64_t rows, int64_t cols, size_t bytes);

/* The median of count >= 1 values, the lower of the two in the middle; sorts them. */
double cli_median(double *values, int count);

/* Seconds on a clock that only goes forward. */
double cli_seconds(void);

#endif
