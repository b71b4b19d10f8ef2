// /dev/keymap: the layout of all keyboards. Reading gives the names of the
// layouts, the current one in brackets; a name that is written changes it.
#include "kernel/base/errno.h"
#include "kernel/base/keyboard.h"
#include "kernel/fs/devfs.h"
#include "lib/format.h"
#include "lib/string.h"

#define MISC_MAJOR 10
#define KEYMAP_MINOR 242
#define TEXT_MAX 64u

static int read_names(struct file *f UNUSED, struct io *io, u64 *pos)
{
    char text[TEXT_MAX];
    const char *now = keyboard_layout()->name, *name = layout_names;
    size_t n = 0;
    for (size_t length; *name; name += length) {
        for (length = 0; name[length] && name[length] != ' ';)
            length++;
        bool is_current = strncmp(name, now, length) == 0 && !now[length];
        char end = name[length] ? ' ' : '\n';
        n += (size_t)format(text + n, TEXT_MAX - n,
                            is_current ? "[%.*s]%c" : "%.*s%c", (int)length,
                            name, end);
        length += end == ' ';
    }
    u32 from = (u32)MIN(*pos, (u64)n);
    n = MIN(n - from, io->left);
    int err = io_to(io, text + from, n);
    if (err)
        return err;
    *pos += n;
    return (int)n;
}

static int write_name(struct file *f UNUSED, struct io *io, u64 *pos UNUSED)
{
    char name[TEXT_MAX];
    size_t n = io->left;
    if (n >= sizeof(name))
        return -EINVAL;
    int err = io_from(io, name, n);
    if (err)
        return err;
    name[n] = '\0';
    if (n > 0 && name[n - 1] == '\n')
        name[n - 1] = '\0';
    const struct layout *wanted = layout_find(name);
    if (!wanted)
        return -EINVAL;
    keyboard_use(wanted);
    return (int)n;
}

static const struct file_ops device_ops = {
    .read = read_names,
    .write = write_name,
};
static const struct char_device keymap_device = {
    .name = "keymap",
    .rdev = DEVICE_NUMBER(MISC_MAJOR, KEYMAP_MINOR),
    .mode = 0644,
    .ops = &device_ops,
};
CHAR_DEVICE(keymap_device);
