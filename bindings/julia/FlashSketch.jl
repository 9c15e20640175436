# FlashSketch.jl - the C library FlashSketch from Julia.
#
#     include("FlashSketch.jl"); using .FlashSketch
#     S = Sketch(400, 10000; seed = 7)
#     Y = S * rand(10000, 50)                      # 400 x 50
#     x = lstsq(A, b);  scores = leverage(A)
#
# Names and contracts are those of flashsketch.h and flashsketch_solvers.h.  ENV["FLASHSKETCH_LIBRARY"] names the library
# where the loader does not find libflashsketch.so.0.1.
module FlashSketch

export Sketch, lstsq, leverage, digest

const library = get(ENV, "FLASHSKETCH_LIBRARY", "libflashsketch.so.0.1")

struct FsSpec
    size::Csize_t
    family::Cint
    d::Int64
    k::Int64
    seed::UInt64
    M::Int64
    kappa::Int64
    s::Int64
    shuffle::Cint
    interleave::Int64
    quality::Cint
end

struct FsMatrix
    data::Ptr{Cvoid}
    rows::Int64
    cols::Int64
    row_stride::Int64
    col_stride::Int64
    offset::Int64
    size::Int64
    dtype::Cint
    memory::Cint
end

struct FsOperand
    size::Csize_t
    dense::Ptr{FsMatrix}
    sparse::Ptr{Cvoid}
    slices::Ptr{Cvoid}
end

check(result) = result == 0 || error(unsafe_string(ccall((:fs_error_message, library), Cstring, ())))

# A context: the GPU where there is one that works, otherwise the CPU.  It is for one call at a time.
mutable struct Context
    pointer::Ptr{Cvoid}
    function Context()
        out = Ref{Ptr{Cvoid}}(C_NULL)
        check(ccall((:fs_context_create, library), Cint, (Ref{Ptr{Cvoid}}, Ptr{Cvoid}), out, C_NULL))
        finalizer(c -> ccall((:fs_context_destroy, library), Cvoid, (Ptr{Cvoid},), c.pointer), new(out[]))
    end
end
context() = get!(Context, task_local_storage(), :flashsketch)

"""
    Sketch(k, d; seed = 0, kappa = 0, s = 0)

S, k x d: never in memory.  `S * A` is the sketch of a Matrix or Vector of Float32 or Float64.
"""
mutable struct Sketch
    pointer::Ptr{Cvoid}
    k::Int64
    d::Int64
    function Sketch(k::Integer, d::Integer; seed::Integer = 0, kappa::Integer = 0, s::Integer = 0)
        spec = Ref(FsSpec(sizeof(FsSpec), 0, d, k, seed, 0, kappa, s, 0, 0, 0))
        out = Ref{Ptr{Cvoid}}(C_NULL)
        check(ccall((:fs_sketch_create, library), Cint, (Ref{Ptr{Cvoid}}, Ref{FsSpec}), out, spec))
        finalizer(x -> ccall((:fs_sketch_destroy, library), Cvoid, (Ptr{Cvoid},), x.pointer), new(out[], k, d))
    end
end
Base.size(S::Sketch) = (S.k, S.d)

const Real4Or8 = Union{Float32, Float64}
view_of(A::Matrix{T}) where {T <: Real4Or8} =
    FsMatrix(pointer(A), size(A, 1), size(A, 2), 1, size(A, 1), 0, length(A), T == Float32 ? 1 : 2, 0)

function Base.:*(S::Sketch, A::Matrix{T}) where {T <: Real4Or8}
    Y = Matrix{T}(undef, S.k, size(A, 2))
    GC.@preserve A Y check(ccall((:fs_apply, library), Cint,
        (Ptr{Cvoid}, Ptr{Cvoid}, Int64, Cdouble, Ref{FsMatrix}, Cdouble, Ref{FsMatrix}),
        context().pointer, S.pointer, 0, 1.0, view_of(A), 0.0, view_of(Y)))
    return Y
end
Base.:*(S::Sketch, a::Vector{<:Real4Or8}) = vec(S * reshape(a, :, 1))

"The fingerprint of S, the same on every machine."
function digest(S::Sketch)
    out = Ref{UInt64}(0)
    check(ccall((:fs_sketch_digest, library), Cint, (Ptr{Cvoid}, Ptr{Cvoid}, Int64, Int64, Ref{UInt64}),
        context().pointer, S.pointer, 0, S.d, out))
    return out[]
end

# Calls f with the fs_operand of a matrix, which is valid during the call.
function with_operand(f, A::Matrix)
    dense = Ref(view_of(A))
    GC.@preserve A dense f(FsOperand(sizeof(FsOperand), Base.unsafe_convert(Ptr{FsMatrix}, dense), C_NULL, C_NULL))
end

"x that minimises |A x - b|, to the accuracy of LAPACK."
function lstsq(A::Matrix{T}, b::Vector{T}) where {T <: Real4Or8}
    B, X = reshape(b, :, 1), Matrix{T}(undef, size(A, 2), 1)
    with_operand(A) do operand
        GC.@preserve B X check(ccall((:fs_lstsq, library), Cint,
            (Ptr{Cvoid}, Ref{FsOperand}, Ref{FsMatrix}, Ptr{Cvoid}, Ref{FsMatrix}, Ptr{Cvoid}),
            context().pointer, operand, view_of(B), C_NULL, view_of(X), C_NULL))
    end
    return vec(X)
end

"Leverage scores of the rows of A, estimated by two reads of it."
function leverage(A::Matrix{<:Real4Or8})
    scores = Vector{Float64}(undef, size(A, 1))
    with_operand(A) do operand
        check(ccall((:fs_leverage, library), Cint, (Ptr{Cvoid}, Ref{FsOperand}, Ptr{Cvoid}, Ptr{Cdouble}, Ptr{Cvoid}),
            context().pointer, operand, C_NULL, scores, C_NULL))
    end
    return scores
end

end
