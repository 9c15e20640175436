/* simt_generic.c - plans of simt_generic.cu: any matrix, plain additions, a thread owns columns.
 *
 * tile: neighbouring columns of a thread.
 * group: outputs together, of several permutations; 1 where a block has several output tiles.
 * team: threads that share the columns of a tile; a thread block has threads / team of them, each with its own tile.
 * chunk: local rows whose nonzeros are prepared together. */
#include "base/math.h"
#include "cuda/blockperm/simt_generic_instances.h"
#include "cuda/plan/kernel.h"

enum { TALLEST = 512 }; /* output tiles of more rows are left to sorted_nonzeros.cu */

static const struct {
    fs_dtype dtype;
    int vector, nonzeros;
} table[] = {
#define LINE(T, dtype, vector, nonzeros) {dtype, vector, nonzeros},
    FSI_SIMT_GENERIC(LINE)
#undef LINE
};

static int simt_generic_fits(const fsi_problem *p, const fsi_gpu_traits *gpu)
{
    (void)p;
    (void)gpu;
    return 1;
}

static int most_together(const fsi_problem *p) { return p->tiles > 1 ? 1 : (int)fsi_min(p->kappa, 4); }

/* The instance with such vectors, with its number of nonzeros compiled in if there is one; -1: none. */
static int instance_of(const fsi_problem *p, int vector, int group)
{
    int found = -1;
    for (int i = 0; i < FSI_SIMT_GENERIC_COUNT; i++) {
        if (table[i].dtype != p->dtype || table[i].vector != vector) continue;
        if (table[i].nonzeros == 0 && found < 0) found = i;
        if (table[i].nonzeros == (int)(group * p->tile_nonzeros) && fsi_outputs_of(p) % group == 0) found = i;
    }
    return found;
}

static int simt_generic_plan(const fsi_problem *p, const fsi_gpu_traits *gpu, const fsi_knobs *knobs, fsi_plan *plan)
{
    const int threads = knobs->threads, group = knobs->group;
    const int vector = knobs->instance ? table[knobs->instance - 1].vector : knobs->tile;
    if (threads < 32 || threads > 256 || (threads & (threads - 1)) != 0 || group < 1 || group > most_together(p))
        return 0;
    const int64_t sum_bytes = p->dtype == FS_F64 ? 8 : 4;
    const int nonzeros = (int)(group * p->tile_nonzeros), found = instance_of(p, vector, group);
    if (found < 0 || (vector > 1 && (p->n % vector || !p->across || !p->aligned))) return 0;
    *plan = fsi_plan_of(FSI_KERNEL_SIMT_GENERIC, found, threads, 0);
    plan->group = group;
    plan->team = 1;
    while (plan->team < threads && plan->team * vector < p->n) plan->team *= 2;
    /* A chunk has room for the loads in flight of every team, and is long unless its codes would need much memory. */
    const int least = FSI_SIMT_GENERIC_UNROLL * threads / plan->team;
    plan->chunk = (int)fsi_max(2 * least, 128);
    while (plan->chunk > least && (int64_t)plan->chunk * nonzeros * 4 > 16384) plan->chunk /= 2;
    plan->shared = FSI_SIMT_GENERIC_HEAD + plan->chunk * 8 + fsi_round_up((int64_t)plan->chunk * nonzeros * 4, 16) +
                   (group * p->tile_rows + 1) * threads * vector * sum_bytes;
    if (plan->shared > gpu->shared) return 0;
    const int64_t resident = fsi_max(1, fsi_min(2048 / threads, gpu->shared_per_processor / (plan->shared + 1024)));
    const int64_t tiles = fsi_div_up(p->n, (int64_t)plan->team * vector);
    const fsi_split_rule rule = {.blocks = p->M * fsi_div_up(fsi_outputs_of(p), group) * tiles,
                                 .height = group * p->tile_rows,
                                 .per_processor = (int)resident,
                                 .shortest = 4 * (threads / plan->team) + 64,
                                 .unit = plan->chunk,
                                 .whole = 1};
    return fsi_plan_split(p, gpu, knobs, &rule, plan);
}

/* The widest loads that the matrix allows: 16 bytes, 8 for two-byte elements. */
static int widest_vector(const fsi_problem *p)
{
    int vector = p->dtype == FS_F64 ? 2 : 4;
    while (vector > 1 && (!p->across || !p->aligned || p->n % vector)) vector /= 2;
    return vector;
}

/* As many outputs together, as wide and as many threads as shared memory holds. */
static int simt_generic_choose(const fsi_problem *p, const fsi_gpu_traits *gpu, fsi_plan *plan)
{
    if (p->tile_rows > TALLEST) return 0;
    for (int group = most_together(p); group >= 1; group--)
        for (int vector = widest_vector(p); vector >= 1; vector /= 2)
            for (int threads = 128; threads >= 32; threads /= 2) {
                const int64_t tile = group * p->tile_rows * threads * vector * (p->dtype == FS_F64 ? 8 : 4);
                /* Three tiles on an SM keep its shared memory busy; the last resort may fill it. */
                const int last = vector == 1 && threads == 32 && group == 1;
                const fsi_knobs knobs = {.tile = vector, .threads = threads, .group = group};
                if (tile > gpu->shared_per_processor / (last ? 1 : 3)) continue;
                if (simt_generic_plan(p, gpu, &knobs, plan)) return 1;
            }
    return 0;
}

/* Groups of at most four outputs, vectors and threads, each from the largest down. */
static int simt_generic_candidate(const fsi_problem *p, int i, fsi_knobs *knobs)
{
    int vectors = 0;
    while (widest_vector(p) >> vectors) vectors++;
    knobs->threads = 256 >> i % 4;
    knobs->tile = widest_vector(p) >> i / 4 % vectors;
    knobs->group = most_together(p) - i / 4 / vectors;
    return p->tile_rows <= TALLEST && knobs->group >= 1;
}

static int64_t simt_generic_width(const fsi_plan *plan) { return (int64_t)plan->team * table[plan->instance].vector; }

const fsi_kernel fsi_kernel_simt_generic = {.name = "simt_generic",
                                            .least_arch = 75,
                                            .most_arch = INT32_MAX,
                                            .inputs = 1u << FSI_INPUT_MATRIX,
                                            .instances = FSI_SIMT_GENERIC_COUNT,
                                            .splits = 1,
                                            .fits = simt_generic_fits,
                                            .choose = simt_generic_choose,
                                            .plan = simt_generic_plan,
                                            .candidate = simt_generic_candidate,
                                            .width = simt_generic_width};
