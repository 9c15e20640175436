/* idx.h - reads IDX files of bytes (the format of MNIST), with or without gzip, and trusts nothing in them.
 *
 * The format, big-endian: two zero bytes, a type (0x08: unsigned bytes, the only one read here), the number of
 * dimensions, a 32-bit size for each, then the values, the last dimension fastest. */
#ifndef FLASHSKETCH_CLI_IDX_H
#define FLASHSKETCH_CLI_IDX_H

#include <stdint.h>

/* Reads at most max_rows rows (the first dimension) of a file of 2 to 4 dimensions as a rows x cols row-major
 * matrix, values / 255; cols is the product of the other sizes, 1 to max_cols.  The whole file is read and must be
 * as long as its header says.  Returns 0 and memory for free(), or EXIT_FAILURE after printing what is wrong. */
int idx_read(const char *path, int64_t max_rows, int64_t max_cols, float **data, int64_t *rows, int64_t *cols);

#endif
