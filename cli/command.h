/* command.h - a command of flashsketch: its name, options and texts in one table, from which the command line is read
 * and --help, the man page and the completions are made. */
#ifndef FSI_CLI_COMMAND_H
#define FSI_CLI_COMMAND_H

typedef struct cli_option {
    int code;             /* the code passed to `take`; where it is a character, that is the short option */
    const char *name;     /* the long option; NULL: there is none */
    const char *argument; /* the name of its value: "N"; NULL: it has none */
    const char *text;     /* its help; may have several lines */
    const char *words;    /* for completion: the possible values, "none rows groups"; CLI_FILES; NULL: anything */
} cli_option;
#define CLI_FILES "<file>"

typedef struct cli_command {
    const char *name;
    const char *arguments;     /* "[OPTION]... FILE" */
    const char *summary;       /* for the list of commands */
    const char *text;          /* above the options: text in lines */
    const cli_option *options; /* the last one's code is 0; --help is every command's and not in the list */
    const char *notes;         /* below the options; NULL: nothing */
    int (*run)(int argc, char **argv);
} cli_command;

/* Reads the options of a command line: take(options, code, value) for each, which returns 0, or EXIT_USAGE after
 * printing the error.  Options may precede, follow and separate other arguments, up to "--"; the name of a long one
 * must be complete.  Returns 0, and argv[1] ... argv[*argc - 1] are the arguments that are not options; EXIT_USAGE; or
 * CLI_HELPED after printing the help, for which the command returns at once. */
enum { CLI_HELPED = -1 };
int cli_parse(const cli_command *command, int *argc, char **argv,
              int (*take)(void *options, int code, const char *value), void *options);

/* Prints the help of a command; returns CLI_HELPED. */
int cli_help(const cli_command *command);

/* All commands, in the order of the help; the last one is NULL.  In main.c. */
extern const cli_command *const cli_commands[];

/* Finds a command by its name.  Returns 0, or EXIT_USAGE after printing that it is unknown, with the nearest names.  In
 * main.c. */
int cli_find(const char *name, const cli_command **command);

/* The synopsis of the option, "  -o, --output FILE": for the help and the man page.  Returns its length. */
int cli_option_text(const cli_option *option, char *text, int bytes);

/* Prints a document made from the tables: "man", "man-NAME" for a command, "bash" or "zsh".  Returns the exit code. */
int cli_document(const char *name);

extern const cli_command sketch_command, add_command, lstsq_command, qr_command, svd_command, pca_command,
    leverage_command, plan_command, solve_command, ridge_command, gram_command, ose_command, coherence_command,
    grass_command, info_command, spec_command, show_command, check_command, demo_command, version_command, help_command;

#endif
