/* names.c - the names of the public enumerations: one table for each, from value to name and back. */
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"

typedef struct enum_name {
    int value;
    const char *name;
    const char *alias; /* another spelling that is read, never written; NULL: none */
} enum_name;

static const enum_name families[] = {{FS_BLOCKPERM, "blockperm", NULL},
                                     {FS_SJLT, "sjlt", NULL},
                                     {FS_BLOCKROW, "blockrow", NULL},
                                     {FS_SRHT, "srht", NULL},
                                     {FS_GAUSSIAN, "gaussian", NULL}};
static const enum_name shuffles[] = {
    {FS_SHUFFLE_NONE, "none", NULL}, {FS_SHUFFLE_ROWS, "rows", NULL}, {FS_SHUFFLE_GROUPS, "groups", NULL}};
static const enum_name qualities[] = {{FS_QUALITY_FAST, "fast", NULL},
                                      {FS_QUALITY_DEFAULT, "default", NULL},
                                      {FS_QUALITY_HIGH, "high", NULL},
                                      {FS_QUALITY_GAUSSIAN, "gaussian", NULL}};
static const enum_name dtypes[] = {
    {FS_F32, "f32", "float32"}, {FS_F64, "f64", "float64"}, {FS_F16, "f16", "float16"}, {FS_BF16, "bf16", "bfloat16"}};
static const enum_name memories[] = {{FS_MEMORY_HOST, "host", NULL}, {FS_MEMORY_CUDA, "cuda", NULL}};
static const enum_name backends[] = {
    {FS_BACKEND_AUTO, "auto", NULL}, {FS_BACKEND_CPU, "cpu", NULL}, {FS_BACKEND_CUDA, "cuda", NULL}};
#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

static const char *name_of_value(const enum_name *table, int count, int value)
{
    for (int i = 0; i < count; i++)
        if (table[i].value == value) return table[i].name;
    return "unknown";
}

static fs_result value_of_name(const char *who, const enum_name *table, int count, const char *name, int *value)
{
    char names[200] = "";
    FSI_REQUIRE(name, "%s: name is NULL", who);
    for (int i = 0; i < count; i++) {
        if (!strcmp(name, table[i].name) || (table[i].alias && !strcmp(name, table[i].alias))) {
            *value = table[i].value;
            return FS_OK;
        }
        const size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s%s",
                 i == 0          ? ""
                 : i < count - 1 ? ", "
                                 : " or ",
                 table[i].name);
    }
    return fs_fail(FS_EINVAL, "%s: '%.100s' does not exist; it can be %s", who, name, names);
}

#define NAMES(noun, type, table) \
    const char *fs_##noun##_name(type value) { return name_of_value(table, COUNT(table), (int)value); }
/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot be in parentheses */
#define NAMES_BOTH_WAYS(noun, type, table) \
    NAMES(noun, type, table) \
    fs_result fs_##noun##_from_name(const char *name, type *value) \
    { \
        int found = 0; \
        FSI_REQUIRE(value, "fs_" #noun "_from_name: " #noun " is NULL"); \
        FSI_TRY(value_of_name("fs_" #noun "_from_name", table, COUNT(table), name, &found)); \
        *value = (type)found; \
        return FS_OK; \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
NAMES_BOTH_WAYS(family, fs_family, families)
NAMES_BOTH_WAYS(shuffle, fs_shuffle, shuffles)
NAMES_BOTH_WAYS(quality, fs_quality, qualities)
NAMES_BOTH_WAYS(dtype, fs_dtype, dtypes)
NAMES_BOTH_WAYS(backend, fs_backend_kind, backends)
NAMES(memory, fs_memory, memories)

size_t fs_dtype_size(fs_dtype dtype) { return fsi_dtype_known(dtype) ? (size_t)fsi_dtype_size(dtype) : 0; }
