flashsketch add --help
