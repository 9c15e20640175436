/* text.h - lines and numbers of files that are text (Matrix Market, CSV), with or without gzip. */
#ifndef FSI_FILES_FORMATS_TEXT_H
#define FSI_FILES_FORMATS_TEXT_H

#include "files/reader.h"

typedef struct text {
    reader_stream stream;
    const char *path;
    int64_t line;          /* the number of the current one, from 1 */
    int64_t at, filled;    /* the rest of the buffer */
    int64_t room, longest; /* bytes of the buffer, and of the longest line that is read */
    int ended;
    char *buffer; /* room + 1 bytes */
} text;

/* Lines of at most `longest` bytes.  Returns FS_OK, FS_EFILE or FS_ENOMEM; text_stop releases it in all cases. */
fs_result text_start(const reader_source *in, int64_t longest, text *t);
void text_stop(text *t);

/* The next line, ended with 0 instead of its newline, from *line to *end.  Returns 1, 0 at the end of the file, minus the
 * code after a failure. */
int text_line(text *t, char **line, char **end);

/* A number, correctly rounded, from p on, ended by 0 or by a character that no number contains.  Returns its end, NULL
 * if there is none or it is beyond f64. */
char *text_real(char *p, double *value);

#endif
