/* adjoint.c - see adjoint.h. */
#include "cuda/plan/adjoint.h"

#include <math.h>

#include "base/math.h"
#include "cuda/plan/local_rows.h"

/* Rows of the kappa blocks of Y that an input block feeds. */
static int64_t tile_height(const fsi_blockperm *B) { return B->kappa * (B->out.small + (B->out.larger > 0)); }

/* Width and shared memory of a tile; returns how many thread blocks share an SM.  Blocks of Y that are too tall for
 * FSI_ADJOINT_RESIDENT tiles of 64 columns get the shared memory of fewer thread blocks. */
static int choose_tile(const fsi_blockperm *B, int64_t sum_bytes, int64_t cols, const fsi_gpu_traits *gpu,
                       fsi_adjoint_plan *plan)
{
    const int64_t threads = FSI_ADJOINT_THREADS, codes = fsi_round_up(B->kappa * B->s, 4);
    const int64_t head = fsi_round_up(B->kappa, 16) + threads * 8 + threads * codes * 4;
    const int64_t column = tile_height(B) * sum_bytes;
    for (int resident = FSI_ADJOINT_RESIDENT;; resident--) {
        for (plan->wide = FSI_ADJOINT_WIDEST; plan->wide > plan->vector; plan->wide /= 2)
            if (plan->wide / 2 < cols && head + column * plan->wide <= gpu->shared_per_processor / resident - 1024)
                break;
        plan->shared = head + column * plan->wide;
        if (plan->wide >= 64 || plan->wide >= cols || resident == 3) return resident;
    }
}

/* As many slices as make the waves of thread blocks shortest; reading a tile takes as long as tile_height rows. */
static void choose_slices(const fsi_blockperm *B, int64_t local_rows, int64_t room, fsi_adjoint_plan *plan)
{
    const int64_t most = fsi_div_up(local_rows, FSI_ADJOINT_THREADS);
    double least = HUGE_VAL; /* a double, because costs of large matrices exceed 2^63 */
    for (int64_t slices = 1; slices <= most && (slices - 1) * B->M * plan->tiles < 8 * room; slices++) {
        const int64_t length = fsi_div_up(local_rows, slices);
        const double cost = (double)fsi_div_up(B->M * plan->tiles * slices, room) * (double)(length + tile_height(B));
        if (cost < least) least = cost, plan->length = length;
    }
    plan->slices = fsi_div_up(local_rows, plan->length);
}

fsi_adjoint_plan fsi_choose_adjoint(const fsi_blockperm *B, int64_t row0, int64_t sum_bytes, const fs_matrix *X,
                                    double beta, const fsi_gpu_traits *gpu)
{
    const int straight = sum_bytes == 4 && X->dtype == FS_F32 && beta == 0.0 && X->col_stride == 1 &&
                         X->cols % 4 == 0 && X->row_stride % 4 == 0 && (uintptr_t)X->data % 16 == 0;
    fsi_adjoint_plan plan = {.vector = straight ? 4 : 1, .straight = straight};
    const int resident = choose_tile(B, sum_bytes, X->cols, gpu, &plan);
    plan.by_blocks = (X->col_stride == 1 || X->cols == 1) && plan.shared <= gpu->shared &&
                     (plan.wide >= 32 || plan.wide >= X->cols);
    if (plan.by_blocks) {
        plan.spread = !straight && plan.wide >= 32;
        if (plan.spread) plan.vector = 4;
        plan.team = (int)fsi_min(plan.wide / plan.vector, 32);
        plan.tiles = fsi_div_up(X->cols, plan.wide);
        const int64_t local_rows = B->shuffle == FSI_DEF_NONE ? B->in.small + 1
                                                              : fsi_local_rows_of(B, 0, row0, X->rows).count;
        choose_slices(B, local_rows, (int64_t)resident * gpu->processors, &plan);
        return plan;
    }
    plan.tiles = fsi_div_up(X->rows, FSI_ADJOINT_THREADS);
    const int64_t wanted = fsi_div_up(8 * (int64_t)gpu->processors, plan.tiles);
    plan.length = fsi_round_up(fsi_div_up(X->cols, wanted), 64);
    if (fsi_div_up(X->cols, plan.length) > 65535) plan.length = fsi_div_up(X->cols, 65535);
    plan.slices = fsi_div_up(X->cols, plan.length);
    return plan;
}
