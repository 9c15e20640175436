# Files that are not what they say: each one gets a sentence, and no picture is begun.
header="\0\0\10\3\0\0\10\0\0\0\0\4\0\0\0\4"
values() { head -c "$1" "$(command -v flashsketch)"; }
try() { flashsketch demo --data "$1" || echo $?; }

{ printf "$header"; values 32768; } | gzip >good.gz
head -c 5000 good.gz >truncated.gz;                      try truncated.gz
{ head -c -8 good.gz; printf 12345678; } >damaged.gz;    try damaged.gz
{ printf "$header"; values 32767; } >short;              try short
{ printf "$header"; values 32769; } >long;               try long
printf "\0\0\10" >stub;                                  try stub
printf "\0\0\10\3\0\0\10\0" >stub2;                      try stub2
printf "PK\3\4" >magic;                                  try magic
{ printf "\0\0\15\2\0\0\10\0\0\0\0\4"; values 32768; } >floats; try floats
printf "\0\0\10\1\0\0\10\0" >vector;                     try vector
printf "\0\0\10\377" >deep;                              try deep
printf "\0\0\10\2\0\0\10\0\0\0\0\0" >empty;              try empty
printf "\0\0\10\3\377\377\377\377\377\377\377\377\377\377\377\377" >huge;
                                                         try huge
{ printf "\0\0\10\2\0\0\0\1\0\0\20\1"; values 4097; } >wide; try wide
printf "\0\0\10\2\377\377\377\377\0\0\0\4" >tall;        try tall
{ printf "\0\0\10\2\0\0\0\12\0\0\0\4"; values 40; } >few; try few
{ printf "$header"; head -c 32768 /dev/zero; } >flat;    try flat
try absent
ls *.svg* 2>/dev/null; true
