// The kernel's memory before and after, while the supervisor is the fuzzer's
// only task. Objects in use are counted exactly per cache, so a leak of one in
// ten thousand calls is found. Per-CPU caches may have grown, up to the bounds
// in memory_check.
#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#define CACHES_MAX 128u
// Allowed growth of one cache: for example an answerbox of each remaining task
// (init, the shells, the supervisor) that a worker has called.
#define OBJECTS_MAX 12
// The kernel's own bounds: KSTACK_CACHED stacks on each CPU, of 16 KiB on a
// checked kernel; a frame of magazines for each cache.
#define STACKS_CACHED 8
#define STACK_BYTES 16384
// Growth of the supervisor itself: its heap, and page tables for that.
#define OWN_BYTES 131072
#define SETTLE_TRIES 100

static struct note {
    struct sysinfo_slab caches[CACHES_MAX];
    size_t count;
    struct sysinfo_physmem m;
} before, after;

static int open_and_close(const char *path, const struct stat *s, int type,
                          struct FTW *place)
{
    (void)s;
    (void)place;
    if (type == FTW_F)
        close(open(path, O_RDONLY));
    return 0;
}

// Opens and closes each sensor of the kernel: one whose last descriptor was
// closed while it was mapped keeps its memory until then.
static void sensors_quiesce(void)
{
    nftw("/sensors", open_and_close, 4, FTW_PHYS);
}

static void note(struct note *n)
{
    mounts_quiesce();
    sensors_quiesce();
    struct sysinfo_slab *all = sysinfo_read_slab("system.slabs", &n->count);
    if (all == NULL || n->count > CACHES_MAX)
        sysinfo_fail("system.slabs");
    memcpy(n->caches, all, n->count * sizeof(*all));
    free(all);
    if (sysinfo_get_physmem("system.physmem", &n->m) < 0)
        sysinfo_fail("system.physmem");
}

void memory_note(void)
{
    note(&before);
}

static bool is_within(const char *name, int64_t more, int64_t bound)
{
    if (more <= bound)
        return true;
    printf("FAILED memory: %s %+lld, explained are %lld\n", name,
           (long long)more, (long long)bound);
    return false;
}

// A new cache had no objects before.
static int64_t more_objects(const struct sysinfo_slab *c)
{
    for (size_t i = 0; i < before.count; i++) {
        if (strcmp(before.caches[i].name, c->name) == 0)
            return (int64_t)c->objects - before.caches[i].objects;
    }
    return c->objects;
}

static bool check_objects(void)
{
    bool good = true;
    for (size_t i = 0; i < after.count; i++) {
        const struct sysinfo_slab *c = &after.caches[i];
        good &= is_within(c->name, more_objects(c), OBJECTS_MAX);
    }
    return good;
}

// Allocations of the heap that are too large for a cache, and magazines.
static uint64_t large(const struct note *n)
{
    uint64_t bytes = n->m.slab;
    for (size_t i = 0; i < n->count; i++)
        bytes -= n->caches[i].memory;
    return bytes;
}

// Waits until init and other CPUs have freed what ended tasks left.
static void settle(void)
{
    for (uint32_t i = 0; i < SETTLE_TRIES; i++) {
        note(&after);
        bool good = true;
        for (size_t c = 0; c < after.count; c++)
            good &= more_objects(&after.caches[c]) <= OBJECTS_MAX;
        good &= after.m.buffer <= before.m.buffer + OWN_BYTES;
        if (good)
            return;
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
}

bool memory_check(void)
{
    settle();
    const struct sysinfo_physmem *b = &before.m, *a = &after.m;
    int64_t stacks =
        sysconf(_SC_NPROCESSORS_CONF) * STACKS_CACHED * STACK_BYTES;
    int64_t magazines =
        OWN_BYTES + (int64_t)(after.count - before.count) * PAGE;
    const struct {
        const char *name;
        uint64_t more; // modulo 2^64
        int64_t bound;
    } kinds[] = {
        { "slab, without caches", large(&after) - large(&before), magazines },
        { "pagetable", a->pagetable - b->pagetable, OWN_BYTES },
        { "kstack", a->kstack - b->kstack, stacks },
        { "user", a->user - b->user, OWN_BYTES },
        { "file", a->file - b->file, 0 },
        { "buffer", a->buffer - b->buffer, OWN_BYTES },
    };
    bool good = check_objects();
    printf("memory: caches %+lld",
           (long long)(a->slab - large(&after) - b->slab + large(&before)));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        printf(", %s %+lld", kinds[i].name, (long long)kinds[i].more);
    printf(" bytes\n");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        good &=
            is_within(kinds[i].name, (int64_t)kinds[i].more, kinds[i].bound);
    return good;
}
