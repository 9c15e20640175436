# The experiment, reduced: a run, its parts, several sketches in one table.  LDS is positive with a margin.
. "$(dirname "$0")/../fashion.sh"
small="--data data --train 300 --test 40 --models 12 --checkpoints 2 --epochs 8 -k 64"
flashsketch grass run $small kept >first || exit
cat first
# An LDS, its interval and the number of images that it is of, for each line of a run.
bounded() {
    awk '$1 == "LDS" && $3 == "from" {
        lds = $2 + 0; low = $4; high = $6 + 0; n++
        if (!(0.3 < lds && lds < 0.9 && 0 < low && low < lds && lds < high && high < 1 && high - low < 0.4))
            print "not so:", $0
    } END { if (n != 1) print n + 0, "lines of LDS" }' "$1"
}
bounded first
# From what was kept: the same, but for the time.
flashsketch grass run $small kept >second || exit
flashsketch grass lds $small kept >third || exit
for file in first second third; do grep -v '^time' $file >$file.same; done
cmp first.same second.same && cmp first.same third.same || exit
flashsketch grass features $small --family srht --mask 0 kept || exit
ls kept | grep -c 'model.*npy$'
ls kept/features-srht-*
# Every sketch of a table, and what each has in JSON.
grid="$small --family all --seeds 2 --record record.jsonl"
flashsketch grass run $grid kept >table || exit
tail -n +4 table
awk '$1 ~ /^(blockperm|sjlt|blockrow|srht|gaussian)$/ && $2 == 64 {
    rows++
    if (!(0.3 < $5 && $5 < 0.9 && 0 <= $6 && $6 < 0.3 && $7 < $5 && $5 < $9 && $9 < 1 && $8 == "to"))
        print "not so:", $0
    less = $(NF - 3) + 0
    if ($1 != "gaussian" && !($(NF - 2) < less && less < $NF && -0.4 < $(NF - 2) && $NF < 0.4)) print "not so:", $0
} END { print rows + 0, "rows" }' table
wc -l <record.jsonl
flashsketch grass lds $grid --json kept >json || exit
head -n 10 json | cmp - record.jsonl
awk -F '[:,]' '{ for (i = 1; i < NF; i++) if ($i == "\"lds_low\"" && !($(i + 1) > 0.1)) { print; exit 1 } }' json ||
    exit
grep -c '"lds_low":0' json
grep -c '"less_gaussian_low":-*0' json
flashsketch grass run $small --json --forget kept | grep -c project_seconds
flashsketch grass lds $small kept
flashsketch grass run $small --run 8 kept >runs || exit
grep -e mask -e LDS runs
bounded runs
flashsketch grass run $small --run 8 --json kept | grep -c '"mask":256,"run":8,'
flashsketch grass query $small -m 2 -o top.png kept 0 39 && check_picture top.png
