# The tables have every sketch with errors of the right size, nothing but the picture is left, and stderr is silent.
flashsketch demo --data synthetic --rows 1024 --threads 2 --seed 3 -o picture.svg >../table &&
check_picture picture.svg >../picture || exit
cat ../table ../picture
# At k = 256 a Gaussian sketch errs by about 0.09 here, and so do the others.  The large rows are one block's: blockrow,
# which keeps some rows, may miss most of them, and no other is much worse than before; a sparse S may keep all of them
# in rows of Y of their own.  Ratios have one digit.
awk '/^sketch / { table++ }
     /^(blockperm|paper|sjlt|countsketch|blockrow|srht|gaussian)/ {
         rows[table]++
         if (table == 1 && !($(NF - 2) > 0 && $(NF - 1) > 0 && $NF > 0.03 && $NF < 0.2)) print "not so:", $0
         if (table != 2) next
         before = $(NF - 2); after = $(NF - 1); most = $1 == "blockrow" ? 3 : 0.4
         if (!(before > 0.03 && before < 0.2 && after >= 0 && after < most)) print "not so:", $0
         if (!(($NF - after / before) ^ 2 < 0.3 ^ 2)) print "no ratio:", $0
     }
     END { print rows[1], "rows and", rows[2] }' ../table
ls
