# What is made from the tables: the list of commands is that of 'flashsketch help' in the man page and both completions;
# the shell can read its completion, and it completes.
command -v bash >/dev/null || exit 77
flashsketch help | sed -n 's/^  \([a-z]*\) .*/\1/p' >listed
flashsketch --document man >page
sed -n 's/^\.SS flashsketch \([a-z]*\) .*/\1/p' page | cmp - listed && echo man
flashsketch --document bash >completion && bash -n completion || exit
complete_words() {
    bash -c '. ./completion 2>/dev/null; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _flashsketch
             echo "${COMPREPLY[@]}"' bash "$@"
}
complete_words flashsketch '' | tr ' ' '\n' | grep -v '^-' | cmp - listed && echo bash
sed -n 's/^        \([a-z]*\)) COMPREPLY=.*/\1/p' completion | cmp - listed && echo options
flashsketch --document zsh >_flashsketch && head -n 1 _flashsketch
sed -n "s/^            '\([a-z]*\):.*/\1/p" _flashsketch | cmp - listed && echo zsh
sed -n 's/^        \([a-z][a-z]*\))$/\1/p' _flashsketch | cmp - listed && echo options
if command -v zsh >/dev/null; then zsh -n _flashsketch; fi
flags='{ all = ""; for (i = 1; i <= NF && $i ~ /^-/; i++) all = all $i; print all }'
for command in $(cat listed); do # each has its help, by two names, and the man page has all its options
    flashsketch $command --help >one && flashsketch help $command | cmp - one || exit
    awk '/^  (    )?-/'"$flags" one | grep -v '^-h,--help$' >options
    awk -v wanted="$command" '/^\.S/ { here = /^\.SS flashsketch/ && $3 == wanted } here && sub(/^\.B /, "")' page |
        tr -d '\\' | awk "$flags" | cmp - options || echo $command
done
complete_words flashsketch s
complete_words flashsketch sketch --d
complete_words flashsketch sketch --shuffle ''
complete_words flashsketch sketch --family s
complete_words flashsketch coherence --family ''
complete_words flashsketch show -o ''
complete_words flashsketch help s
complete_words flashsketch help -
flashsketch --document pdf; echo $?
