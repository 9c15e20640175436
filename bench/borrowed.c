/* borrowed.c - what the progress bar, which belongs to the command, asks of the program that it is in. */
#include "bench.h"
#include "cli/cli.h"

double cli_seconds(void) { return bench_now(); }
