/* race.c - a clean OpenMP program; with an argument, one that has a data race. */
#include <stdio.h>

enum { N = 1000 };

int main(int argc, char **argv)
{
    int a[N], sum = 0, shared = 0;
#pragma omp parallel for num_threads(2)
    for (int i = 0; i < N; i++) a[i] = i;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
    for (int i = 0; i < N; i++) sum += a[N - 1 - i];
    if (argc > 1) {
#pragma omp parallel for num_threads(2)
        for (int i = 0; i < N; i++) shared += i;
    }
    printf("%s: %d %d\n", argv[0], sum, shared);
    return 0;
}
