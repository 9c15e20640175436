#ifndef FS_CORE_SKETCH_H
#define FS_CORE_SKETCH_H

#include "def.h"
#include "flashsketch.h"

struct fs_sketch {
    fs_allocator allocator;
    fs_def_spec spec;  /* with every chosen value */
    fs_def def;
};

#endif
