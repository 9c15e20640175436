/* temporary.h - the file in which the new contents of another file, the target, are written before they replace it.
 *
 * It is in the folder of its target, under the name flashsketch-HASH-RANDOM.part.  HASH is the 64-bit FNV-1a of the
 * target's last name, by which the leftovers of a target are found; so the name is short, however long the target's is.
 * RANDOM is 64 bits of the system's.
 *
 * Its process holds a lock (flock) on it for as long as it has it open, that is, until it closes it or ends.  A
 * temporary whose lock is free therefore belongs to no process, whatever their numbers are, and may be removed.
 *
 * A file system without locks refuses them to all processes.  There, temporaries are not locked and leftovers stay,
 * because they cannot be distinguished from the files of a process that runs.  NFS that was mounted with nolock or local_lock
 * grants locks that other machines do not see: there, two machines must not write one target at the same time. */
#ifndef FSI_CLI_TEMPORARY_H
#define FSI_CLI_TEMPORARY_H

#include <limits.h>

/* Creates a temporary for `target`; its name goes to path, which has PATH_MAX bytes.  Returns the file descriptor, open
 * for reading and writing and locked, or -1 with errno. */
int temporary_create(const char *target, char *path);

/* Gives a target that exists a second name, that of a temporary: a link to it, or where the file system has no links,
 * the file itself, which then loses its first name. *fd is the file, locked, or -1 where it cannot be read, and then no
 * sweep of this user removes it.  Returns 0, or -1 with errno. */
int temporary_keep(const char *target, char *path, int *fd);

/* Removes the temporaries of `target` that belong to no process. */
void temporary_sweep(const char *target);

/* The folder of a path, with its last '/'; "./" where it names none.  folder has PATH_MAX bytes.  Returns the last
 * name of the path. */
const char *temporary_folder(const char *path, char *folder);

#endif
