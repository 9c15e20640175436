#!/bin/sh
# alone.sh COMPILER INCLUDE FLAGS... - compiles a text that includes the public headers, twice, and uses their macros,
# and nothing else; exits 77 where the compiler is not installed.
set -eu
compiler=$1 include=$2
shift 2
command -v "$compiler" >/dev/null || { echo "no $compiler here"; exit 77; }
"$compiler" "$@" -Wall -Wextra -Wpedantic -Werror -Wshadow -Wundef -fsyntax-only -I"$include" - <<'TEXT'
#include "flashsketch_tasks.h"
#include "flashsketch_attribution.h"
#include "flashsketch_files.h"
#include "flashsketch_extend.h"
#include "flashsketch.h"
#include "flashsketch_files.h"
#include "flashsketch_tasks.h"
int version(void);
int version(void)
{
    fs_spec spec = FS_SPEC_INIT;
    fs_context_options options = FS_CONTEXT_INIT;
    fs_stream_options files = FS_STREAM_INIT;
    fs_task_shape shape = FS_TASK_SHAPE_INIT;
    fs_gram_report gram = FS_GRAM_REPORT_INIT;
    fs_ose_report ose = FS_OSE_REPORT_INIT;
    fs_fit_report fit = FS_FIT_REPORT_INIT;
    fs_coherence_report coherence = FS_COHERENCE_REPORT_INIT;
    fs_attribution_options grass = FS_ATTRIBUTION_INIT;
    const size_t tasks = grass.size + shape.size + gram.size + ose.size + fit.size + coherence.size;
    const int number = FS_VERSION;
    return spec.size > 0 && options.size > 0 && files.size > 0 && tasks > 0 ? number : 0;
}
TEXT
echo "$compiler $*: the headers stand alone"
