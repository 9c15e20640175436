#ifndef FSI_CORE_SKETCH_H
#define FSI_CORE_SKETCH_H

#include "def/def.h"
#include "flashsketch.h"

struct fs_sketch {
    fs_allocator allocator;
    fsi_def_spec spec; /* with every chosen value */
    fsi_def def;
};

#endif
