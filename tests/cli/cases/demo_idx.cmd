# An IDX file of 2100 x 4 x 5, with gzip and without; the name needs care in XML.
mkdir data
{ printf "\0\0\10\3\0\0\10\64\0\0\0\4\0\0\0\5"; head -c 42000 "$(command -v flashsketch)"; } >"data/a&b<c.idx"
gzip -k "data/a&b<c.idx"
for name in "data/a&b<c.idx" "data/a&b<c.idx.gz"; do
    flashsketch demo --data "$name" --rows 2000 | head -n 1
    check_picture flashsketch-demo.svg
done
