! flashsketch.f90 - the C library FlashSketch from Fortran: declarations of its types and functions, by iso_c_binding.
!
! Names and contracts are those of flashsketch.h and flashsketch_solvers.h.  A struct that has a size gets it by its
! default initialization.  Fortran's matrices have contiguous columns: fs_view makes the fs_matrix of one.
module flashsketch
    use, intrinsic :: iso_c_binding
    implicit none

    integer(c_int), parameter :: FS_OK = 0, FS_F32 = 1, FS_F64 = 2, FS_MEMORY_HOST = 0
    integer(c_int), parameter :: FS_BACKEND_AUTO = 0, FS_BACKEND_CPU = 1, FS_BACKEND_CUDA = 2

    type, bind(c) :: fs_spec
        integer(c_size_t) :: size = 88
        integer(c_int) :: family = 0
        integer(c_int64_t) :: d = 0, k = 0, seed = 0, M = 0, kappa = 0, s = 0
        integer(c_int) :: shuffle = 0
        integer(c_int64_t) :: interleave = 0
        integer(c_int) :: quality = 0
    end type

    type, bind(c) :: fs_matrix
        type(c_ptr) :: data = c_null_ptr
        integer(c_int64_t) :: rows = 0, cols = 0, row_stride = 0, col_stride = 0, offset = 0, size = 0
        integer(c_int) :: dtype = FS_F64, memory = FS_MEMORY_HOST
    end type

    type, bind(c) :: fs_operand
        integer(c_size_t) :: size = 32
        type(c_ptr) :: dense = c_null_ptr, sparse = c_null_ptr, slices = c_null_ptr
    end type

    interface
        integer(c_int) function fs_sketch_create(out, spec) bind(c)
            import
            type(c_ptr), intent(out) :: out
            type(fs_spec), intent(in) :: spec
        end function
        subroutine fs_sketch_destroy(S) bind(c)
            import
            type(c_ptr), value :: S
        end subroutine
        integer(c_int) function fs_sketch_digest(ctx, S, col0, cols, digest) bind(c)
            import
            type(c_ptr), value :: ctx, S
            integer(c_int64_t), value :: col0, cols
            integer(c_int64_t), intent(out) :: digest
        end function
        ! options: c_null_ptr for all defaults
        integer(c_int) function fs_context_create(out, options) bind(c)
            import
            type(c_ptr), intent(out) :: out
            type(c_ptr), value :: options
        end function
        subroutine fs_context_destroy(ctx) bind(c)
            import
            type(c_ptr), value :: ctx
        end subroutine
        ! Y = beta Y + alpha S(:, row0 + 1 : row0 + A%rows) A
        integer(c_int) function fs_apply(ctx, S, row0, alpha, A, beta, Y) bind(c)
            import
            type(c_ptr), value :: ctx, S
            integer(c_int64_t), value :: row0
            real(c_double), value :: alpha, beta
            type(fs_matrix), intent(in) :: A, Y
        end function
        ! options, report: c_null_ptr for none
        integer(c_int) function fs_lstsq(ctx, A, B, options, X, report) bind(c)
            import
            type(c_ptr), value :: ctx, options, report
            type(fs_operand), intent(in) :: A
            type(fs_matrix), intent(in) :: B, X
        end function
        integer(c_int) function fs_leverage(ctx, A, options, scores, report) bind(c)
            import
            type(c_ptr), value :: ctx, options, report
            type(fs_operand), intent(in) :: A
            real(c_double), intent(out) :: scores(*)
        end function
        type(c_ptr) function fs_error_message() bind(c)
            import
        end function
    end interface

    interface fs_view
        module procedure view_f32, view_f64
    end interface

contains

    ! The fs_matrix of a contiguous matrix.  The library keeps its address only during a call.
    function view_f64(a) result(view)
        real(c_double), intent(in), contiguous, target :: a(:, :)
        type(fs_matrix) :: view
        view = fs_matrix(c_loc(a), size(a, 1, c_int64_t), size(a, 2, c_int64_t), 1, size(a, 1, c_int64_t), 0, &
                         size(a, kind=c_int64_t), FS_F64, FS_MEMORY_HOST)
    end function

    function view_f32(a) result(view)
        real(c_float), intent(in), contiguous, target :: a(:, :)
        type(fs_matrix) :: view
        view = fs_matrix(c_loc(a), size(a, 1, c_int64_t), size(a, 2, c_int64_t), 1, size(a, 1, c_int64_t), 0, &
                         size(a, kind=c_int64_t), FS_F32, FS_MEMORY_HOST)
    end function

    ! The error message of this thread's last failure.
    function fs_message() result(text)
        character(:), allocatable :: text
        character(c_char), pointer :: letters(:)
        integer :: length
        call c_f_pointer(fs_error_message(), letters, [4096])
        length = 0
        do while (letters(length + 1) /= c_null_char)
            length = length + 1
        end do
        allocate (character(length) :: text)
        text = transfer(letters(1:length), text)
    end function
end module
