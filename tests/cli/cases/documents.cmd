# What is made from the tables: the shell can read its completion, and it completes; the man page has every command.
command -v bash >/dev/null || exit 77
flashsketch --document bash >completion && bash -n completion || exit
complete_words() {
    bash -c '. ./completion 2>/dev/null; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _flashsketch
             echo "${COMPREPLY[@]}"' bash "$@"
}
complete_words flashsketch s
complete_words flashsketch sketch --d
complete_words flashsketch sketch --shuffle ''
complete_words flashsketch coherence --family s
complete_words flashsketch show -o ''
flashsketch --document man >page
for command in sketch solve ridge gram ose coherence grass info spec show check demo version; do
    grep -c "^.SS flashsketch $command" page
done
grep -c '^\.B ' page
flashsketch --document zsh >_flashsketch && head -n 1 _flashsketch
if command -v zsh >/dev/null; then zsh -n _flashsketch; fi
flashsketch --document pdf; echo $?
