/* tuning_format.h - the text of a tuning table, for its reader and its writer.
 *
 * The number in the first line grows whenever an instance list renumbers its instances or a problem has another
 * description. */
#ifndef FSI_CUDA_PLAN_TUNING_FORMAT_H
#define FSI_CUDA_PLAN_TUNING_FORMAT_H

#include <inttypes.h>

#define FSI_TUNING_HEAD "flashsketch-tuning 8"
#define FSI_TUNING_PROBLEM \
    "rows=%" SCNd64 " n=%" SCNd64 " k=%" SCNd64 " M=%" SCNd64 " kappa=%" SCNd64 " s=%" SCNd64 " interleave=%" SCNd64 \
    " block_rows=%" SCNd64 " tiles=%" SCNd64 " tile_rows=%" SCNd64 " tile_nonzeros=%" SCNd64 " local_rows=%" SCNd64 \
    " shuffle=%d dtype=%d precision=%d across=%d" \
    " down=%d aligned=%d whole=%d mapped=%d packed=%d"
/* name: the conversion of the kernel's name. */
#define FSI_TUNING_PLAN(name) \
    "kernel=%" name " instance=%d slices=%d length=%" SCNd64 " threads=%d team=%d chunk=%d group=%d" \
    " shared=%" SCNd64 " cluster=%d"

#endif
