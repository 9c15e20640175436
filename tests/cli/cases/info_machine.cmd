# Of this machine; a variable that chooses a variant is left as it was.
FLASHSKETCH_CUDA_PLUGIN=absent.so FLASHSKETCH_ISA=base flashsketch info
FLASHSKETCH_ISA=abacus flashsketch info | sed -n 3p
