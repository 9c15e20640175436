/* replay.c - feeds files to a fuzz target, where no fuzzer is linked: every compiler runs the corpus.
 *
 * usage: replay FILE|FOLDER... */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat about;
    if (!file || stat(path, &about)) return fprintf(stderr, "%s cannot be opened\n", path), 0;
    /* Exactly as many bytes as the file has, so that reading past them is seen. */
    uint8_t *data = malloc(about.st_size ? (size_t)about.st_size : 1);
    const size_t bytes = data ? fread(data, 1, (size_t)about.st_size, file) : 0;
    fclose(file);
    if (data) LLVMFuzzerTestOneInput(data, bytes);
    free(data);
    return data != NULL;
}

int main(int argc, char **argv)
{
    int done = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (!folder) {
            replay(argv[i]) ? done++ : failed++;
            continue;
        }
        for (struct dirent *one; (one = readdir(folder));) {
            char path[PATH_MAX];
            if (one->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], one->d_name);
            replay(path) ? done++ : failed++;
        }
        closedir(folder);
    }
    printf("%d files replayed\n", done);
    return failed || !done;
}
