/* identity.c - any bytes as the description of a sketch (cli/identity.h): it is refused with a message, or what is read
 * is sound and, written again, reads the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/identity.h"
#include "flashsketch_extend.h"

static void check_failure(fs_result result)
{
    const char *message = fs_error_message();
    if ((result != FS_EFILE && result != FS_ENOMEM) || strncmp(message, "name: ", 6)) abort();
    for (; *message; message++)
        if (*message < 0x20 || *message > 0x7E) abort(); /* text of a file controls the terminal */
}

static void check(const identity *id)
{
    int64_t last = -1;
    if (id->count < 1 || id->n < 1 || id->spec.d < 1 || id->spec.k < 1) abort();
    for (int64_t i = 0; i < id->count; last = id->rows[i++].end)
        if (id->rows[i].first <= last || id->rows[i].end <= id->rows[i].first || id->rows[i].end > id->spec.d) abort();
    if (id->panels && (id->done < 1 || id->done > id->panels || id->files < 1)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const identity empty;
    identity id, again;
    (void)fs_fail(FS_OK, "%s", "");
    const fs_result result = identity_parse("name", (const char *)data, bytes, &id);
    if (result) {
        check_failure(result);
        if (memcmp(&id, &empty, sizeof id)) abort();
        return 0;
    }
    check(&id);
    char *text = identity_text(&id);
    if (!text || identity_parse("name", text, strlen(text), &again) || identity_agree("a", &id, "b", &again)) abort();
    if (again.count != id.count || again.files != id.files || again.panels != id.panels || again.crc != id.crc) abort();
    if (memcmp(again.rows, id.rows, (size_t)id.count * sizeof *id.rows)) abort();
    if (id.files && memcmp(again.file, id.file, (size_t)id.files * sizeof *id.file)) abort();
    free(text);
    identity_free(&id);
    identity_free(&again);
    return 0;
}
