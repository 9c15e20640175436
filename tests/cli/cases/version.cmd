flashsketch version && flashsketch --version
