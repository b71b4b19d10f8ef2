#include "perf_programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct change {
    struct perf_view record;
    uint64_t time, order;
};

static int compare_changes(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void set_name(struct program *p, const char *name)
{
    snprintf(p->name, sizeof(p->name), "%s", name);
}

// Returns the task's current program, effective from `time`, for the caller to
// change and add.
static struct program program_now(const struct samples *s, uint32_t task,
                                  uint64_t time)
{
    const struct program *now = programs_find(&s->programs, task, UINT64_MAX);
    struct program p = { .task = task, .image = IMAGE_UNKNOWN };

    if (now)
        p = *now;
    p.time = time;
    return p;
}

static bool take_comm(struct samples *s, const struct change *c)
{
    struct perf_comm comm;
    const char *name =
        perf_string(&c->record, offsetof(struct perf_comm, name));

    if (!perf_get(&c->record, &comm, offsetof(struct perf_comm, name)) || !name)
        return false;
    if (comm.pid != comm.tid) { // the name of a thread, not of the process
        struct program t = { .task = comm.tid,
                             .parent = comm.pid,
                             .time = c->time };
        set_name(&t, name);
        programs_add(&s->threads, &t);
        return true;
    }
    struct program p = program_now(s, comm.pid, c->time);
    set_name(&p, name);
    if (c->record.head.misc & PERF_MISC_COMM_EXEC)
        p.image = IMAGE_UNKNOWN; // until its MMAP2 record is read
    programs_add(&s->programs, &p);
    return true;
}

static bool take_fork(struct samples *s, const struct change *c)
{
    struct perf_task fork;

    if (!perf_get(&c->record, &fork, sizeof(fork)))
        return false;
    if (fork.pid == fork.parent_pid) // a thread
        return true;
    struct program p = program_now(s, fork.parent_pid, c->time);
    p.task = fork.pid;
    p.parent = fork.parent_pid;
    programs_add(&s->programs, &p);
    return true;
}

static void set_kernel_id(struct samples *s, const uint8_t *id, uint32_t size)
{
    struct image *kernel = &s->images.list[IMAGE_KERNEL];

    memcpy(kernel->build_id, id, size);
    kernel->build_id_size = size;
}

static bool take_mmap2(struct samples *s, const struct change *c)
{
    struct perf_mmap2 map;
    const char *path = perf_string(&c->record, sizeof(map));

    if (!perf_get(&c->record, &map, sizeof(map)) || !path ||
        map.build_id_size > sizeof(map.build_id))
        return false;
    uint32_t id_size =
        c->record.head.misc & PERF_MISC_MMAP_BUILD_ID ? map.build_id_size : 0;
    if (strcmp(path, PERF_VDSO_PATH) == 0) {
        s->vdso = (uint32_t)map.address;
        return true;
    }
    if (map.pid == PERF_KERNEL_PID) {
        set_kernel_id(s, map.build_id, id_size);
        return true;
    }
    struct program p = program_now(s, map.pid, c->time);
    p.image = images_add(&s->images, path, map.build_id, id_size);
    p.load_bias = 0; // unless a PERF_STROBE_LOAD record follows
    p.code = (uint32_t)map.address;
    p.code_size = (uint32_t)map.size;
    programs_add(&s->programs, &p);
    return true;
}

static bool is_load(const struct perf_view *v, struct perf_load *out)
{
    struct perf_strobe own;

    if (v->head.type != PERF_RECORD_STROBE || !perf_get_strobe(v, &own) ||
        own.kind != PERF_STROBE_LOAD || own.size < sizeof(*out))
        return false;
    memcpy(out, v->bytes + sizeof(own), sizeof(*out));
    return true;
}

static bool take_load(struct samples *s, const struct change *c)
{
    struct perf_load load;

    if (!is_load(&c->record, &load))
        return false;
    struct program p = program_now(s, load.task, c->time);
    p.load_bias = load.bias;
    programs_add(&s->programs, &p);
    return true;
}

static bool take_change(struct samples *s, const struct change *c)
{
    switch (c->record.head.type) {
    case PERF_RECORD_COMM:
        return take_comm(s, c);
    case PERF_RECORD_FORK:
        return take_fork(s, c);
    case PERF_RECORD_MMAP2:
        return take_mmap2(s, c);
    default:
        return take_load(s, c);
    }
}

// Whether the record is a COMM, FORK, MMAP2 or LOAD. Sets *time to its time.
static bool is_change(const struct perf_view *v, uint64_t *time)
{
    struct perf_load load;
    bool is = is_load(v, &load);

    *time = is ? load.time : perf_time(v);
    return is || v->head.type == PERF_RECORD_COMM ||
           v->head.type == PERF_RECORD_FORK ||
           v->head.type == PERF_RECORD_MMAP2;
}

static uint64_t count_changes(const struct perf_layout *layout)
{
    struct perf_walk walk = { .layout = layout };
    struct perf_view v;
    uint64_t n = 0, time;

    while (perf_next(&walk, &v))
        n += is_change(&v, &time);
    return n;
}

const char *perf_read_programs(struct samples *s,
                               const struct perf_layout *layout)
{
    struct change *list = calloc(count_changes(layout) + 1, sizeof(*list));
    struct perf_walk walk = { .layout = layout };
    struct perf_view v;
    uint64_t n = 0, time;

    if (!list)
        return "not enough memory for its tasks";
    while (perf_next(&walk, &v)) {
        if (is_change(&v, &time)) {
            list[n] = (struct change){ v, time, n };
            n++;
        }
    }
    qsort(list, n, sizeof(*list), compare_changes);
    for (uint64_t i = 0; i < n; i++)
        s->reader.malformed += !take_change(s, &list[i]);
    free(list);
    return NULL;
}
