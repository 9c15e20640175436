/* digest.c - the test vectors, computed again from src/def alone.
 *
 *     digest vectors.txt            compares every digest of the file with a fresh one
 *     digest --print vectors.txt    prints the file with fresh digests, to make a new version of it
 *
 * In the common subset of C11 and C++17, so that gcc, clang, g++ and nvcc's host pass compile this file: that
 * their digests agree is the proof that S does not depend on the compiler. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "def/def.h"

typedef struct vector {
    fsi_def_spec spec;
    int64_t col0, cols;
    uint64_t digest;
} vector;

static const char *const families[] = {"blockperm", "sjlt", "blockrow", "srht", "gaussian"};
static const char *const shuffles[] = {"none", "rows", "groups"};

/* The place of `name` in `names`, counted from 1 as the definition's enums are; 0 if it is not there. */
static int32_t number_of(const char *name, const char *const *names, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0) return i + 1;
    return 0;
}

static int read_vector(const char *line, vector *v)
{
    char family[16], shuffle[16];
    fsi_def_spec *p = &v->spec;
    const int fields = sscanf(line,
                              "%15s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %15s %" SCNd64
                              " %" SCNx64 " %" SCNd64 " %" SCNd64 " %" SCNx64,
                              family, &p->d, &p->k, &p->M, &p->kappa, &p->s, shuffle, &p->interleave, &p->seed,
                              &v->col0, &v->cols, &v->digest);
    if (fields != 12) return 0;
    p->quality = 0;
    p->family = number_of(family, families, 5);
    p->shuffle = number_of(shuffle, shuffles, 3);
    return p->family && p->shuffle && v->col0 >= 0 && v->cols >= 1 && v->col0 + v->cols <= p->d;
}

static void print_vector(const vector *v, uint64_t digest)
{
    const fsi_def_spec *p = &v->spec;
    printf("%-9s %15" PRId64 " %10" PRId64 " %7" PRId64 " %2" PRId64 " %2" PRId64 " %-6s %2" PRId64,
           families[p->family - 1], p->d, p->k, p->M, p->kappa, p->s, shuffles[p->shuffle - 1], p->interleave);
    printf(" 0x%016" PRIx64 " %15" PRId64 " %4" PRId64 " 0x%016" PRIx64 "\n", p->seed, v->col0, v->cols, digest);
}

int main(int argc, char **argv)
{
    const int print = argc == 3 && strcmp(argv[1], "--print") == 0;
    FILE *file = argc == 2 || print ? fopen(argv[argc - 1], "r") : NULL;
    if (!file) {
        fprintf(stderr, "usage: digest [--print] vectors.txt\n");
        return 2;
    }
    char line[512];
    int passed = 0, failed = 0;
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        vector v;
        if (line[0] == '#' || line[0] == '\n') {
            if (print) fputs(line, stdout);
            continue;
        }
        if (!read_vector(line, &v)) {
            fprintf(stderr, "line %d is not a vector: %s", number, line);
            failed++;
            continue;
        }
        const fsi_def S = fsi_def_make(&v.spec);
        const uint64_t digest = fsi_def_digest(&S, v.col0, v.col0 + v.cols);
        if (print) print_vector(&v, digest);
        else if (digest != v.digest)
            printf("line %d: the digest is 0x%016" PRIx64 ", the file says 0x%016" PRIx64 "\n", number, digest,
                   v.digest);
        if (print || digest == v.digest) passed++;
        else failed++;
    }
    fclose(file);
    if (!print) printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
