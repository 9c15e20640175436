! example.f90 - a sketch and a least-squares problem in Fortran.
program example
    use flashsketch
    implicit none
    integer, parameter :: d = 10000, n = 20, k = 400
    real(c_double), allocatable, target :: a(:, :), b(:, :), x(:, :), y(:, :), scores(:)
    type(fs_matrix), target :: view
    type(fs_operand) :: operand
    type(c_ptr) :: S, ctx
    integer(c_int64_t) :: digest
    integer :: i, j

    allocate (a(d, n), b(d, 1), x(n, 1), y(k, n), scores(d))
    a = reshape([((sin(1.0d0*i*j) + merge(2, 0, i == j), i=1, d), j=1, n)], [d, n])
    b(:, 1) = matmul(a, [(1.0d0*j, j=1, n)])

    call check(fs_sketch_create(S, fs_spec(d=d, k=k, seed=7)))
    call check(fs_context_create(ctx, c_null_ptr))
    call check(fs_apply(ctx, S, 0_c_int64_t, 1.0d0, fs_view(a), 0.0d0, fs_view(y)))
    call check(fs_sketch_digest(ctx, S, 0_c_int64_t, int(d, c_int64_t), digest))
    print '(a, z16.16)', 'digest ', digest
    print '(a, f4.2)', 'length ', norm2(y)/norm2(a)

    view = fs_view(a)
    operand%dense = c_loc(view)
    call check(fs_lstsq(ctx, operand, fs_view(b), c_null_ptr, fs_view(x), c_null_ptr))
    print '(a, 3f9.6)', 'lstsq ', x(1:3, 1)
    call check(fs_leverage(ctx, operand, c_null_ptr, scores, c_null_ptr))
    print '(a, f5.1)', 'leverage ', sum(scores)
    call fs_context_destroy(ctx)
    call fs_sketch_destroy(S)

contains

    subroutine check(result)
        integer(c_int), intent(in) :: result
        if (result /= FS_OK) error stop fs_message()
    end subroutine
end program
