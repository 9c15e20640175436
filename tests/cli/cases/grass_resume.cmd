# Runs that are killed go on to the same bytes; what cannot be written gets a sentence, and nothing is lost.
. "$(dirname "$0")/../fashion.sh"
small="--data data --train 200 --test 20 --models 6 --checkpoints 2 --epochs 25"
grid="$small -k 16,32 --seeds 2"
flashsketch grass run $grid --record whole.jsonl whole >whole.txt || exit

# killed FILE COMMAND...: kills a run when FILE is there; the command says whether that was in the middle.
killed() {
    rm -rf kept record.jsonl
    flashsketch grass run $grid --record record.jsonl kept >/dev/null &
    until [ -s $1 ]; do sleep 0.01; done
    kill -9 $!
    wait $!
    shift
    "$@"
}
# The times and the date of a record are those of a run.
lasting() { sed 's/"model_seconds".*"backend"/"backend"/; s/"date".*//' $1; }
compare() {
    flashsketch grass run $grid --record record.jsonl kept >again.txt && diff -r kept whole || exit
    lasting record.jsonl >a && lasting whole.jsonl >b && cmp a b && wc -l <record.jsonl
}
until killed kept/model-001.npy test ! -e kept/model-005.npy; do :; done 2>/dev/null
ls kept | grep -c -x 'model-00[0-5].npy' | sed 's/[1-5]/some/'
compare
not_all() { [ $(wc -l <record.jsonl) -lt 4 ]; }
until killed record.jsonl not_all; do :; done 2>/dev/null
compare
# A line that was not finished is made again; all that is in the record is not, and the table is the same.
head -c -100 whole.jsonl >record.jsonl
compare
flashsketch grass lds $grid --record whole.jsonl whole | cmp - whole.txt
# Two at once.
(flock -n 9 && flashsketch grass lds $grid --record whole.jsonl whole) 9<whole.jsonl

# No room: for a model, for features, for a line of the record.
(ulimit -f 100 && flashsketch grass run $small -k 16 full); ls -R full
told() { "$@" | grep -v '^time'; }
told flashsketch grass run $small -k 16 full >first || exit
(ulimit -f 100 && flashsketch grass features $small -k 512 full); ls full | grep -c 'model.*npy$'
told flashsketch grass lds $small -k 16 --record full.jsonl full | cmp - first || exit
cp full.jsonl before.jsonl
flashsketch grass features $small -k 32 full >/dev/null || exit
(ulimit -f 3 && flashsketch grass lds $small -k 16,32 --record full.jsonl full) 2>&1 | cat # a pipe has no limit
cmp full.jsonl before.jsonl
flashsketch grass lds $small -k 16,32 --record full.jsonl full >/dev/null && wc -l <full.jsonl

# Of something else: other models, other test images, another version, a record that is none.
flashsketch grass run $small --epochs 26 -k 16 full
flashsketch grass lds $small --test 19 -k 16 full
flashsketch grass lds $small -k 64 full
flashsketch grass lds $small --models 7 -k 16 full
flashsketch grass lds $small -k 16 nowhere; ls nowhere
sed -i 's/models 1/models 0/' full/identity
flashsketch grass run $small -k 16 full
sed -i 's/models 0/models 1/' full/identity
echo '{"cell": 1}' >>full.jsonl
flashsketch grass lds $small -k 16 --record full.jsonl full
tail -n 1 full.jsonl
flashsketch grass lds $small -k 16 --record . full
told flashsketch grass run $small -k 16 full | cmp - first
# An element of a model and one of its features that have changed: both are noticed, and a run recreates the files.
nan() { printf '\377\377\377\177' | dd of="$1" bs=1 seek=1000 conv=notrunc 2>/dev/null; }
nan full/model-001.npy
flashsketch grass lds $small -k 16 full
rm full/model-001.npy
told flashsketch grass run $small -k 16 full | cmp - first
nan full/features-blockperm-16-*/test-001.npy
flashsketch grass lds $small -k 16 full
rm full/features-blockperm-16-*/test-001.npy*
told flashsketch grass run $small -k 16 full | cmp - first
