# Sketches and leverage scores of a dense and of a sparse matrix; both forms of one matrix give the same.
library(flashsketch)
set.seed(1)
A <- matrix(rnorm(20000), 2000, 10)
Y <- fs_sketch(A, k = 300, seed = 7)
cat("length", format(norm(Y, "F") / norm(A, "F"), digits = 2), "\n")
scores <- rowSums(qr.Q(qr(A))^2)
stopifnot(all.equal(fs_leverage(A, exact = TRUE), scores, tolerance = 1e-10))
stopifnot(cor(fs_leverage(A), scores) > 0.9)
if (requireNamespace("Matrix", quietly = TRUE)) {
    A[abs(A) < 1] <- 0
    sparse <- methods::as(A, "CsparseMatrix")
    stopifnot(all.equal(fs_sketch(sparse, 300, 7), fs_sketch(A, 300, 7), tolerance = 1e-14))
    stopifnot(all.equal(fs_leverage(sparse, exact = TRUE), rowSums(qr.Q(qr(A))^2), tolerance = 1e-10))
    cat("sparse\n")
}
stopifnot(inherits(try(fs_sketch(A, k = 0), silent = TRUE), "try-error"))
cat("done\n")
