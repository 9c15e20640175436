/* empty.c - a libopenblas.so that has nothing of BLAS or LAPACK. */
int empty_openblas(void);
int empty_openblas(void) { return 0; }
