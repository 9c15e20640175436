# Columns in rows of their own, the first 8 of 64: one of 8 contiguous blocks has it all, and kappa = 4 shares it.
{ echo '%%MatrixMarket matrix coordinate pattern general'; echo 64 8 8; for i in 1 2 3 4 5 6 7 8; do echo $i $i; done; } >hot.mtx
flashsketch coherence -k 32 -M 8 --kappa 1 --shuffle none hot.mtx
flashsketch coherence -k 32 -M 8 --kappa 4 --shuffle none hot.mtx | sed -n '4,5p'
# Spread evenly: every block has as much of every direction.
{ echo '%%MatrixMarket matrix coordinate pattern general'; echo 64 8 64; for i in $(seq 64); do echo $i $(((i - 1) % 8 + 1)); done; } >even.mtx
flashsketch coherence -k 32 -M 8 --kappa 2 --shuffle none --delta 0.5 even.mtx --json
cat even.mtx | flashsketch coherence -k 32 -M 4 --kappa 2 --shuffle none - | sed -n '1p;4,5p'
