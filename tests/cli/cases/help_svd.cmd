flashsketch svd --help
