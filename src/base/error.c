/* error.c - the thread's last error message, and the version of the library. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "def/def.h"

static _Thread_local char message[2048];

fs_result fs_fail(fs_result code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return code;
}

const char *fs_error_message(void) { return message; }

const char *fs_result_name(fs_result result)
{
    switch (result) {
    case FS_OK: return "FS_OK";
    case FS_EINVAL: return "FS_EINVAL";
    case FS_ENOMEM: return "FS_ENOMEM";
    case FS_EUNSUPPORTED: return "FS_EUNSUPPORTED";
    case FS_EBACKEND: return "FS_EBACKEND";
    case FS_EFILE: return "FS_EFILE";
    }
    return "not an fs_result";
}

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
const char *fs_version(void) { return TEXT(FS_VERSION_MAJOR) "." TEXT(FS_VERSION_MINOR) "." TEXT(FS_VERSION_PATCH); }
int fs_version_number(void) { return FS_VERSION; }
int fs_definition_version(void) { return FSI_DEFINITION_VERSION; }
