/* claims.h - the files that a command reads, and those that it replaces: no file may be both.
 *
 * Files are compared by device and inode, so that a second name, a link or standard input finds the same file.  A
 * command claims its inputs before the work (input_paths does it for the files of A); output.c claims what it is going
 * to replace.  The second claim of a file is refused.
 *
 * A handler of SIGBUS, the signal of a read beyond the end of a mapped file, checks the inputs: where one was truncated
 * meanwhile, it prints which, with both sizes, removes the outputs and ends the program with exit code 1.  Any other
 * SIGBUS ends the program as it does without the handler. */
#ifndef FSI_CLI_CLAIMS_H
#define FSI_CLI_CLAIMS_H

#include <sys/stat.h>

/* Claims a file that is going to be read; "-" is standard input.  A file that does not exist is not claimed: opening it
 * fails with the reason.  Returns 0, or EXIT_FAILURE after printing that it is an output. */
int claims_input(const char *path);

/* The same for `path` and `suffix`: a file that is read beside another one. */
int claims_input_beside(const char *path, const char *suffix);

/* The same for the files of a folder, and of the folders in it, whose last names `is_input` accepts. */
int claims_input_folder(const char *path, int (*is_input)(const char *name));

/* Claims a file that is going to be replaced; `there` is what stat says of it.  Returns 0, or EXIT_FAILURE after
 * printing which input it is. */
int claims_output(const char *path, const struct stat *there);

/* Checks that no input has become shorter.  Returns 0, or EXIT_FAILURE after printing which one has. */
int claims_check(void);

#endif
