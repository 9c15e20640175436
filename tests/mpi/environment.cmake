# environment.cmake - what tests that launch ranks set.
#
# As root Open MPI wants to be told twice that it may run; ranks outnumber cores, so each has one thread, and waiting
# ones yield (MPICH's by patient.c).
set(FS_RANKS_ENVIRONMENT OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none
  OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_plm_rsh_agent=/bin/false
  ASAN_OPTIONS=detect_leaks=0)
