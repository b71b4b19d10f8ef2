#include "kernel/base/cmdline.h"

#include "arch/boot.h"
#include "kernel/base/log.h"
#include "lib/string.h"

static struct kernel_arg *find(const char *name, size_t n)
{
    LINKER_SET_FOR_EACH(struct kernel_arg, a, kernel_args) {
        if (strlen((*a)->name) == n && !memcmp((*a)->name, name, n))
            return *a;
    }
    return NULL;
}

static void list_known(void)
{
    log_printf("known kernel arguments:\n");
    LINKER_SET_FOR_EACH(struct kernel_arg, a, kernel_args) {
        log_printf("  %s\n", (*a)->help);
    }
}

static bool take_word(const char *word, size_t n)
{
    const char *equals = memchr(word, '=', n);
    size_t name_length = equals ? (size_t)(equals - word) : n;
    struct kernel_arg *a = find(word, name_length);
    if (!a)
        return false;
    a->present = true;
    const char *value = equals ? equals + 1 : word + n;
    size_t value_length = (size_t)(word + n - value);
    if (value_length >= sizeof(a->value)) {
        value_length = sizeof(a->value) - 1;
        log_printf("warning: the value of %s is cut at %u characters\n",
                   a->name, (u32)value_length);
    }
    memcpy(a->value, value, value_length);
    a->value[value_length] = 0;
    return true;
}

bool kernel_arg_number(const struct kernel_arg *arg, u32 *number)
{
    if (!arg->present)
        return false;
    u64 n = 0;
    const char *s = arg->value;
    for (; *s >= '0' && *s <= '9' && n <= UINT32_MAX; s++)
        n = n * 10 + (u32)(*s - '0');
    if (*s || s == arg->value || n > UINT32_MAX) {
        log_printf("warning: %s=%s: not a number\n", arg->name, arg->value);
        return false;
    }
    *number = (u32)n;
    return true;
}

void cmdline_parse(const char *cmdline)
{
    bool unknown = false;
    if (strlen(cmdline) >= BOOT_CMDLINE_MAX - 1)
        log_printf("warning: the kernel command line is truncated at: '%s'\n",
                   cmdline + BOOT_CMDLINE_MAX - 20);
    for (const char *p = cmdline; *p;) {
        if (*p == ' ') {
            p++;
            continue;
        }
        size_t n = 0;
        while (p[n] && p[n] != ' ')
            n++;
        // The loader's first word may be the kernel's own path.
        if (!take_word(p, n) && !(p == cmdline && *p == '/') &&
            !(p == cmdline && strstr(p, "kernel.elf"))) {
            log_printf("warning: unknown kernel argument '%.*s'\n", (int)n, p);
            unknown = true;
        }
        p += n;
    }
    if (unknown)
        list_known();
}
