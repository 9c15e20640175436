flashsketch coherence --help
