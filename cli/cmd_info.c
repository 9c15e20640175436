/* cmd_info.c - flashsketch info: a description of a file, or of this machine. */
#include <flashsketch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "cli.h"
#include "command.h"
#include "identity.h"
#include "json.h"
#include "variant.h"

typedef struct info_options {
    const char *tensor;
    int json;
} info_options;

enum { TENSOR = 256, JSON };

static int info_take(void *options, int code, const char *value)
{
    info_options *o = options;
    if (code == TENSOR) o->tensor = value;
    else o->json = 1;
    return 0;
}

/* a file ----------------------------------------------------------------------------------------------------- */

static void print_format(fs_file_format format, int gzip)
{
    printf("format    %s%s\n", fs_file_format_name(format), gzip ? ", gzip" : "");
}

static const char *shape_text(char text[160], int dimensions, const int64_t *size)
{
    snprintf(text, 160, "one");
    for (int i = 0, at = 0; i < dimensions && at < 160 - 24; i++)
        at += snprintf(text + at, 160 - (size_t)at, "%s%" PRId64, i ? " x " : "", size[i]);
    return text;
}

static void print_tensor(const fs_file_tensor *tensor)
{
    char name[160], dtype[16], shape[160];
    fs_file_printable(dtype, sizeof dtype, tensor->dtype);
    fs_file_printable(name, sizeof name, tensor->name);
    printf("tensor    %-5s %-16s %s\n", dtype, shape_text(shape, tensor->dimensions, tensor->shape), name);
}
/* A JSON number holds sizes below 2^53 exactly, which every array that fits its file has. */
static void add_shape(cJSON *out, int dimensions, const int64_t *size)
{
    cJSON *shape = cJSON_CreateArray();
    for (int i = 0; i < dimensions; i++) cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)size[i]));
    cJSON_AddItemToObject(out, "shape", shape);
}
static void add_tensor(cJSON *tensors, const fs_file_tensor *tensor)
{
    cJSON *one = cJSON_CreateObject();
    cJSON_AddStringToObject(one, "name", tensor->name);
    cJSON_AddStringToObject(one, "dtype", tensor->dtype);
    add_shape(one, tensor->dimensions, tensor->shape);
    cJSON_AddItemToArray(tensors, one);
}

static const char *order_of(const fs_file_info *file)
{
    if (file->is_sparse) return "sparse";
    return file->by_columns ? "columns contiguous" : "rows contiguous";
}

static void print_matrix(const fs_file_info *file)
{
    char shape[160];
    printf("stores    %s\n", file->stored);
    if (file->dimensions >= 0 && (file->dimensions != 2 || *file->why))
        printf("shape     %s\n", shape_text(shape, file->dimensions, file->shape));
    if (*file->why) {
        printf("matrix    none: %s\n", file->why);
        return;
    }
    printf("matrix    %" PRId64 " x %" PRId64 "\n", file->rows, file->cols);
    if (file->is_sparse)
        printf("entries   %" PRId64 " (%.3g to a row)\n", file->entries, (double)file->entries / (double)file->rows);
    printf("opened as %s, %s\n", fs_file_dtype_name(file->dtype), order_of(file));
}
static void add_matrix(cJSON *out, const fs_file_info *file)
{
    cJSON_AddStringToObject(out, "stored", file->stored);
    if (file->dimensions >= 0) add_shape(out, file->dimensions, file->shape);
    if (*file->why) {
        cJSON_AddStringToObject(out, "no_matrix", file->why);
        return;
    }
    json_whole(out, "rows", file->rows);
    json_whole(out, "cols", file->cols);
    if (file->is_sparse) json_whole(out, "entries", file->entries);
    cJSON_AddStringToObject(out, "dtype", fs_file_dtype_name(file->dtype));
    cJSON_AddStringToObject(out, "order", order_of(file));
}

/* S and the rows of a sketch; nothing for files without sketch metadata. */
static void print_identity(const identity *id)
{
    char text[256];
    fs_sketch *S = NULL;
    if (id->definition == fs_definition_version() && !fs_sketch_create(&S, &id->spec)) {
        fs_sketch_describe(S, text, sizeof text);
        printf("sketch by %s\n", text);
    } else printf("sketch by S of definition %" PRId64 ", which this flashsketch does not have\n", id->definition);
    fs_sketch_destroy(S);
    for (int64_t i = 0; i < id->count; i++)
        printf("%s %" PRId64 " to %" PRId64, i ? "," : "of rows  ", id->rows[i].first, id->rows[i].end - 1);
    printf(", of %" PRId64 "\n", id->spec.d);
    if (id->panels)
        printf("state     %" PRId64 " of %" PRId64 " panels are in it; its command with --resume continues from it\n",
               id->done, id->panels);
}
static void add_identity(cJSON *out, const identity *id)
{
    char *text = identity_text(id);
    cJSON_AddItemToObject(out, "sketch", text ? cJSON_CreateRaw(text) : NULL);
    free(text);
}

/* The description of a file. */
typedef struct about {
    fs_file *file;
    fs_file_info info;
    int is_list; /* its tensors are printed, not its matrix */
    identity id;
    int is_sketch;
    const char *note; /* of a FILE.json that does not describe this file; NULL: none */
} about;

static int print_text(const about *a)
{
    print_format(a->info.format, a->info.gzip);
    for (int64_t i = 0; a->is_list && i < a->info.tensors; i++) {
        fs_file_tensor tensor = FS_FILE_TENSOR_INIT;
        if (fs_file_get_tensor(a->file, i, &tensor)) return cli_library_fail();
        print_tensor(&tensor);
    }
    if (!a->is_list) print_matrix(&a->info);
    if (a->is_sketch) print_identity(&a->id);
    if (a->note) printf("note      %s\n", a->note);
    return 0;
}

static int print_json(const about *a)
{
    cJSON *out = cJSON_CreateObject();
    cJSON_AddStringToObject(out, "format", fs_file_format_name(a->info.format));
    cJSON_AddBoolToObject(out, "gzip", a->info.gzip);
    cJSON *tensors = a->is_list ? cJSON_AddArrayToObject(out, "tensors") : NULL;
    for (int64_t i = 0; a->is_list && i < a->info.tensors; i++) {
        fs_file_tensor tensor = FS_FILE_TENSOR_INIT;
        if (fs_file_get_tensor(a->file, i, &tensor)) {
            cJSON_Delete(out);
            return cli_library_fail();
        }
        add_tensor(tensors, &tensor);
    }
    if (!a->is_list) add_matrix(out, &a->info);
    if (a->is_sketch) add_identity(out, &a->id);
    if (a->note) cJSON_AddStringToObject(out, "note", a->note);
    return json_print(out);
}

/* Elements of npy and safetensors files are read only where a CRC-32 is to be compared; those of a pipe, to check its
 * length. */
static int open_about(about *a, const char *path, const info_options *o)
{
    fs_file_options options = FS_FILE_INIT;
    options.tensor = o->tensor;
    options.header_only = strcmp(path, "-") != 0;
    options.describe = 1;
    (void)claims_input(path); /* there is no output that it could collide with */
    if (fs_file_open(&a->file, path, &options) || fs_file_get_info(a->file, &a->info)) return cli_library_fail();
    const int64_t tensors = a->info.tensors;
    a->is_list = a->info.format == FS_FILE_SAFETENSORS ? !o->tensor : tensors > 1;
    if (!strcmp(path, "-") || !identity_find(path, a->file, &a->id, &a->is_sketch)) return 0;
    if (a->info.format != FS_FILE_NPY) return cli_library_fail();
    a->note = fs_error_message();
    return 0;
}

static int about_file(const char *path, const info_options *o)
{
    about a = {.info = FS_FILE_INFO_INIT};
    int code = open_about(&a, path, o);
    if (!code) code = o->json ? print_json(&a) : print_text(&a);
    identity_free(&a.id);
    fs_file_close(a.file);
    return code;
}

/* this machine ----------------------------------------------------------------------------------------------- */

typedef char line[400];
enum { MOST_GPUS = 64 };

/* The description of a context with these options, or the reason why there is none. */
static int info_describe(fs_backend_kind backend, int device, line text)
{
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    options.backend = backend;
    options.device = device;
    const int failed = fs_context_create(&ctx, &options) != FS_OK;
    if (failed) snprintf(text, sizeof(line), "%s", fs_error_message());
    else fs_context_describe(ctx, text, sizeof(line));
    fs_context_destroy(ctx);
    return !failed;
}

/* The variants of the CPU backend that this processor runs. */
static void variants(char *text, size_t bytes)
{
    size_t at = 0;
    for (int i = 0; variant_names[i]; i++) {
        fs_context *ctx = variant_context(variant_names[i]);
        if (ctx) at += (size_t)snprintf(text + at, bytes - at, "%s%s", at ? " " : "", variant_names[i]);
        fs_context_destroy(ctx);
    }
}

static int about_machine(int json)
{
    char cpu_variants[64] = "";
    line cpu, automatic, gpu;
    cJSON *out = json ? cJSON_CreateObject() : NULL, *gpus = json ? cJSON_CreateArray() : NULL;
    variants(cpu_variants, sizeof cpu_variants);
    info_describe(FS_BACKEND_CPU, 0, cpu);
    info_describe(FS_BACKEND_AUTO, 0, automatic);
    if (json) {
        json_versions(out);
        cJSON_AddStringToObject(out, "auto", automatic);
        cJSON_AddStringToObject(out, "cpu", cpu);
        cJSON_AddStringToObject(out, "cpu_variants", cpu_variants);
    } else {
        printf("flashsketch %s, definition of S %d\n", fs_version(), fs_definition_version());
        printf("auto      %s\ncpu       %s\nvariants  %s\n", automatic, cpu, cpu_variants);
    }
    int device = 0;
    for (; device < MOST_GPUS && info_describe(FS_BACKEND_CUDA, device, gpu); device++)
        if (json) cJSON_AddItemToArray(gpus, cJSON_CreateString(gpu));
        else printf("gpu       %s\n", gpu);
    if (!json) {
        if (device == 0) printf("gpu       none (%s)\n", gpu);
        return 0;
    }
    cJSON_AddItemToObject(out, "gpus", gpus);
    if (device == 0) cJSON_AddStringToObject(out, "no_gpu", gpu);
    return json_print(out);
}

static int info_run(int argc, char **argv)
{
    info_options o = {NULL, 0};
    const int code = cli_parse(&info_command, &argc, argv, info_take, &o);
    if (code) return code;
    if (argc > 2) return cli_usage(argv[0], "it takes one file, but got '%s' too", argv[2]);
    if (argc > 1) return about_file(argv[1], &o);
    if (o.tensor) return cli_usage(argv[0], "name the file that --tensor is in");
    return about_machine(o.json);
}

static const cli_option options[] = {
    {TENSOR, "tensor", "NAME", "safetensors, npz: describe this tensor or array alone", NULL},
    {JSON, "json", NULL, "print a JSON object", NULL},
    {0}};
const cli_command info_command = {
    "info",
    "[OPTION]... [FILE]",
    "describe a file, or this machine",
    "With a FILE ('-' is standard input): its format, type and shape, after checking all of it that can be checked;\n"
    "of a safetensors or npz file, its tensors or arrays; of a sketch, which S and which rows it is of.  'opened as'\n"
    "is the type that sketch reads it as; a file whose elements cannot be sketched is described too.  An array of\n"
    "more than two dimensions is the matrix of its first one by all the others: 10 x 4 x 5 is read as 10 x 20.\n"
    "Without a FILE: the versions, the CPU variants that run here and the GPUs.",
    options,
    NULL,
    info_run};
