// Strings: paths of a jail and of the sysinfo tree, types of filesystems, text.
#include "values.h"

#include <string.h>
#include <sys/syscall.h>

#include <strobe/sysinfo.h>

static const char *const names[] = {
    "a",
    "b",
    "c",
    "d",
    "d/a",
    "d/b",
    "d/e/a",
    "link",
    "loop",
    "fifo",
    "m",
    "m/a",
    "m/b",
    "proc/self",
    "proc/self/maps",
    "proc/self/exe",
    "proc/stat",
    "proc/self/fd/3",
    "proc/self/stat",
    "proc/self/cmdline",
    "proc/1/stat",
    "proc/mounts",
    "proc/self/fd",
    "proc/meminfo",
    "dev/null",
    "dev/zero",
    "dev/full",
    "dev/tty",
    "dev/tty0",
    "dev/statclock",
    "dev/rtc",
    "dev/random",
    "prog",
    "script",
    "..",
    ".",
    "",
    "/",
    "/a",
    "d/../b",
    "a/",
    "tmpfs",
    "proc",
    "devtmpfs",
    "dev/rtc0",
    "proc/self/root",
    "proc/self/cwd",
    "dev",
    "d/e",
    "proc/interrupts",
    "proc/self/mem",
    "dev/kmsg",
    "dev/failalloc",
};

static const char *const filesystems[] = { "tmpfs", "tmpfs", "proc",
                                           "",      "vfat",  "vfat" };
// tools/fuzz gives the first one to the machine.
static const char *const disks[] = { "sata0", "sata0", "sata0p1", "none", "" };
#define ONE_OF(d, list) list[draw_below(d, sizeof(list) / sizeof(*list))]

static void put_path(struct draw *d, char *at)
{
    uint32_t what = draw_below(d, 64);
    if (what == 0) { // a long name, a too long one, a too long path
        uint32_t length = PICK(d, 254, 255, 256, ROOM_WORDS * 4 - 1);
        memset(at, draw_below(d, 2) ? 'x' : '/', length);
        at[length] = '\0';
        return;
    }
    *at = '/'; // half of them are absolute
    strcpy(at + draw_below(d, 2), ONE_OF(d, names));
    if (what == 1)
        at[draw_below(d, (uint32_t)strlen(at) + 1)] = (char)draw_word(d);
}

// A path in the current sysinfo tree, of a depth that the number says; some are
// damaged.
static void put_node(struct draw *d, char *at)
{
    static char keys[WORKERS][2 * PAGE];
    char *list = keys[draw_below(d, WORKERS)];
    uint32_t size = 0;

    for (uint32_t depth = draw_below(d, 6); depth > 0; depth--) {
        long n = raw_call(SYS_sysinfo_get_keys, (uint32_t)at, size,
                          (uint32_t)list, 2 * PAGE - 1);
        if (n <= 0 || n > (long)(2 * PAGE - 1))
            break;
        list[2 * PAGE - 1] = '\0';
        const char *key = list + draw_below(d, (uint32_t)n);
        while (key > list && key[-1] != '\0')
            key--;
        size_t length = strlen(key);
        if (length == 0 || size + length + 2 > SYSINFO_PATH_MAX)
            break;
        if (size > 0)
            at[size++] = '.';
        memcpy(at + size, key, length);
        size += (uint32_t)length;
    }
    at[size] = '\0';
    if (draw_below(d, 8) == 0)
        at[draw_below(d, size + 1)] = (char)draw_word(d);
}
static uint32_t put_text(struct draw *d, uint32_t *at)
{
    uint32_t length = draw_below(d, 200);
    for (uint32_t i = 0; i < length; i++)
        ((char *)at)[i] = (char)(1 + draw_below(d, 127));
    ((char *)at)[length] = '\0';
    return length + 1;
}

uint32_t put_string(struct worker *w, struct draw *d, uint32_t kind,
                    uint32_t *at)
{
    if (kind == TOKEN_path)
        put_path(d, (char *)at);
    else if (kind == TOKEN_node)
        put_node(d, (char *)at);
    else if (kind == TOKEN_filesystem)
        strcpy((char *)at, ONE_OF(d, filesystems));
    else if (kind == TOKEN_disk)
        strcpy((char *)at, ONE_OF(d, disks));
    else
        put_text(d, at);
    w->last_length = (uint32_t)strlen((char *)at);
    return w->last_length + 1;
}
