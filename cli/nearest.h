/* nearest.h - "did you mean": the names nearest to an unknown word. */
#ifndef FSI_CLI_NEAREST_H
#define FSI_CLI_NEAREST_H

enum { NEAREST_MOST = 3 };

typedef struct nearest {
    const char *word;
    int best; /* the distance of the names found; while count is 0, the largest that is near enough */
    int count;
    char found[NEAREST_MOST][40]; /* with its prefix */
} nearest;

/* Begins a search for names near `word`. */
nearest nearest_start(const char *word);

/* Takes `name` into account, which is shown as prefix and name.  A name that begins with the word has the distance 0,
 * any other the number of letters to insert, remove, replace or swap with a neighbour; of those nearest, the first
 * three are kept.  A distance above a third of the word's length is too far. */
void nearest_add(nearest *n, const char *prefix, const char *name);

/* The same with a distance that the caller knows. */
void nearest_take(nearest *n, int far, const char *prefix, const char *name);

/* "; did you mean -k or --kappa?", or "" where nothing is near.  The text is in `text`. */
const char *nearest_text(const nearest *n, char *text, int bytes);

#endif
