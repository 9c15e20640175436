# The arguments of .Call for a matrix, or for a sparse one in compressed columns (dgCMatrix of the package Matrix).
operand <- function(A) {
    if (methods::is(A, "dgCMatrix")) return(list(dim(A), A@x, A@i, A@p))
    if (methods::is(A, "sparseMatrix")) return(operand(methods::as(A, "CsparseMatrix")))
    A <- as.matrix(A)
    storage.mode(A) <- "double"
    list(dim(A), A, NULL, NULL)
}

# S A for the sketch S of k rows that the seed defines: a matrix of k rows.
fs_sketch <- function(A, k, seed = 0) .Call(C_fs_sketch, operand(A), as.double(k), as.double(seed))

# Leverage scores of A's rows: exact, or estimated by two reads of A.
fs_leverage <- function(A, exact = FALSE) .Call(C_fs_leverage, operand(A), as.logical(exact))
