#!/bin/sh
# test_python.sh - installs the Python package as a user does and runs its tests against what was installed.
#
# usage: test_python.sh REPORT      REPORT: where pytest's JUnit report goes
#
# Makes a fresh virtual environment in build/python, installs what the tests need and then `pip install .`, without the
# CUDA plugin, which takes long to compile and needs a GPU to be tested (tests/device/run does).  Exits with pytest's
# code, or 77 and a sentence where there is no venv module or pip cannot reach its index; tests of a package that is
# only wanted and cannot be had are counted as skipped.  PyTorch, whose build on the index brings CUDA and 6 GB, is not
# installed unless PYTHON_PACKAGES names it: PYTHON_PACKAGES=torch make test-python.  JOBS limits the compilers.
set -eu
report=$1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/build/python
need="pytest numpy scipy scikit-learn"
want="mypy array-api-strict ml_dtypes jax dask ${PYTHON_PACKAGES-}"

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
[ -z "${JOBS-}" ] || export CMAKE_BUILD_PARALLEL_LEVEL="$JOBS"
venv/bin/pip install --no-deps "$root" --config-settings=cmake.define.FS_CUDA=OFF >package.log 2>&1 ||
    { cat package.log; exit 1; }
unset FLASHSKETCH_LIBRARY PYTHONPATH || true
exec venv/bin/python -m pytest -c "$root/pyproject.toml" --rootdir "$root" -p no:cacheprovider -q -rs \
    --doctest-modules --doctest-ignore-import-errors --junitxml "$report" "$root/tests/python" --pyargs flashsketch
