/* zip.h - the directory of a zip archive, for npz.c.  Every field is checked before it is used.
 *
 * At the end of the file is the end record, before it the central directory: an entry for each member with its name,
 * compression, sizes, CRC-32 and the offset of its local header, which repeats them and precedes the member's bytes.
 * zip64 adds 64-bit numbers in further records and fields.  (PKWARE's APPNOTE.TXT, 4.3 to 4.5.) */
#ifndef FSI_FILES_FORMATS_ZIP_H
#define FSI_FILES_FORMATS_ZIP_H

#include "files/reader.h"

typedef struct zip_member {
    char *name;        /* as in the archive, ended with 0; it contains no 0 */
    int method, flags; /* 0 stored, 8 deflated */
    uint32_t crc;
    int64_t packed, bytes; /* in the file, and decompressed */
    int64_t start;         /* of its bytes in the file */
} zip_member;

typedef struct zip_archive {
    int64_t count;
    zip_member *members; /* in the order of the directory; their names are different */
    char *names;
} zip_archive;

/* Reads the directory and checks it, and every local header against it.  Returns FS_OK, FS_EFILE or FS_ENOMEM;
 * zip_close releases it in all cases. */
fs_result zip_open(const reader_source *in, zip_archive *zip);
void zip_close(zip_archive *zip);

/* The member of a name, NULL where there is none. */
const zip_member *zip_find(const zip_archive *zip, const char *name);

/* The bytes of a member, unpacked; in->path is what messages call it.  Returns as reader_start. */
fs_result zip_start(const reader_source *in, const zip_member *member, reader_stream *stream);

/* Checks that all bytes of a member have been read and have its CRC-32.  Returns FS_OK, FS_EFILE or FS_ENOMEM. */
fs_result zip_finish(const zip_member *member, reader_stream *stream);

#endif
