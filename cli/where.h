/* where.h - the options of a command's backend, device and threads. */
#ifndef FSI_CLI_WHERE_H
#define FSI_CLI_WHERE_H

#include <flashsketch.h>

/* A command puts these in its table of options; WHERE_OPTIONS_OF where it takes some of the devices only. */
#define WHERE_OPTIONS WHERE_OPTIONS_OF("auto (default), cpu, cuda or cuda:N", "auto cpu cuda")
#define WHERE_OPTIONS_OF(device_text, devices) \
    {WHERE_DEVICE, "device", "WHERE", device_text, devices}, \
    { \
        WHERE_THREADS, "threads", "N", "CPU threads (default: all)", NULL \
    }
enum { WHERE_DEVICE = 768, WHERE_THREADS };

/* Is this the code of one of these options? */
int where_is_option(int code);

/* Puts the value of such an option into *where.  Returns 0, or EXIT_USAGE after printing what is wrong. */
int where_option(const char *command, int code, const char *text, fs_context_options *where);

#endif
