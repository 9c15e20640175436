#!/bin/sh
# commit_subject.sh - checks the first line of a commit message: "area: imperative", at most 72 characters.
#
# usage: commit_subject.sh FILE      FILE: the message; a commit-msg hook of git gets it as its argument
#        commit_subject.sh --self-test
#
# area is a folder or file of the tree, or several with commas: "cuda/plan: ...", "cli, tests: ...".  The words of git's
# own messages ("Merge ...", "Revert ...", "fixup! ...") pass.  Whether the verb is an imperative is left to the reader.
set -u

# fault SUBJECT: prints what is wrong with it, if anything.
fault() {
    case $1 in
    "Merge "* | "Revert "* | "fixup! "* | "squash! "*) return ;;
    esac
    [ "$(printf %s "$1" | LC_ALL=C.UTF-8 wc -m)" -le 72 ] ||
        echo "the subject has $(printf %s "$1" | LC_ALL=C.UTF-8 wc -m) characters; at most 72 fit"
    printf '%s\n' "$1" | grep -qE '^[A-Za-z0-9_./-]+(, [A-Za-z0-9_./-]+)*: [^ ]' ||
        echo "the subject does not start with an area, as in 'cuda/plan: reduce the split of short rows'"
    case $1 in
    *.) echo "the subject ends with a full stop" ;;
    esac
}

if [ "${1-}" = --self-test ]; then
    result=0
    good() { [ -z "$(fault "$1")" ] || { echo "wrongly refused: $1: $(fault "$1")"; result=1; }; }
    bad() { [ -n "$(fault "$1")" ] || { echo "wrongly accepted: $1"; result=1; }; }
    good "cuda/plan: reduce the split of short rows"
    good "cli, tests: keep lines within 120 columns"
    good ".clang-tidy: add checks"
    good "Merge branch 'main'"
    good "docs: $(printf '%066d' 0)"
    bad "docs: $(printf '%067d' 0)"
    bad "Reduce the split of short rows"
    bad "cuda: reduce the split."
    bad "cuda:reduce the split"
    bad ""
    exit $result
fi

subject=$(sed -n '/^#/!{p;q;}' "${1:?"usage: commit_subject.sh FILE"}")
wrong=$(fault "$subject")
[ -z "$wrong" ] && exit 0
printf '%s\n' "$subject" "$wrong" >&2
exit 1
