/* nearest.c - see nearest.h. */
#include "nearest.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST = 32 }; /* letters of a word that is compared with names */

static int least(int a, int b) { return a < b ? a : b; }

/* Damerau's distance between two words of at most LONGEST letters, no letter edited twice. */
static int distance(const char *a, const char *b)
{
    int cost[LONGEST + 1][LONGEST + 1];
    const int rows = (int)strlen(a), cols = (int)strlen(b);
    for (int i = 0; i <= rows; i++) cost[i][0] = i;
    for (int j = 0; j <= cols; j++) cost[0][j] = j;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= cols; j++) {
            const int edit = least(cost[i - 1][j], cost[i][j - 1]) + 1;
            cost[i][j] = least(edit, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                cost[i][j] = least(cost[i][j], cost[i - 2][j - 2] + 1);
        }
    return cost[rows][cols];
}

nearest nearest_start(const char *word) { return (nearest){.word = word, .best = (int)strlen(word) / 3}; }

void nearest_take(nearest *n, int far, const char *prefix, const char *name)
{
    if (far > n->best) return;
    if (far < n->best) n->count = 0;
    n->best = far;
    if (n->count < NEAREST_MOST) snprintf(n->found[n->count++], sizeof n->found[0], "%s%s", prefix, name);
}

void nearest_add(nearest *n, const char *prefix, const char *name)
{
    const size_t length = strlen(n->word);
    if (length < 1 || length > LONGEST || strlen(name) > LONGEST) return;
    nearest_take(n, strncmp(name, n->word, length) ? distance(n->word, name) : 0, prefix, name);
}

const char *nearest_text(const nearest *n, char *text, int bytes)
{
    int at = snprintf(text, (size_t)bytes, "%s", n->count ? "; did you mean " : "");
    for (int i = 0; i < n->count && at < bytes; i++)
        at += snprintf(text + at, (size_t)(bytes - at), "%s%s",
                       i == 0             ? ""
                       : i + 1 < n->count ? ", "
                                          : " or ",
                       n->found[i]);
    if (n->count && at < bytes) snprintf(text + at, (size_t)(bytes - at), "?");
    return text;
}
