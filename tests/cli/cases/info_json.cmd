printf '%%%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n1 1 5\n3 1 -2\n' | flashsketch info --json -
header='{"w \"1\"":{"dtype":"BF16","shape":[2,3,1],"data_offsets":[0,12]}}'
{ printf "\\$(printf %o ${#header})\0\0\0\0\0\0\0"; printf '%s' "$header"; head -c 12 /dev/zero; } >A.safetensors
flashsketch info A.safetensors --json
flashsketch info A.safetensors --json --tensor 'w "1"'
flashsketch info --json | head -n 4
