flashsketch pca --help
