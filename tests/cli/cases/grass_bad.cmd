# What is wrong is told before models are trained; what is kept for another experiment is left alone.
flashsketch grass run
flashsketch grass walk kept
mkdir data
flashsketch grass run --data data kept
printf 'not images' >data/train-images-idx3-ubyte
flashsketch grass run --data data kept
flashsketch grass run --models 1 kept
# Ten images of each kind, made here.
images() {
    printf '\000\000\010\003\000\000\000\012\000\000\000\034\000\000\000\034'
    head -c 7840 /dev/zero | tr '\000' a | sed 's/aa/bc/g'
}
labels() { printf '\000\000\010\001\000\000\000\012\000\001\002\003\004\005\006\007\010\011'; }
images >data/train-images-idx3-ubyte
images >data/t10k-images-idx3-ubyte
labels >data/train-labels-idx1-ubyte
labels >data/t10k-labels-idx1-ubyte
small="--data data --train 10 --test 10 --models 2 --checkpoints 1 --epochs 1"
flashsketch grass run $small -k 16 -M 17 kept
flashsketch grass run $small -k 16 --mask 109387 kept
flashsketch grass run $small -k 16 --mask 60 --run 8 kept
flashsketch grass run $small -k 16 kept >/dev/null || exit
flashsketch grass run $small -k 16 --model-seed 1 kept
flashsketch grass run $small -k 16 no/folder
flashsketch grass query $small -k 16 kept
flashsketch grass query $small -k 16 kept 10
flashsketch grass query $small -k 16 -m 11 kept 1
flashsketch grass query $small -k 16,32 kept 1
flashsketch grass query $small -k 16 --json kept 1
flashsketch grass query $small -k 16 --record r kept 1
flashsketch grass features $small -k 16 --damping 1 kept
flashsketch grass lds $small -k 16 --forget kept
flashsketch grass lds $small -k 16 -o top.png kept
flashsketch grass run $small -k 16,,32 kept
flashsketch grass run $small -k 16,x kept
flashsketch grass run $small --family gaussian,dense kept
flashsketch grass run $small -k 16 --record no/record kept
flashsketch grass query $small -k 16 -m 1 -o no/picture.png kept 1 >/dev/null
