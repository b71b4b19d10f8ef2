// kernel/base/cmdline.c, compared with a reader that splits the line with
// strtok.
// link: kernel/base/cmdline.c
#include "host.h"

#include <string.h>

#include "arch/boot.h"
#include "kernel/base/cmdline.h"
#include "log.h"

KERNEL_ARG(console, "console=NAME");
KERNEL_ARG(test, "test=NAME");
KERNEL_ARG(a, "a=NUMBER");
KERNEL_ARG(acpi, "acpi=off");

static struct kernel_arg *const args[] = { &arg_console, &arg_test, &arg_a,
                                           &arg_acpi };

// The last word with an argument's name counts.
static const char *model_value(char *line, const char *name, bool *present)
{
    const char *value = "";
    size_t length = strlen(name);
    *present = false;
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
        if (strncmp(word, name, length) ||
            (word[length] && word[length] != '='))
            continue;
        *present = true;
        value = word[length] ? word + length + 1 : "";
    }
    return value;
}

static void check_number(const struct kernel_arg *arg)
{
    u32 number = 0;
    bool is = kernel_arg_number(arg, &number);
    const char *v = arg->value;
    bool digits = *v && strspn(v, "0123456789") == strlen(v);
    while (*v == '0' && v[1])
        v++;
    bool fits =
        strlen(v) < 10 || (strlen(v) == 10 && strcmp(v, "4294967296") < 0);
    REQUIRE(is == (arg->present && digits && fits));
    if (is)
        REQUIRE(number == strtoull(v, NULL, 10));
}

static void check(const char *cmdline, const struct kernel_arg *arg)
{
    char *copy = guarded(cmdline, strlen(cmdline) + 1);
    bool present;
    const char *value = model_value(copy, arg->name, &present);
    REQUIRE(arg->present == present);
    size_t length = strlen(value), kept = MIN(length, sizeof(arg->value) - 1);
    REQUIRE(strlen(arg->value) == kept && !memcmp(arg->value, value, kept));
    check_number(arg);
    free(copy);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    // The loader's line is truncated to that length, and ends in a NUL.
    char line[BOOT_CMDLINE_MAX] = { 0 };
    memcpy(line, data, MIN(size, sizeof(line) - 1));
    char *cmdline = guarded(line, strlen(line) + 1);
    for (u32 i = 0; i < ARRAY_SIZE(args); i++) {
        args[i]->present = false;
        args[i]->value[0] = 0;
    }
    cmdline_parse(cmdline);
    for (u32 i = 0; i < ARRAY_SIZE(args); i++)
        check(cmdline, args[i]);
    free(cmdline);
    return 0;
}
