# fashion.sh - for cases: makes ./data, the first 320 training and 40 test images of Fashion-MNIST in files of their
# own, as MNIST's files are named, one of them packed.  Without Fashion-MNIST the case is skipped.
from=/usr/share/datasets/fashion-mnist
[ -d $from ] || exit 77
mkdir data
export OPENBLAS_NUM_THREADS=1 # its threads spin: on a busy machine small products take three times as long
cut() { # FILE HEADER SKIP BYTES
    { printf "$2"; gzip -dc $from/$1.gz 2>/dev/null | tail -c +$(($3 + 1)) | head -c $4; } >data/$1
}
cut train-images-idx3-ubyte '\000\000\010\003\000\000\001\100\000\000\000\034\000\000\000\034' 16 $((320 * 784))
cut train-labels-idx1-ubyte '\000\000\010\001\000\000\001\100' 8 320
cut t10k-images-idx3-ubyte '\000\000\010\003\000\000\000\050\000\000\000\034\000\000\000\034' 16 $((40 * 784))
cut t10k-labels-idx1-ubyte '\000\000\010\001\000\000\000\050' 8 40
gzip data/t10k-images-idx3-ubyte
