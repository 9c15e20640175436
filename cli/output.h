/* output.h - a file that is either whole or not there.
 *
 * output_open makes a file beside the one asked for, so that a folder that is missing or closed to us is found out
 * before the work, not after it; output_close puts it in place in one step.  A signal that ends the program
 * (Ctrl-C) removes it.  One output is open at a time; it may have a second file beside it, and then both are put in
 * place or neither.  The path "-" is standard output, which is as whole as what reads it makes it; a terminal is
 * refused. */
#ifndef FLASHSKETCH_CLI_OUTPUT_H
#define FLASHSKETCH_CLI_OUTPUT_H

#include <stdio.h>

/* Returns the stream to write to, or NULL after printing why. */
FILE *output_open(const char *path);

/* Begins the second file, once the first is written: the name of the first and `suffix`.  Returns as output_open. */
FILE *output_beside(const char *suffix);

/* Puts the file in place, on the disk.  Returns 0, or EXIT_FAILURE after printing why; then nothing is left behind. */
int output_close(void);

/* Removes what processes that are no more have left beside a file: a signal that cannot be caught leaves it. */
void output_sweep(const char *path);

/* Removes what was written, if an output is open; for the ways out that are not the good one. */
void output_abandon(void);

#endif
