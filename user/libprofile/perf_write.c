#include "perf_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/types.h"
#include "perf_repair.h"

#define PAGE 4096u
#define NS_PER_SECOND 1000000000u
#define PROT_READ_EXEC 5u
#define MAP_PRIVATE_FILE 2u

static const char padding[8];

static void put(struct perf_writer *w, const void *bytes, size_t size)
{
    output_add(&w->out, bytes, size);
}

static void put_padded(struct perf_writer *w, const void *bytes, size_t size)
{
    put(w, bytes, size);
    put(w, padding, -size % sizeof(padding));
}

static void put_strobe(struct perf_writer *w, uint32_t kind, const void *bytes,
                       size_t size)
{
    size_t whole = sizeof(struct perf_strobe) + ALIGN_UP(size, 8u);
    if (whole > UINT16_MAX)
        return; // a command line that long is left out
    struct perf_strobe s = {
        .head = { PERF_RECORD_STROBE, 0, (uint16_t)whole },
        .magic = PERF_STROBE_MAGIC,
        .kind = kind,
        .size = size,
    };
    put(w, &s, sizeof(s));
    put_padded(w, bytes, size);
}

// --- times and tasks --------------------------------------------------------

static void start_clock(struct perf_clock *c, uint64_t tsc_hz)
{
    *c = (struct perf_clock){ .tsc_hz = tsc_hz > 0 ? tsc_hz : 1 };
    c->scale = ((uint64_t)NS_PER_SECOND << 32) / c->tsc_hz;
}

// Converts TSC cycles to nanoseconds. Records are in the order of time, or
// nearly so. Within a second a multiplication replaces the division by the
// frequency; its result may be 2 ns too low. The result is monotonic, because
// each second begins at its exact value.
static uint64_t nanoseconds(struct perf_clock *c, uint64_t tsc)
{
    if (tsc - c->second_tsc >= c->tsc_hz) {
        uint64_t seconds = tsc / c->tsc_hz;
        c->second_tsc = seconds * c->tsc_hz;
        c->second_ns = seconds * NS_PER_SECOND;
    }
    return c->second_ns + ((tsc - c->second_tsc) * c->scale >> 32);
}

static struct perf_trailer trailer(uint32_t pid, uint32_t tid, uint64_t time,
                                   uint32_t cpu)
{
    return (struct perf_trailer){
        .pid = pid,
        .tid = tid,
        .time = time,
        .cpu = cpu,
        .id = PERF_EVENT_ID(0),
    };
}

static void put_name(struct perf_writer *w, const struct perf_trailer *t,
                     const char *name, bool exec)
{
    struct perf_comm c = {
        .head = { PERF_RECORD_COMM, exec ? PERF_MISC_COMM_EXEC : 0, sizeof(c) },
        .pid = t->pid,
        .tid = t->tid,
        .trailer = *t,
    };
    snprintf(c.name, sizeof(c.name), "%s", name);
    put(w, &c, sizeof(c));
}

static void put_mapping(struct perf_writer *w, const struct perf_trailer *t,
                        const struct mapping *m, uint16_t mode,
                        const char *path)
{
    size_t length = strlen(path) + 1;
    struct perf_mmap2 r = {
        .head = { PERF_RECORD_MMAP2, mode,
                  sizeof(r) + ALIGN_UP(length, 8u) + sizeof(*t) },
        .pid = t->pid,
        .tid = t->tid,
        .address = m->address,
        .size = m->size,
        .file_offset = m->file_offset,
        .protection = PROT_READ_EXEC,
        .flags = MAP_PRIVATE_FILE,
    };
    if (m->build_id_size > 0) {
        r.head.misc |= PERF_MISC_MMAP_BUILD_ID;
        r.build_id_size = m->build_id_size;
        memcpy(r.build_id, m->build_id, m->build_id_size);
    }
    put(w, &r, sizeof(r));
    put_padded(w, path, length);
    put(w, t, sizeof(*t));
}

// Reads the mapping from the image's file, or from the file that `find` finds.
static bool read_mapping(const struct images *images, const struct image *i,
                         struct mapping *m)
{
    const char *problem;
    char path[IMAGES_HELD_PATH];
    size_t size;
    if (!images->find)
        return mapping_read(m, images_held_path(i, path));
    void *bytes = images->find(images->find_arg, i, &size, &problem);
    bool found = bytes != NULL && mapping_find(m, bytes, size);
    free(bytes);
    return found;
}

// Finds where the code is in the file's own addresses. For an image with a
// build id the result is cached, since it cannot change. Returns false if the
// file can no longer be read, or was replaced.
static bool know_mapping(const struct samples *s, struct image *i,
                         struct mapping *m)
{
    *m = i->mapping;
    if (m->size > 0)
        return true;
    bool found = read_mapping(&s->images, i, m);
    bool same = found && mapping_has_id(m, i->build_id, i->build_id_size);
    if (same && i->build_id_size > 0)
        i->mapping = *m;
    return same || (found && i->build_id_size == 0);
}

// Finds where the code is in memory. If that is unknown, the mapping covers all
// of the user address space from the load bias on.
static void find_mapping(const struct samples *s, uint32_t image,
                         uint32_t load_bias, struct mapping *m)
{
    struct image *i = &s->images.list[image];
    if (know_mapping(s, i, m)) {
        m->address += load_bias;
        return;
    }
    uint32_t start = load_bias != 0 ? load_bias : PAGE;
    *m = (struct mapping){
        .address = start,
        .size = (s->vdso != 0 ? s->vdso : KERNEL_BASE) - start,
        .build_id_size = i->build_id_size,
    };
    memcpy(m->build_id, i->build_id, i->build_id_size);
}

static void find_vdso(struct perf_writer *w, const struct samples *s)
{
    size_t size;
    void *bytes = s->images.read("[vdso]", &size);
    if (bytes)
        mapping_find(&w->vdso, bytes, size);
    free(bytes);
    w->vdso.address = s->vdso;
    w->vdso.size = VDSO_BYTES;
}

static void put_image(struct perf_writer *w, const struct perf_trailer *t,
                      uint32_t image, uint32_t load_bias)
{
    struct samples *s = w->streams[0].samples;
    struct perf_load load = { t->pid, load_bias, t->time };
    struct mapping m;
    if (image < IMAGES_FIXED)
        return;
    find_mapping(s, image, load_bias, &m);
    put_mapping(w, t, &m, PERF_MISC_USER, s->images.list[image].path);
    if (load_bias != 0)
        put_strobe(w, PERF_STROBE_LOAD, &load, sizeof(load));
    if (s->vdso == 0)
        return;
    if (w->vdso.size == 0)
        find_vdso(w, s);
    put_mapping(w, t, &w->vdso, PERF_MISC_USER, PERF_VDSO_PATH);
}

// Writes the mapping of the kernel's code, from its symbols.
static void put_kernel(struct perf_writer *w,
                       const struct perf_environment *environment)
{
    const struct image *k =
        images_load(&w->streams[0].samples->images, IMAGE_KERNEL);
    struct perf_trailer t = trailer(PERF_KERNEL_PID, 0, 0, 0);
    struct mapping m = { .address = KERNEL_BASE, .size = -KERNEL_BASE - PAGE };
    if (!k->problem) {
        m.address = k->symbols.table[images_kernel_start(k)].start & -PAGE;
        uint32_t last = k->symbols.table[k->symbols.count - 1].start;
        m.size = ALIGN_UP(last + 1, PAGE) - m.address;
        m.file_offset = m.address; // the address of PERF_KERNEL_SYMBOL
    }
    m.build_id_size = environment->kernel_id_size;
    memcpy(m.build_id, environment->kernel_id, sizeof(m.build_id));
    put_mapping(w, &t, &m, PERF_MISC_KERNEL,
                m.file_offset != 0 ? PERF_KERNEL_PATH PERF_KERNEL_SYMBOL
                                   : PERF_KERNEL_PATH);
}

static void take_task(void *arg, const struct sprofile_task *r)
{
    struct perf_stream *s = arg;
    struct perf_writer *w = s->writer;
    uint64_t time = nanoseconds(&w->clock, r->head.time);
    struct perf_trailer t = trailer(r->task, r->task, time, r->head.cpu);
    struct perf_task p = {
        .head = { PERF_RECORD_FORK, 0, sizeof(p) },
        .pid = r->task,
        .parent_pid = r->parent,
        .tid = r->task,
        .parent_tid = r->parent,
        .time = time,
        .trailer = t,
    };
    if (s != &w->streams[0])
        return;
    w->time = MAX(w->time, time);
    if (r->kind == SPROFILE_T_NAMED) {
        t.tid = r->parent;
        put_name(w, &t, r->name, false);
        return;
    }
    if (r->kind == SPROFILE_T_EXECED) {
        put_name(w, &t, r->name, true);
        put_image(w, &t,
                  images_add(&s->samples->images, r->path, r->build_id,
                             r->build_id_size),
                  sprofile_load_bias(r));
        return;
    }
    if (r->kind == SPROFILE_T_ENDED)
        p.head.type = PERF_RECORD_EXIT;
    put(w, &p, sizeof(p));
    if (r->kind == SPROFILE_T_FORKED)
        put_name(w, &t, r->name, false);
}

// Writes the programs that ran when the session began, and threads' names.
static void put_programs(struct perf_writer *w)
{
    const struct programs *p = &w->streams[0].samples->programs;
    for (uint32_t i = 0; i < p->count; i++) {
        uint32_t task = p->list[i].task;
        struct perf_trailer t = trailer(task, task, 0, 0);
        put_name(w, &t, task == 0 ? "swapper" : p->list[i].name, false);
        put_image(w, &t, p->list[i].image, p->list[i].load_bias);
    }
    p = &w->streams[0].samples->threads;
    for (uint32_t i = 0; i < p->count; i++) {
        struct perf_trailer t =
            trailer(p->list[i].parent, p->list[i].task, 0, 0);
        put_name(w, &t, p->list[i].name, false);
    }
}

// Names a thread that has no name of its own. perf names a task's first thread
// after the task. Every other thread is named after its program when the first
// sample shows it there.
static void name_thread(struct perf_stream *e, const struct stream_sample *s,
                        const struct program *p, uint64_t time)
{
    if (!p || s->thread == s->task ||
        programs_find(&e->samples->threads, s->thread, UINT64_MAX) ||
        !known_threads_add(&e->named, s->thread,
                           p - e->samples->programs.list + 1))
        return;
    struct perf_trailer t = trailer(s->task, s->thread, time, s->cpu);
    put_name(e->writer, &t, p->name, false);
}

// --- samples ----------------------------------------------------------------

#define ENTRIES_MAX (UINT8_MAX + USER_CHAIN_MAX + 2)
#define SAMPLE_MAX (sizeof(struct perf_sample) + ENTRIES_MAX * sizeof(uint64_t))

// Adds one chain after its mark. A caller is recorded as the last byte of its
// call, because the return address may belong to another function, and perf
// does not subtract 1.
static uint32_t add_chain(uint64_t *out, uint64_t mark, const uint32_t *pc,
                          uint32_t depth)
{
    if (depth == 0)
        return 0;
    out[0] = mark;
    out[1] = pc[0];
    for (uint32_t i = 1; i < depth; i++)
        out[1 + i] = pc[i] - 1;
    return 1 + depth;
}

static uint32_t make_chain(const struct counted_sample *s, uint64_t *out)
{
    const struct stream_sample *in = s->in;
    // The callers of the idle loop are always the same, and most samples are
    // idle, so they are left out.
    bool idle = in->flags & SPROFILE_F_IDLE;
    uint32_t n = add_chain(out, PERF_CONTEXT_KERNEL, in->kernel,
                           idle ? MIN(in->kernel_depth, 1u) : in->kernel_depth);
    return n + add_chain(out + n, PERF_CONTEXT_USER, s->user, s->user_depth);
}

static void take_sample(void *arg, const struct counted_sample *counted)
{
    struct perf_stream *e = arg;
    struct perf_writer *w = e->writer;
    const struct stream_sample *in = counted->in;
    uint64_t time = nanoseconds(&w->clock, in->time);
    name_thread(e, in, counted->program, time);
    struct perf_sample *s = output_room(&w->out, SAMPLE_MAX);
    uint32_t depth = e->chains ? make_chain(counted, s->chain) : 0;
    size_t size = e->chains ? sizeof(*s) + depth * sizeof(s->chain[0])
                            : PERF_SAMPLE_PLAIN;
    bool kernel = in->kernel_depth > 0;
    *s = (struct perf_sample){
        .head = { PERF_RECORD_SAMPLE,
                  kernel ? PERF_MISC_KERNEL : PERF_MISC_USER, size },
        .id = e->id,
        .ip = kernel ? in->kernel[0] : in->user[0],
        .pid = in->task,
        .tid = in->thread,
        .time = time,
        .cpu = in->cpu,
        .flags = in->flags,
        .period = in->period,
        .depth = depth,
    };
    w->time = MAX(w->time, time);
    output_take(&w->out, size);
}

static void take_lost(void *arg, uint32_t cpu, uint64_t count)
{
    struct perf_stream *e = arg;
    struct perf_lost l = {
        .head = { PERF_RECORD_LOST, 0, sizeof(l) },
        .id = e->id,
        .count = count,
        .trailer = trailer(0, 0, e->writer->time, cpu),
    };
    put(e->writer, &l, sizeof(l));
    e->lost += count;
}

// --- the file ---------------------------------------------------------------

static void put_header(struct perf_writer *w, const struct perf_event *events)
{
    const uint64_t ids = w->count * sizeof(uint64_t);
    const uint64_t attrs = w->count * sizeof(struct perf_file_attr);
    struct perf_header h = {
        .size = sizeof(h),
        .attr_size = sizeof(struct perf_file_attr),
        .attrs = { sizeof(h) + ids, attrs },
        .data = { sizeof(h) + ids + attrs, 0 },
    };
    memcpy(h.magic, PERF_MAGIC, sizeof(h.magic));
    put(w, &h, sizeof(h));
    for (uint32_t i = 0; i < w->count; i++)
        put(w, &w->streams[i].id, sizeof(uint64_t));
    for (uint32_t i = 0; i < w->count; i++) {
        struct perf_file_attr a = { .ids = { sizeof(h) + i * sizeof(uint64_t),
                                             sizeof(uint64_t) } };
        perf_attr_make(&a.attr, events[i].asked, events[i].info);
        put(w, &a, sizeof(a));
    }
}

static void put_features(struct perf_writer *w,
                         const struct perf_environment *environment,
                         const struct perf_event *events)
{
    static const unsigned features[] = {
        PERF_FEATURE_HOSTNAME, PERF_FEATURE_OS_RELEASE, PERF_FEATURE_VERSION,
        PERF_FEATURE_ARCH,     PERF_FEATURE_CPUS,       PERF_FEATURE_CPU,
        PERF_FEATURE_COMMAND,  PERF_FEATURE_EVENTS,     PERF_FEATURE_TOPOLOGY,
        PERF_FEATURE_CLOCK,    PERF_FEATURE_HYBRID,
    };
    for (uint32_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        struct blob b = { 0 };
        perf_feature_make(&b, features[i], environment, events, w->count);
        if (!b.failed && b.size > 0)
            put_strobe(w, PERF_STROBE_FEATURE + features[i], b.bytes, b.size);
        blob_free(&b);
    }
}

static void begin_stream(struct perf_writer *w, uint32_t event,
                         const struct perf_event *e)
{
    struct perf_stream *s = &w->streams[event];
    *s = (struct perf_stream){
        .writer = w,
        .id = PERF_EVENT_ID(event),
        .samples = e->samples,
        .chains = e->asked->flags & SPROFILE_O_STACKS,
    };
    s->samples->observer = (struct samples_observer){
        .sample = take_sample, .task = take_task, .lost = take_lost, .arg = s
    };
}

const char *perf_write_begin(struct perf_writer *w, const char *path,
                             const struct perf_environment *environment,
                             const struct perf_event *events, uint32_t count)
{
    *w = (struct perf_writer){ .count = count };
    start_clock(&w->clock, events[0].info->tsc_hz);
    const char *problem = output_open(&w->out, path);
    if (problem)
        return problem;
    for (uint32_t i = 0; i < count; i++)
        begin_stream(w, i, &events[i]);
    put_header(w, events);
    put_features(w, environment, events);
    for (uint32_t i = 0; i < count; i++)
        put_strobe(w, PERF_STROBE_OPTIONS | i << PERF_STROBE_EVENT_SHIFT,
                   events[i].asked, sizeof(*events[i].asked));
    put_kernel(w, environment);
    put_programs(w);
    for (uint32_t i = 0; i < count; i++)
        perf_write_info(w, i, events[i].info);
    return NULL;
}

void perf_write_flush(struct perf_writer *w)
{
    if (w->out.buffer)
        output_flush(&w->out);
}

void perf_write_info(struct perf_writer *w, uint32_t event,
                     const struct sprofile_info *info)
{
    if (!w->out.buffer)
        return;
    put_strobe(w, PERF_STROBE_INFO | event << PERF_STROBE_EVENT_SHIFT, info,
               sizeof(*info));
    output_flush(&w->out);
}

#define TIMES_MOST 1000 // in a record, whose size has 16 bits

static void put_times(struct perf_writer *w, uint32_t event)
{
    const struct task_times *t = &w->streams[event].samples->times;
    uint32_t kind = PERF_STROBE_TIMES | event << PERF_STROBE_EVENT_SHIFT;
    struct perf_times list[TIMES_MOST];
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->count && !t->incomplete; i++) {
        const struct task_time *e = &t->list[i];
        if (e->known && e->user + e->kernel > 0)
            list[n++] = (struct perf_times){ e->task, 0, e->user, e->kernel };
        if (n == TIMES_MOST || (n > 0 && i + 1 == t->count)) {
            put_strobe(w, kind, list, n * sizeof(*list));
            n = 0;
        }
    }
}

void perf_write_totals(struct perf_writer *w, uint32_t event,
                       const struct sprofile_info *info)
{
    struct perf_stream *s = &w->streams[event];
    if (!w->out.buffer)
        return;
    // The stream reports losses with the next sample that is stored. The
    // losses after the last sample are in the totals only.
    if (info->lost > s->lost)
        take_lost(s, 0, info->lost - s->lost);
    put_times(w, event);
    perf_write_info(w, event, info);
}

const char *perf_write_end(struct perf_writer *w)
{
    struct perf_repaired r;
    if (!w->out.buffer)
        return NULL;
    output_flush(&w->out);
    const char *problem = w->out.failed ? "some of it could not be written: "
                                          "is the disk full?"
                                        : NULL;
    const char *broken = w->out.pipe ? NULL : perf_repair(w->out.fd, &r);
    output_close(&w->out);
    for (uint32_t i = 0; i < w->count; i++) {
        w->streams[i].samples->observer = (struct samples_observer){ 0 };
        known_threads_free(&w->streams[i].named);
    }
    *w = (struct perf_writer){ 0 };
    return problem != NULL ? problem : broken;
}
