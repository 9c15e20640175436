# A backend that is wrong is found out: this one, of tests/errors, is on every device and refuses every product.
FLASHSKETCH_CUDA_PLUGIN=$STAND_IN flashsketch check >report
code=$?
grep "the test's backend" report | uniq
FLASHSKETCH_CUDA_PLUGIN=$STAND_IN flashsketch info | grep -c gpu
exit $code
