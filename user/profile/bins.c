// -n and -r: the histogram of addresses, from the kernel's address-bin
// profiler.
#define _GNU_SOURCE // syscall
#include "profile.h"

#include "histogram.h"
#include "lib/elf.h"
#include "user/libstrobe/child.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u

// Finds the program's code in its file's addresses. Returns false if the file
// is no program; the kernel reports that later.
static bool find_code(const char *path, uint32_t *low, uint32_t *high)
{
    size_t size;
    char *image = program_read(path, &size);
    struct elf_header h = { 0 };
    struct elf_segment s;
    bool found = false;

    if (image && size >= sizeof(h))
        memcpy(&h, image, sizeof(h));
    for (uint32_t i = 0; i < h.phnum && !found; i++) {
        uint64_t at = h.phoff + (uint64_t)i * sizeof(s);
        if (at + sizeof(s) > size)
            break;
        memcpy(&s, image + at, sizeof(s));
        found = s.type == ELF_PT_LOAD && s.flags & ELF_PF_X && s.memsz > 0;
    }
    free(image);
    if (found) {
        *low = s.vaddr & -PAGE;
        *high = (s.vaddr + s.memsz - 1) | (PAGE - 1);
    }
    return found;
}

// Sets the address range to sample. With -r, a range that begins below the
// program's code is relative to the code's start, and so are the printed
// addresses; they then have four digits, as the output format requires. Returns
// the origin that is subtracted from printed addresses.
static uint32_t place(const struct settings *s, const char *path,
                      uint32_t range[2])
{
    uint32_t low, high, origin;

    if (!s->has_range)
        return 0;
    memcpy(range, s->range, sizeof(s->range));
    if (!find_code(path, &low, &high))
        return 0;
    origin = range[0] < low ? low : 0;
    range[0] += origin;
    range[1] += origin;
    if (range[1] > high || range[1] < range[0])
        fail(1,
             "-r: %s has code from %" PRIX32 " to %" PRIX32
             ", or 0 to %" PRIX32,
             path, low, high, high - low);
    return origin;
}

static const char *problem(int error)
{
    switch (error) {
    case EBUSY:
        return "the kernel is already profiling another task";
    case EPERM:
        return PROFILE_PERMISSION;
    case EFAULT:
        return "the range is not in the program's code";
    case ESRCH:
        return "it has ended";
    default:
        return strerror(error);
    }
}

int run_histogram(const struct settings *s)
{
    static struct prof_data data;
    uint32_t range[2] = { 0, 0 };
    struct child child;

    child_start(&child, s->command);
    uint32_t origin = place(s, child.path, range);
    if (syscall(SYS_profile, child.pid, range[0], range[1]) < 0)
        fail(1, "%s: %s", s->command[0], problem(errno));
    child_go(&child);
    child_end(&child);
    if (syscall(SYS_getprof, &data) < 0)
        fail(1, "getprof: %s", strerror(errno));
    if (data.bins_used == 0)
        fail(1, "%s: %s", s->command[0], problem(EFAULT));
    histogram_print(stdout, s->command[0], &data, s->histogram_rows,
                    s->has_range ? data.low - range[0] + origin : data.low);
    free(child.path);
    return 0;
}
