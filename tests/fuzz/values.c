// Argument values: resolves a token when its operation is made. The contents of
// a structure depend on the token's number alone, except its addresses, ids and
// descriptors, which are current ones.
#include "fuzz.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include <strobe/kbox.h>
#include <strobe/sensor.h>
#include <strobe/sysinfo.h>

static uint32_t pick(struct draw *d, const uint32_t *values, size_t count)
{
    return values[draw_below(d, (uint32_t)count)];
}
#define PICK(d, ...)                           \
    pick(d, (const uint32_t[]){ __VA_ARGS__ }, \
         sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

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

static const char *const filesystems[] = { "tmpfs", "tmpfs", "proc", "" };

// --- descriptors, tasks, addresses

static uint32_t descriptor(struct worker *w, struct draw *d)
{
    uint32_t other = draw_below(d, 32);
    if (other == 0)
        return PICK(d, -1, -100, 0, 1, 2, 1023, 1024, 0x7fffffff);
    return (uint32_t)w->fds[draw_below(d, SLOTS)];
}

static uint32_t victim(struct draw *d)
{
    switch (draw_below(d, 8)) {
    case 0:
        return 0; // the caller, or its group
    case 1:
        return 0x7fff0000u; // no task has it
    case 2:
        return (uint32_t)-raw_call(SYS_getpgid, 0, 0, 0, 0);
    case 3:
    case 4:
        return (uint32_t)raw_call(SYS_getpid, 0, 0, 0, 0);
    default:;
        uint32_t tid = own_lane->progress[draw_below(d, WORKERS)].tid;
        return tid != 0 ? tid : 0x7fff0000u;
    }
}

static uint32_t any_task(struct draw *d)
{
    if (draw_below(d, 2))
        return victim(d);
    return PICK(d, 0, 1, 2, 3, 5, -1,
                (uint32_t)raw_call(SYS_getppid, 0, 0, 0, 0));
}

static uint32_t in_arena(struct draw *d)
{
    uint32_t page = draw_below(d, 2 * ARENA_PAGES);
    uint32_t offset = draw_below(d, 4) ? 0 : draw_below(d, PAGE);
    return ARENA + page * PAGE + offset;
}

static uint32_t before_edge(struct worker *w, struct draw *d)
{
    uint32_t bytes = draw_below(d, 4) ? draw_below(d, 80) : draw_below(d, PAGE);
    return (uint32_t)w->page + PAGE - bytes;
}

static uint32_t bad_address(struct draw *d)
{
    return PICK(d, 0x10, 0xfff, 0xbffffffc, 0xc0000000, 0xc0000010, 0xc0100000,
                0xf8000000, 0xfec00000, 0xfffff000, 0xfffffffc, 0xffffffff,
                0x80000000, 0x7fffffff, 0xbffff000);
}

static uint32_t own_address(struct worker *w, struct draw *d)
{
    return PICK(d, (uint32_t)grammar_make, (uint32_t)names, (uint32_t)&w,
                (uint32_t)w, 0x8048000, 0xffffe000u);
}

static uint32_t buffer(struct worker *w, struct draw *d)
{
    switch (draw_below(d, 16)) {
    case 0:
        return bad_address(d);
    case 1:
        return before_edge(w, d);
    default:
        return in_arena(d);
    }
}

// --- strings

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
    strcpy(at + draw_below(d, 2),
           names[draw_below(d, sizeof(names) / sizeof(*names))]);
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

// --- structures, as words: these return their sizes in bytes

static uint32_t random_words(struct draw *d, uint32_t *at, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++)
        at[i] = draw_word(d) >> PICK(d, 0, 16, 24, 28, 31);
    return words * 4;
}

static void put_time(struct draw *d, uint32_t *at)
{
    at[0] = draw_below(d, 64) ? 0 : draw_word(d);
    at[1] = draw_below(d, 16) ? draw_below(d, 300000) : draw_word(d);
}

// In the layout of time32 or time64.
static uint32_t put_times(struct draw *d, uint32_t *at, uint32_t count)
{
    uint32_t wide = 1 + draw_below(d, 2);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t t[2];
        put_time(d, t);
        at[2 * i * wide] = t[0];
        if (wide == 2)
            at[4 * i + 1] = at[4 * i + 3] = 0;
        at[2 * i * wide + wide] = t[1];
    }
    return 8 * count * wide;
}

static uint32_t put_iovec(struct worker *w, struct draw *d, uint32_t *at)
{
    for (uint32_t i = 0; i < 8; i++) {
        at[2 * i] = buffer(w, d);
        at[2 * i + 1] = PICK(d, 0, 1, 7, 100, PAGE, 5000, 3 * PAGE,
                             draw_below(d, 16) ? 64 : 0xffffffffu);
    }
    return 64;
}

static void on_signal(int signal)
{
    (void)signal;
}

static uint32_t put_action(struct draw *d, uint32_t *at)
{
    at[0] =
        PICK(d, 0, 1, (uint32_t)on_signal, (uint32_t)on_signal, bad_address(d));
    at[1] = 0;
    for (uint32_t n = draw_below(d, 4); n > 0; n--)
        at[1] |=
            PICK(d, 1, 2, 4, 0x08000000, 0x10000000, 0x40000000, 0x80000000);
    at[2] = 0; // no restorer: the kernel's own
    at[3] = draw_below(d, 2) ? 0 : draw_word(d);
    at[4] = draw_below(d, 2) ? 0 : draw_word(d);
    return 20;
}

static uint32_t put_stack(struct worker *w, struct draw *d, uint32_t *at)
{
    at[0] = buffer(w, d);
    at[1] = PICK(d, 0, 0, 2, 1, 0x80000000);
    at[2] = PICK(d, 2 * PAGE, 8 * PAGE, 100, 0, 0xffffffff);
    return 12;
}

static uint32_t put_polls(struct worker *w, struct draw *d, uint32_t *at)
{
    for (uint32_t i = 0; i < 8; i++) {
        at[2 * i] = descriptor(w, d);
        at[2 * i + 1] = draw_word(d) & 0x3f;
    }
    return 64;
}

static uint32_t put_sets(struct worker *w, struct draw *d, uint32_t *at)
{
    memset(at, 0, 128);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t fd = descriptor(w, d);
        if (fd < 1024)
            at[fd / 32] |= 1u << fd % 32;
    }
    return 128;
}

static void put_source(struct draw *d, uint32_t *at, uint32_t bytes)
{
    static const char *const sources[] = {
        "",        "clock",    "rtc",     "hpet",    "lapic", "pit",
        "nmi-rtc", "nmi-hpet", "nmi-pit", "nmi-ipi", "pmc",   "cycles",
    };
    memset(at, 0, bytes);
    strcpy((char *)at, sources[draw_below(d, 12)]);
}

// struct sprofile_options and sprofile_count_options, which begin alike.
static void put_session(struct draw *d, uint32_t *at, bool counts)
{
    static const char *const events[] = {
        "task-clock",     "user-time",   "kernel-time",  "context-switches",
        "cpu-migrations", "page-faults", "system-calls", "cycles",
        "instructions",   "x",
    };
    memset(at, 0, ROOM_WORDS * 2);
    if (counts) {
        struct sprofile_count_options *o = (void *)at;
        o->size = draw_below(d, 16) ? sizeof(*o) : draw_word(d);
        o->flags = draw_below(d, 4);
        o->events = draw_below(d, 16) ? draw_below(d, 10) : draw_word(d);
        for (uint32_t i = 0; i < 10; i++)
            strcpy(o->event[i], events[draw_below(d, 10)]);
        return;
    }
    struct sprofile_options *o = (void *)at;
    o->size = draw_below(d, 16) ? sizeof(*o) : draw_word(d);
    o->flags = draw_below(d, 16) ? draw_below(d, 32) : draw_word(d);
    o->rate_hz = PICK(d, 0, 1, 100, 1000, 8000, 20000, 20000, 1u << 31);
    o->ring_bytes = PICK(d, 0, PAGE, 2 * PAGE, 65536, 5, 0x7fffffff);
    put_source(d, (uint32_t *)o->source, sizeof(o->source));
}

// A call to a kernel box, or to a task's box; its options follow it.
static uint32_t put_call(struct worker *w, struct draw *d, uint32_t *at)
{
    struct ipc_call *c = (void *)at;
    uint32_t *more = at + 32;

    memset(c, 0, sizeof(*c));
    c->id = draw_below(d, 8);
    c->method = PICK(d, 1, 1, 1, 2, 3, 4, 5, 6, 7, 1024, 1025, 9999);
    c->flags = PICK(d, 0, 0, 1, 2, 4, 8);
    c->arg[0] = draw_below(d, 12);
    c->arg[1] = buffer(w, d);
    c->arg[2] = PICK(d, 0, 8, 264, 528, PAGE, 65536, 0xffffffff);
    c->arg[3] = draw_below(d, 2);
    c->retval = (int32_t)PICK(d, 0, 1, -1, -14, 0x7fffffff);
    if (c->method == IPC_M_SPROFILE_ALL) {
        bool counts = c->arg[0] == SPROFILE_M_COUNT_BEGIN;
        put_session(d, more, counts);
        if (c->arg[0] <= SPROFILE_M_SYSTEM_BEGIN || counts)
            c->arg[1] = (uint32_t)more;
        if (c->arg[0] == SPROFILE_M_PAUSE)
            c->arg[1] = draw_below(d, 2);
    } else if (c->method == IPC_M_CONNECT_ME_TO) {
        c->arg[0] = descriptor(w, d);
    }
    return sizeof(*c);
}

static uint32_t put_arguments(struct worker *w, struct draw *d, uint32_t *at)
{
    uint32_t count = draw_below(d, 5);
    for (uint32_t i = 0; i < count; i++)
        at[i] = draw_below(d, 8) ? (uint32_t) "argument" : buffer(w, d);
    at[count] = 0;
    return 4 * count + 4;
}

static uint32_t put_lock(struct draw *d, uint32_t *at)
{
    uint16_t *half = (uint16_t *)at;
    memset(at, 0, 32);
    half[0] = (uint16_t)draw_below(d, 4); // type
    half[1] = (uint16_t)draw_below(d, 3); // whence
    at[1] = draw_below(d, 8) ? draw_below(d, 100) : draw_word(d);
    at[draw_below(d, 2) ? 2 : 3] = draw_below(d, 100);
    return 24;
}

static uint32_t put_limit(struct draw *d, uint32_t *at)
{
    static const uint32_t limits[] = { 0xffffffff, 0xffffffff, 1 << 20, 1 << 23,
                                       1024,       32,         0,       16 };
    for (uint32_t i = 0; i < 4; i++)
        at[i] = pick(d, limits, 8);
    return draw_below(d, 2) ? 8 : 16;
}

static uint32_t put_mapping(struct worker *w, struct draw *d, uint32_t *at)
{
    at[0] = draw_below(d, 2) ? 0 : in_arena(d);
    at[1] = PICK(d, PAGE, 2 * PAGE, 5000, 16 * PAGE);
    at[2] = draw_below(d, 8);
    at[3] = PICK(d, 0x22, 0x21, 0x32, 0x31, 1, 2, 0x11, 0x12);
    at[4] = descriptor(w, d);
    at[5] = PICK(d, 0, 0, PAGE, 1);
    return 24;
}

static uint32_t put_select(struct worker *w, struct draw *d, uint32_t *at)
{
    at[0] = PICK(d, 0, 1, 16, 64, 1024);
    for (uint32_t i = 1; i < 4; i++) {
        uint32_t *set = at + 32 * i;
        put_sets(w, d, set);
        at[i] = draw_below(d, 4) ? (uint32_t)set : 0;
    }
    at[4] = (uint32_t)(at + 8);
    put_time(d, at + 8);
    return 20;
}

static uint32_t put_descriptor(struct draw *d, uint32_t *at)
{
    at[0] = PICK(d, -1, 0, 6, 7, 8, 12);
    at[1] = draw_word(d);
    at[2] = draw_below(d, 2) ? 0xfffff : draw_word(d);
    at[3] = draw_below(d, 2) ? 0x51 : draw_below(d, 256);
    return 16;
}

static uint32_t put_event(struct draw *d, uint32_t *at)
{
    memset(at, 0, 64);
    at[0] = draw_word(d);
    at[1] = draw_below(d, 66);
    at[2] = PICK(d, 0, 1, 2, 4, 9);
    at[3] = own_lane->progress[draw_below(d, WORKERS)].tid;
    return 64;
}

static uint32_t put_text(struct draw *d, uint32_t *at)
{
    uint32_t length = draw_below(d, 200);
    for (uint32_t i = 0; i < length; i++)
        ((char *)at)[i] = (char)(1 + draw_below(d, 127));
    ((char *)at)[length] = '\0';
    return length + 1;
}

static uint32_t put_string(struct worker *w, struct draw *d, uint32_t kind,
                           uint32_t *at)
{
    if (kind == TOKEN_path)
        put_path(d, (char *)at);
    else if (kind == TOKEN_node)
        put_node(d, (char *)at);
    else if (kind == TOKEN_filesystem)
        strcpy((char *)at, filesystems[draw_below(d, 4)]);
    else
        put_text(d, at);
    w->last_length = (uint32_t)strlen((char *)at);
    return w->last_length + 1;
}

static struct sensor_axis some_axis(struct draw *d)
{
    return (struct sensor_axis){ draw_below(d, 3), draw_below(d, 8),
                                 draw_below(d, 8), 1u << draw_below(d, 32) };
}

static uint32_t put_sensor(struct draw *d, uint32_t *at)
{
    struct sensor_request *r = (struct sensor_request *)at;
    memset(r, 0, sizeof(*r));
    r->layout.type = draw_below(d, SENSOR_TYPES + 1);
    if (r->layout.type == SENSOR_HISTOGRAM) {
        struct sensor_histogram_layout *h = &r->layout.histogram;
        h->lanes = draw_below(d, 10);
        h->layers = draw_below(d, 4);
        h->x = some_axis(d);
        h->y = draw_below(d, 2) ? some_axis(d) : h->y;
    } else {
        r->layout.words[0] = draw_below(d, 2) << draw_below(d, 32);
        r->layout.words[1] = 32u << draw_below(d, 4);
    }
    r->text_bytes = draw_below(d, 3) * draw_below(d, 2000);
    r->text = (const char *)ARENA;
    return sizeof(*r);
}

static uint32_t put_structure(struct worker *w, struct draw *d, uint32_t kind,
                              uint32_t *at)
{
    switch (kind) {
    case TOKEN_path:
    case TOKEN_node:
    case TOKEN_filesystem:
    case TOKEN_text:
        return put_string(w, d, kind, at);
    case TOKEN_zeros:
        memset(at, 0, 64);
        return 64;
    case TOKEN_iovec:
        return put_iovec(w, d, at);
    case TOKEN_time:
        return put_times(d, at, 1 + draw_below(d, 2));
    case TOKEN_interval:
        return put_times(d, at, 2);
    case TOKEN_signals:
        return random_words(d, at, 2);
    case TOKEN_action:
        return put_action(d, at);
    case TOKEN_event:
        return put_event(d, at);
    case TOKEN_stack:
        return put_stack(w, d, at);
    case TOKEN_polls:
        return put_polls(w, d, at);
    case TOKEN_sets:
        return put_sets(w, d, at);
    case TOKEN_call:
        return put_call(w, d, at);
    case TOKEN_arguments:
        return put_arguments(w, d, at);
    case TOKEN_lock:
        return put_lock(d, at);
    case TOKEN_limit:
        return put_limit(d, at);
    case TOKEN_mapping:
        return put_mapping(w, d, at);
    case TOKEN_select:
        return put_select(w, d, at);
    case TOKEN_descriptor:
        return put_descriptor(d, at);
    case TOKEN_request:
        return draw_below(d, 2) ? put_sensor(d, at) : random_words(d, at, 32);
    default:
        return random_words(d, at, kind == TOKEN_words ? 16 : 32);
    }
}

// Returns its address. Some structures end where an unmapped page begins.
static uint32_t structure(struct worker *w, struct draw *d, uint32_t kind,
                          uint32_t place)
{
    uint32_t *room = w->rooms[place];
    uint32_t bytes = put_structure(w, d, kind, room);
    if (draw_below(d, 8))
        return (uint32_t)room;
    char *at = w->page + PAGE - bytes;
    memcpy(at, room, bytes);
    return (uint32_t)at;
}

uint32_t value_of(struct worker *w, const struct token *t, uint32_t place,
                  bool spares_others)
{
    struct draw d = draw_of(t->value, t->kind);

    switch (t->kind) {
    case TOKEN_num:
        return t->value;
    case TOKEN_length:
        return w->last_length;
    case TOKEN_fd:
        return descriptor(w, &d);
    case TOKEN_memory:
        return in_arena(&d);
    case TOKEN_edge:
        return before_edge(w, &d);
    case TOKEN_bad:
        return bad_address(&d);
    case TOKEN_own:
        return own_address(w, &d);
    case TOKEN_task:
        return spares_others ? any_task(&d) : victim(&d);
    case TOKEN_victim:
        return victim(&d);
    default:
        return structure(w, &d, t->kind, place);
    }
}
