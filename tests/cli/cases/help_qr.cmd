flashsketch qr --help
