flashsketch demo --help
