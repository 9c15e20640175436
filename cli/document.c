/* document.c - the man pages and the completions, made from the commands' tables: --help, man and the completions have
 * the same content.  The build calls 'flashsketch --document NAME' for each and installs what it prints. */
#include <ctype.h>
#include <flashsketch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "command.h"

/* man -------------------------------------------------------------------------------------------------------- */

/* Text for troff: backslashes and minus signs are escaped, and no line starts with a dot or a quote. */
static void roff(const char *text)
{
    for (const char *at = text; *at; at++) {
        const int starts = at == text || at[-1] == '\n';
        if (*at == '\\') fputs("\\e", stdout);
        else if (*at == '-') fputs("\\-", stdout);
        else if (starts && (*at == '.' || *at == '\'')) printf("\\&%c", *at);
        else putchar(*at);
    }
}

/* The first line of the usage is the heading; each of the others has its own. */
static void man_usage(const cli_command *command)
{
    printf(".SS flashsketch %s ", command->name);
    for (const char *at = command->arguments, *end; *at; at = end + strspn(end, "\n ")) {
        char line[160];
        end = at + strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(end - at), at);
        if (at != command->arguments) fputs(".br\n", stdout);
        roff(line);
        putchar('\n');
    }
    if (strchr(command->arguments, '\n')) fputs(".PP\n", stdout);
}

static void man_options(const cli_command *command)
{
    for (const cli_option *option = command->options; option->code; option++) {
        char left[64];
        cli_option_text(option, left, sizeof left);
        fputs(".TP\n.B ", stdout);
        roff(left + strspn(left, " "));
        putchar('\n');
        roff(option->text);
        putchar('\n');
    }
}

static void man_command(const cli_command *command)
{
    man_usage(command);
    roff(command->text);
    putchar('\n');
    man_options(command);
    if (!command->notes) return;
    fputs(".PP\n", stdout);
    roff(command->notes);
    putchar('\n');
}

static const char EXIT_STATUS[] =
    ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong command line. After 1 and 2 an error message on standard error\n"
    "says what to do, and no output file has been made or changed.\n";

/* The page of one command, flashsketch-NAME(1). */
static void man_page(const cli_command *command)
{
    fputs(".TH FLASHSKETCH\\-", stdout);
    for (const char *at = command->name; *at; at++) putchar(toupper((unsigned char)*at));
    printf(" 1 \"\" \"FlashSketch %s\" \"User Commands\"\n.SH NAME\nflashsketch\\-%s \\- ", fs_version(),
           command->name);
    roff(command->summary);
    fputs("\n.SH SYNOPSIS\n", stdout);
    for (const char *at = command->arguments, *end; *at; at = end + strspn(end, "\n ")) {
        char line[160];
        end = at + strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(end - at), at);
        if (at == command->arguments) printf(".B flashsketch %s\n", command->name);
        else fputs(".br\n", stdout);
        roff(line);
        putchar('\n');
    }
    if (!*command->arguments) printf(".B flashsketch %s\n", command->name);
    fputs(".SH DESCRIPTION\n", stdout);
    roff(command->text);
    putchar('\n');
    if (command->notes) {
        fputs(".PP\n", stdout);
        roff(command->notes);
        putchar('\n');
    }
    fputs(".SH OPTIONS\n", stdout);
    man_options(command);
    fputs(".TP\n.B \\-h, \\-\\-help\nprint this and exit\n", stdout);
    fputs(EXIT_STATUS, stdout);
    fputs(".SH SEE ALSO\n.BR flashsketch (1),\nwhich has the formats of files, environment variables and examples\n",
          stdout);
}

static void man(void)
{
    printf(".TH FLASHSKETCH 1 \"\" \"FlashSketch %s\" \"User Commands\"\n"
           ".SH NAME\nflashsketch \\- multiply matrices by random sketches, Y = S A\n"
           ".SH SYNOPSIS\n.B flashsketch\n.I COMMAND\n[\\fIOPTION\\fR]...\n"
           ".SH DESCRIPTION\n"
           "S is a random k x d matrix that a few numbers and a seed define, the same on every machine;\n"
           "Y = S A has k rows instead of d and keeps lengths, angles and least\\-squares solutions of A's columns.\n"
           ".SH COMMANDS\nEvery command has \\fB\\-h\\fR, \\fB\\-\\-help\\fR.\n",
           fs_version());
    for (int i = 0; cli_commands[i]; i++) man_command(cli_commands[i]);
    fputs(".SH FILES\n"
          "A matrix is read from npy (versions 1 to 3, floating point, integers and booleans, both byte orders, C and\n"
          "Fortran order), npz (an array, or csr, csc and coo of SciPy), Matrix Market (array and coordinate; real,\n"
          "integer and pattern; general, symmetric and skew\\-symmetric), safetensors (F16, BF16, F32, F64), IDX, and\n"
          "text: rows of numbers with commas, semicolons, tabs or spaces between them, with or without a header line.\n"
          "The first bytes show which it is; Matrix Market, IDX and text may be packed by gzip. Or from a raw\n"
          "file of little\\-endian elements. Integers of up to 16 bits and booleans become f32; those of 32 and 64\n"
          "bits and numbers in text f64, beyond 2^53 rounded. An array of more than two dimensions is the matrix of\n"
          "its first one by all the others; one of a single dimension is a column. \\- is standard input or output.\n"
          ".SH ENVIRONMENT\n"
          ".TP\n.B FLASHSKETCH_ISA\nthe CPU variant: ref, base, avx2 or avx512\n"
          ".TP\n.B FLASHSKETCH_CUDA_PLUGIN\nthe path of the CUDA plugin\n"
          ".TP\n.B FLASHSKETCH_GRASS_CUDA_PLUGIN\nthe path of the plugin that trains models on a GPU, for grass\n"
          ".TP\n.B FLASHSKETCH_TUNING\na table of measured kernel choices for a GPU\n"
          ".TP\n.B TMPDIR\nthe folder (otherwise /tmp) that a pipe is copied to where it cannot be read in order\n"
          ".TP\n.B OMP_NUM_THREADS\nthe number of CPU threads\n",
          stdout);
    fputs(EXIT_STATUS, stdout);
    fputs(".SH EXAMPLES\n"
          ".nf\n"
          "flashsketch sketch \\-k 400 \\-\\-seed 7 A.npy \\-o Y.npy\n"
          "flashsketch sketch \\-k 4096 \\-\\-batch\\-major \\-\\-shuffle groups grads.npy \\-o Y.npy\n"
          "flashsketch lstsq \\-\\-rhs B.npy A.npy \\-o X.npy\n"
          "flashsketch svd \\-r 20 \\-\\-one\\-read A0.npy A1.npy \\-U U.npy \\-S s.npy \\-V V.npy\n"
          "flashsketch plan \\-n 100 \\-\\-error 0.3\n"
          "flashsketch coherence \\-k 1024 \\-\\-kappa 4 \\-\\-shuffle none A.mtx.gz\n"
          "flashsketch check\n"
          ".fi\n"
          ".SH SEE ALSO\n",
          stdout);
    for (int i = 0; cli_commands[i]; i++)
        printf(".BR flashsketch\\-%s (1)%s\n", cli_commands[i]->name, cli_commands[i + 1] ? "," : "");
}

/* completions ------------------------------------------------------------------------------------------------ */

static void bash_words(const cli_command *command)
{
    for (const cli_option *option = command->options; option->code; option++) {
        if (option->code < 256) printf("-%c ", option->code);
        if (option->name) printf("--%s ", option->name);
    }
    fputs("-h --help", stdout);
}

/* The values of an option; the same for all commands that have it, so one case for each line of each table. */
static void bash_values(const cli_command *command)
{
    for (const cli_option *option = command->options; option->code; option++) {
        if (!option->argument) continue;
        printf("        %s:", command->name);
        if (option->code < 256) printf("-%c", option->code);
        if (option->code < 256 && option->name) printf("|%s:", command->name);
        if (option->name) printf("--%s", option->name);
        if (!option->words) fputs(") return ;;\n", stdout);
        else if (!strcmp(option->words, CLI_FILES)) fputs(") compopt -o default; return ;;\n", stdout);
        else printf(") COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n", option->words);
    }
}

static void bash(void)
{
    fputs("# bash completion for flashsketch\n_flashsketch()\n{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
          "    COMPREPLY=()\n    if ((COMP_CWORD == 1)) || [[ $command == help && $word != -* ]]; then\n"
          "        COMPREPLY=($(compgen -W '",
          stdout);
    for (int i = 0; cli_commands[i]; i++) printf("%s ", cli_commands[i]->name);
    fputs("--help --version' -- \"$word\"))\n        return\n    fi\n    case $command:$before in\n", stdout);
    for (int i = 0; cli_commands[i]; i++) bash_values(cli_commands[i]);
    fputs("    esac\n    if [[ $word != -* ]]; then\n        compopt -o default\n        return\n    fi\n"
          "    case $command in\n",
          stdout);
    for (int i = 0; cli_commands[i]; i++) {
        printf("        %s) COMPREPLY=($(compgen -W '", cli_commands[i]->name);
        bash_words(cli_commands[i]);
        fputs("' -- \"$word\")) ;;\n", stdout);
    }
    fputs("    esac\n}\ncomplete -F _flashsketch flashsketch\n", stdout);
}

/* Text inside '...[...]' of _arguments: its first line, without what has a meaning there. */
static void zsh_text(const char *text)
{
    for (; *text && *text != '\n'; text++)
        if (*text == '\'') fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text)) printf("\\%c", *text);
        else putchar(*text);
}

static void zsh_option(const cli_option *option)
{
    char names[2][40] = {"", ""};
    if (option->code < 256) snprintf(names[0], sizeof names[0], "-%c", option->code);
    if (option->name) snprintf(names[1], sizeof names[1], "--%s", option->name);
    for (int i = 0; i < 2; i++) {
        if (!names[i][0]) continue;
        printf(" \\\n                '%s%s[", names[i], option->argument && i ? "=" : "");
        zsh_text(option->text);
        putchar(']');
        if (option->argument) printf(":%s:", option->argument);
        if (option->words && !strcmp(option->words, CLI_FILES)) fputs("_files", stdout);
        else if (option->words) printf("(%s)", option->words);
        putchar('\'');
    }
}

static void zsh(void)
{
    fputs("#compdef flashsketch\n_flashsketch()\n{\n"
          "    if ((CURRENT == 2)) || [[ ${words[2]} == help && $PREFIX != -* ]]; then\n"
          "        local -a commands=(\n",
          stdout);
    for (int i = 0; cli_commands[i]; i++) {
        printf("            '%s:", cli_commands[i]->name);
        zsh_text(cli_commands[i]->summary);
        fputs("'\n", stdout);
    }
    fputs("        )\n        _describe command commands\n        return\n    fi\n"
          "    local command=${words[2]}\n    shift words\n    ((CURRENT--))\n    case $command in\n",
          stdout);
    for (int i = 0; cli_commands[i]; i++) {
        printf("        %s)\n            _arguments", cli_commands[i]->name);
        for (const cli_option *option = cli_commands[i]->options; option->code; option++) zsh_option(option);
        fputs(" \\\n                '(-h --help)'{-h,--help}'[help]' '*:file:_files' ;;\n", stdout);
    }
    fputs("    esac\n}\n_flashsketch \"$@\"\n", stdout);
}

int cli_document(const char *name)
{
    const cli_command *command = NULL;
    if (!strncmp(name, "man-", 4)) {
        const int found = cli_find(name + 4, &command);
        if (found) return found;
        man_page(command);
    } else if (!strcmp(name, "man")) man();
    else if (!strcmp(name, "bash")) bash();
    else if (!strcmp(name, "zsh")) zsh();
    else return cli_usage(NULL, "--document makes man, bash or zsh, not '%s'", name);
    return EXIT_SUCCESS;
}
