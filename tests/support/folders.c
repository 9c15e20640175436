#include "tests/support/folders.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void remove_tree(const char *path)
{
    DIR *folder = opendir(path);
    char inner[4096];
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (unlink(inner) != 0) remove_tree(inner);
    }
    if (folder) closedir(folder);
    rmdir(path);
}
