/* zip.h - the directory of a zip archive, for npz.c.  Every field is checked before it is used.
 *
 * At the end of the file stands the end record, before it the central directory: an entry for each member with its
 * name, packing, sizes, CRC-32 and where its local header is; that repeats them, and the member's bytes follow it.
 * zip64 has 64-bit numbers in records and fields beside these.  (PKWARE's APPNOTE.TXT, 4.3 to 4.5.) */
#ifndef FSI_FILES_FORMATS_ZIP_H
#define FSI_FILES_FORMATS_ZIP_H

#include "files/reader.h"

typedef struct zip_member {
    char *name;        /* as it is in the archive, ended with 0; it holds no 0 */
    int method, flags; /* 0 stored, 8 deflated */
    uint32_t crc;
    int64_t packed, bytes; /* in the file, and unpacked */
    int64_t start;         /* of its bytes in the file */
} zip_member;

typedef struct zip_archive {
    int64_t count;
    zip_member *members; /* in the order of the directory; their names are different */
    char *names;
} zip_archive;

/* Reads the directory and checks it, and every local header against it.  Returns FS_OK, FS_EFILE or FS_ENOMEM;
 * zip_close is for both. */
fs_result zip_open(const reader_source *in, zip_archive *zip);
void zip_close(zip_archive *zip);

/* The member of a name, NULL where there is none. */
const zip_member *zip_find(const zip_archive *zip, const char *name);

/* The bytes of a member, unpacked; in->path is what messages call it.  Returns as reader_start. */
fs_result zip_start(const reader_source *in, const zip_member *member, reader_stream *stream);

/* That all bytes of a member have been read and are those that were packed.  Returns FS_OK, FS_EFILE or FS_ENOMEM. */
fs_result zip_finish(const zip_member *member, reader_stream *stream);

#endif
