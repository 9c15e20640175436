/* safetensors_write.c - one tensor and one text written as a safetensors file (safetensors.c describes the format). */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "files/reader.h"

/* The header, released by free; NULL where there is no memory for it. */
static char *header_of(const fs_matrix *m, const char *tensor, const char *key, const char *text)
{
    static const char *const types[] = {"?", "F32", "F64", "F16", "BF16"};
    const double shape[] = {(double)m->rows, (double)m->cols}; /* below 2^53, as is every product that is in memory */
    const double ends[] = {0, (double)(m->rows * m->cols * fsi_dtype_size(m->dtype))};
    cJSON *all = cJSON_CreateObject();
    cJSON *one = cJSON_AddObjectToObject(all, tensor);
    cJSON_AddStringToObject(one, "dtype", types[m->dtype]);
    cJSON_AddItemToObject(one, "shape", cJSON_CreateDoubleArray(shape, 2));
    cJSON_AddItemToObject(one, "data_offsets", cJSON_CreateDoubleArray(ends, 2));
    cJSON *notes = cJSON_AddObjectToObject(all, "__metadata__");
    cJSON *note = cJSON_AddStringToObject(notes, key, text);
    char *header = note ? cJSON_PrintUnformatted(all) : NULL;
    cJSON_Delete(all);
    return header;
}

fs_result file_write_safetensors(FILE *out, const fs_matrix *m, const char *tensor, const char *key, const char *text)
{
    enum { CHUNK = 4096, UNIT = 8 };
    char *header = header_of(m, tensor, key, text);
    if (!header) return out_of_memory("no memory for the header of a safetensors file");
    const size_t length = strlen(header), padded = (length + UNIT - 1) / UNIT * UNIT;
    for (int i = 0; i < 8; i++) fputc((int)((uint64_t)padded >> 8 * i & 0xFF), out);
    fwrite(header, 1, length, out);
    for (size_t i = length; i < padded; i++) fputc(' ', out);
    free(header);
    const int64_t element = fsi_dtype_size(m->dtype), count = m->rows * m->cols;
    const file_kind little = reader_kind_of(m->dtype); /* to this order and from it is the same exchange */
    for (int64_t i = 0; i < count; i += CHUNK) {
        char chunk[CHUNK * 8];
        const int64_t n = count - i < CHUNK ? count - i : CHUNK;
        reader_convert(&little, (const char *)m->data + i * element, n, chunk);
        fwrite(chunk, (size_t)element, (size_t)n, out);
    }
    return 0;
}
