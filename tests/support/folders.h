/* folders.h - folders of tests. */
#ifndef FSI_TESTS_SUPPORT_FOLDERS_H
#define FSI_TESTS_SUPPORT_FOLDERS_H

/* Deletes a folder and all that is in it; a missing one is no error. */
void remove_tree(const char *path);

#endif
