/* output.h - files that are written atomically.
 *
 * output_open creates a temporary beside the output (temporary.h), so that a folder that is missing or cannot be
 * written is reported before the work; output_close renames it, which is atomic.  A signal that ends the program
 * (Ctrl-C) removes the temporary; one that cannot be caught leaves it, and the next command that opens the same output
 * removes it.
 *
 * One output is open at a time.  It may have a second file beside it, or be several files: then all are renamed or
 * none, and of two processes that write the same output at once the later one's files remain.  (A process that is
 * killed between the two renames leaves the new second file beside the old first; the CRC-32 in the second detects
 * that.)
 *
 * A file that is replaced keeps its mode, and its owner and group as far as the system permits.  A symbolic link is
 * followed: the file that it names is replaced.  A hard link is not: the file gets a new inode, and its other names
 * keep the old contents.  ACLs and extended attributes are those of a new file.
 *
 * The path "-" is standard output, which is not atomic; a terminal is refused. */
#ifndef FSI_CLI_OUTPUT_H
#define FSI_CLI_OUTPUT_H

#include <stdint.h>
#include <stdio.h>

/* The files that a command writes beside an output FILE: FILE.json, which describes it, and the state of a run; a task
 * with a right-hand side has a second state, FILE.rhs.state. */
#define OUTPUT_IDENTITY ".json"
#define OUTPUT_STATE ".state"
#define OUTPUT_RHS ".rhs"

/* Returns the stream to write to, or NULL after printing why.  The first call in a process deletes the stale temporary
 * files of FILE and of the files beside it that dead processes have left. */
FILE *output_open(const char *path);

/* The same with a second file, whose name is `path` and `suffix`; with standard output there is none. */
FILE *output_open_two(const char *path, const char *suffix);

/* The stream of the second file; NULL: there is none. */
FILE *output_second(void);

/* Opens 1 to OUTPUT_MOST files; standard output can be the only one.  Returns 0, or EXIT_FAILURE after printing why not.
 */
enum { OUTPUT_MOST = 6 };
int output_open_several(const char *const *paths, int count);

/* The stream of file i. */
FILE *output_stream(int i);

/* Writes the next and last bytes of file i through memory: they are *memory, zeros until they are set, on the disk after
 * output_close, and there until output_abandon, which ends this.  *memory is NULL for standard output, which cannot be
 * mapped.  For matrices that may be larger than memory.  Returns 0, or EXIT_FAILURE after printing why not, for example
 * that the disk is full. */
int output_map(int i, int64_t bytes, void **memory);

/* Checks that `path` can be the name of an output, and is not a file that the command reads.  Returns 0, or
 * EXIT_FAILURE after printing why not. */
int output_check(const char *path);

/* Checks, as far as possible without writing, that output_open_two will succeed: the names, and that the folder exists
 * and may be written.  suffix NULL: there is no second file.  For an output that is opened after long work.  Returns as
 * output_check. */
int output_check_two(const char *path, const char *suffix);

/* Renames the files and flushes them to the disk.  Returns 0, or EXIT_FAILURE after printing why; then the old files
 * remain, and no temporary. */
int output_close(void);

/* Deletes the temporary files; call it on every path that does not end in output_close.  A no-op if no output is open. */
void output_abandon(void);

/* The same for a signal handler that ends the program: it only calls unlink, and closes no stream. */
void output_remove(void);

#endif
