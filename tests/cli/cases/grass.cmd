# A run, the same run from what was kept, another sketch of the same models: each says its LDS, and it is positive.
# The images are the first 320 and 40 of Fashion-MNIST, in files of their own.
from=/usr/share/datasets/fashion-mnist
[ -d $from ] || exit 77
mkdir data
export OPENBLAS_NUM_THREADS=1 # its threads spin: on a busy machine small products take three times as long
cut() { # FILE HEADER SKIP BYTES
    { printf "$2"; gzip -dc $from/$1.gz | tail -c +$(($3 + 1)) | head -c $4; } >data/$1
}
cut train-images-idx3-ubyte '\000\000\010\003\000\000\001\100\000\000\000\034\000\000\000\034' 16 $((320 * 784))
cut train-labels-idx1-ubyte '\000\000\010\001\000\000\001\100' 8 320
cut t10k-images-idx3-ubyte '\000\000\010\003\000\000\000\050\000\000\000\034\000\000\000\034' 16 $((40 * 784))
cut t10k-labels-idx1-ubyte '\000\000\010\001\000\000\000\050' 8 40
gzip data/t10k-images-idx3-ubyte
small="--data data --train 300 --test 40 --models 12 --checkpoints 2 --epochs 8 -k 64"
flashsketch grass run $small kept >first || exit
cat first
flashsketch grass run $small kept >second || exit
grep -v '^time' first >a && grep -v '^time' second >b && cmp a b || exit
flashsketch grass run $small --family gaussian --mask 0 kept | grep '^S ' || exit
flashsketch grass run $small --json kept >json || exit
awk '/"lds":/ { exit !($2 + 0 > 0.05) }' json || { cat json; exit 1; }
grep -c project_seconds json
ls kept | grep -c model
flashsketch grass query $small -m 2 -o top.png kept 0 39 && check_picture top.png
