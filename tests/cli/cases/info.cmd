# Of files: each format, by name and as standard input.  What a file says of itself does not talk to the terminal.
printf '%%%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n1 1 5\n3 1 -2\n' >A.mtx
gzip -k A.mtx
{ printf '\223NUMPY\1\0\106\0'; printf "%-69s\n" "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }"; head -c 48 /dev/zero; } >A.npy
header='{"w\u001b[2J":{"dtype":"BF16","shape":[2,3,1],"data_offsets":[0,12]},"x":{"dtype":"F64","shape":[],"data_offsets":[12,20]}}'
{ printf "\\$(printf %o ${#header})\0\0\0\0\0\0\0"; printf %s "$header"; head -c 20 /dev/zero; } >A.safetensors
for file in A.mtx A.mtx.gz A.npy A.safetensors; do
    echo "-- $file"
    flashsketch info $file
done
echo "-- standard input"
flashsketch info - <A.npy
cat A.mtx.gz | flashsketch info -
echo "-- one tensor"
flashsketch info --tensor "$(printf 'w\033[2J')" A.safetensors
flashsketch info --tensor x A.safetensors
echo $?
echo "-- what is converted, and what cannot be read"
npy() { printf '\223NUMPY\1\0\106\0'; printf "%-69s\n" "{'descr': $1, 'fortran_order': False, 'shape': $2, }"; head -c $3 /dev/zero; }
npy "'>i2'" '(10, 4, 5)' 400 >I.npy
npy "'<c8'" '(2, 3)' 48 >C.npy
npy "[('x', '<f4')]" '(4,)' 16 >R.npy
printf '%%%%MatrixMarket matrix coordinate complex hermitian\n3 3 1\n1 1 5 0\n' >C.mtx
for file in I.npy C.npy R.npy C.mtx; do
    flashsketch info $file
    echo $?
    flashsketch sketch -k 2 $file >Y.npy || echo $?
done
echo "-- text"
printf '"a, b";c\r\n1;2.5\r\n3;4\r\n' >A.csv
gzip -c A.csv | flashsketch info -
printf '1 2\n3 x\n' | flashsketch info -
echo $?
