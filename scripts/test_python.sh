#!/bin/sh
# test_python.sh - installs the Python package as a user does and runs its tests against what was installed.
#
# usage: test_python.sh REPORT      REPORT: where pytest's JUnit report goes
#
# Makes a fresh virtual environment in build/python, installs what the tests need and then the package, without the
# CUDA plugin, which takes long to compile and needs a GPU to be tested (tests/device/run does).  Exits with pytest's
# code, or 77 and a message where there is no venv module or pip cannot reach its index; tests of an optional package
# that cannot be installed are counted as skipped, and a line names it.
#
# A second environment has the oldest NumPy and SciPy that pyproject.toml allows, with its oldest Python if there is
# one, otherwise with python3: tests/python/test_package.py runs some tests there.
#
# PyTorch's build on the index brings CUDA and 6 GB; torch_without_cuda.py installs it in 1.3 GB.  TORCH=no leaves it
# out; PYTHON_PACKAGES=torch installs all of it.  JOBS limits the compilers.
set -eu
report=$1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/build/python
need="pytest numpy scipy scikit-learn"
want="array-api-strict ml_dtypes jax dask pandas safetensors ${PYTHON_PACKAGES-}"
torch_kib=3000000 # free disk that installing PyTorch needs, with what pip unpacks on the way

# floor_of NAME: the oldest version that pyproject.toml allows.
floor_of() { sed -nE "s/.*[\"-]$1(>=| = \">=)([0-9.]+)\".*/\2/p" "$root/pyproject.toml"; }

# The environment with the oldest versions; it is in FLASHSKETCH_FLOOR_PYTHON if it could be made.
floors() {
    oldest=python$(floor_of python)
    "$oldest" -c '' >/dev/null 2>&1 || oldest=python3
    versions="numpy==$(floor_of numpy) scipy==$(floor_of scipy)"
    # shellcheck disable=SC2086  # several words
    if "$oldest" -m venv floor >floor.log 2>&1 &&
        floor/bin/pip install -q --only-binary :all: pytest $versions >>floor.log 2>&1 &&
        floor/bin/pip install -q --no-deps wheels/*.whl >>floor.log 2>&1; then
        FLASHSKETCH_FLOOR_PYTHON=$work/floor/bin/python
        export FLASHSKETCH_FLOOR_PYTHON
        echo "oldest versions: $("$oldest" --version), $versions"
    else
        echo "oldest versions: $("$oldest" --version) cannot have $versions: $(tail -n 1 floor.log)"
    fi
}

# PyTorch, unless it is there or was not wanted.
torch() {
    [ "${TORCH-}" != no ] || { echo "torch: left out, TORCH=no"; return 0; }
    ! venv/bin/python -c 'import torch' 2>/dev/null || return 0
    free=$(df -Pk . | awk 'NR == 2 { print $4 }')
    if [ "$free" -lt $torch_kib ]; then
        echo "torch: left out, there are $((free / 1024)) MiB of disk and it needs $((torch_kib / 1024))"
    elif ! timeout 300 venv/bin/python "$root/scripts/torch_without_cuda.py" >torch.log 2>&1; then
        rm -rf venv/lib/python3.*/site-packages/torch # where the time ran out
        echo "torch: left out, $(tail -n 1 torch.log)"
    else
        cat torch.log
    fi
}

rm -rf "$work"
mkdir -p "$work"
cd "$work"
python3 -m venv venv >venv.log 2>&1 || { echo "python3 has no venv: the Debian package python3-venv has it"; exit 77; }
# Waiting threads that do not spin: the tests make thousands of small calls, perhaps beside other work.
export OMP_WAIT_POLICY=passive PIP_DISABLE_PIP_VERSION_CHECK=1
# shellcheck disable=SC2086  # several words
if ! venv/bin/pip install -q $need >packages.log 2>&1; then
    tail -n 2 packages.log
    echo "pip could not install $need; is there a network?"
    exit 77
fi
# shellcheck disable=SC2086
venv/bin/pip install -q $want >>packages.log 2>&1 || echo "pip could not install all of $want"
venv/bin/pip install -q -r "$root/scripts/lint.txt" >>packages.log 2>&1 || echo "pip could not install ruff and mypy"
[ -z "${JOBS-}" ] || export CMAKE_BUILD_PARALLEL_LEVEL="$JOBS"
venv/bin/pip wheel --no-deps -w wheels "$root" --config-settings=cmake.define.FS_CUDA=OFF >package.log 2>&1 ||
    { cat package.log; exit 1; }
venv/bin/pip install -q --no-deps wheels/*.whl
torch
floors
unset FLASHSKETCH_LIBRARY PYTHONPATH || true
exec venv/bin/python -m pytest -c "$root/pyproject.toml" --rootdir "$root" -p no:cacheprovider -q -rs \
    --doctest-modules --doctest-ignore-import-errors --junitxml "$report" "$root/tests/python" --pyargs flashsketch
