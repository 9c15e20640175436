/* cmd_version.c - flashsketch version: two numbers, because S has a version of its own. */
#include <flashsketch.h>
#include <stdio.h>

#include "cli.h"
#include "command.h"
#include "json.h"

enum { JSON = 256 };

static int version_take(void *options, int code, const char *value)
{
    (void)value;
    *(int *)options |= code == JSON;
    return 0;
}

static int version_run(int argc, char **argv)
{
    int json = 0;
    const int code = cli_parse(&version_command, &argc, argv, version_take, &json);
    if (code) return code;
    if (argc > 1) return cli_usage(argv[0], "it takes no arguments, but got '%s'", argv[1]);
    if (!json) {
        printf("flashsketch %s, definition of S %d\n", fs_version(), fs_definition_version());
        return 0;
    }
    cJSON *out = cJSON_CreateObject();
    json_versions(out);
    return json_print(out);
}

static const cli_option options[] = {{JSON, "json", NULL, "print a JSON object", NULL}, {0}};
const cli_command version_command = {
    "version",
    "[OPTION]...",
    "print the versions of the library and of the definition of S",
    "Prints the version of the library, and that of the definition of S: two machines with the same\n"
    "definition have the same S for every spec.",
    options,
    NULL,
    version_run};
