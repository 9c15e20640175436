/* exact_map.c - a mapping that ends where its file ends.
 *
 * Past the end of a mapped file there are zeros up to the end of the page, and reading them is seen by no sanitizer.
 * Programs that link this file with --wrap=mmap --wrap=munmap get memory of exactly the file's length instead. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__real_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset);
int __real_munmap(void *address, size_t length);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset);
int __wrap_munmap(void *address, size_t length);

enum { AT_ONCE = 8 };
static void *made[AT_ONCE];

void *__wrap_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    int slot = 0;
    while (slot < AT_ONCE && made[slot]) slot++;
    if (file < 0 || protection != PROT_READ || slot == AT_ONCE)
        return __real_mmap(address, length, protection, flags, file, offset);
    made[slot] = malloc(length);
    if (!made[slot] || pread(file, made[slot], length, offset) != (ssize_t)length) abort();
    return made[slot];
}

int __wrap_munmap(void *address, size_t length)
{
    for (int i = 0; i < AT_ONCE; i++)
        if (address && made[i] == address) {
            free(address);
            made[i] = NULL;
            return 0;
        }
    return __real_munmap(address, length);
}
