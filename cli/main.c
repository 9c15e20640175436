/* main.c - the command flashsketch: finds the subcommand in a list and runs it. */
#include <errno.h>
#include <flashsketch_extend.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "command.h"
#include "nearest.h"

const cli_command *const cli_commands[] = {
    &sketch_command,    &add_command,     &lstsq_command, &qr_command,   &svd_command,  &pca_command,
    &leverage_command,  &solve_command,   &ridge_command, &gram_command, &ose_command,  &plan_command,
    &coherence_command, &grass_command,   &info_command,  &spec_command, &show_command, &check_command,
    &demo_command,      &version_command, &help_command,  NULL};

int cli_find(const char *name, const cli_command **command)
{
    char text[160];
    nearest near = nearest_start(name);
    for (int i = 0; cli_commands[i]; i++) {
        if (!strcmp(name, cli_commands[i]->name)) return *command = cli_commands[i], 0;
        nearest_add(&near, "", cli_commands[i]->name);
    }
    return cli_usage(NULL, "unknown %s '%s'%s", name[0] == '-' ? "option" : "command", name,
                     nearest_text(&near, text, sizeof text));
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) return cli_usage(NULL, "give a command, for example 'flashsketch demo'");
    const cli_command *command = NULL;
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) name = "version";
    if (!strcmp(name, "--document") && argc == 3) return cli_document(argv[2]); /* for the build */
    const int code = cli_find(name, &command);
    return code ? code : command->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    omp_set_num_threads(fs_thread_count(0)); /* for the command's own parallel regions: OMP_NUM_THREADS has no limit */
    int code = dispatch(argc, argv);
    if (code == CLI_HELPED) code = EXIT_SUCCESS;
    if ((fflush(stdout) || ferror(stdout)) && code == EXIT_SUCCESS)
        return cli_fail("standard output could not be written (%s)", strerror(errno));
    return code;
}
