// perf.data as the guest writes it: the file has all records of the stream, and
// a file truncated at any byte is repaired.
//
// link: user/libprofile/shares.c
// link: user/libprofile/images_read.c
// link: user/libprofile/perf_write.c user/libprofile/known_threads.c
// link: user/libprofile/output.c user/libstrobe/table.c
// link: user/libprofile/perf_features.c user/libstrobe/core_clock.c
// link: user/libprofile/perf_repair.c user/libprofile/mapping.c
// link: user/libprofile/perf_read.c user/libprofile/perf_walk.c
// link: user/libprofile/perf_programs.c
// link: user/libprofile/samples.c user/libprofile/stream.c
// link: user/libprofile/chains.c user/libprofile/images.c
// link: user/libprofile/programs.c user/libprofile/user_chain.c
// link: user/libprofile/perf_topology.c
// link: user/libprofile/task_times.c
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "user/libprofile/perf_read.h"
#include "user/libprofile/perf_repair.h"
#include "user/libprofile/perf_topology.h"
#include "user/libprofile/perf_write.h"

#define MHZ 1000000u
#define TSC_HZ (2000 * MHZ) // 2 cycles per ns
#define FILE_ROOM 32768u
#define EVENTS 3u // in tests with several
// docs/perf-data.md
#define DATA_BEGINS(events) (104u + (events) * (8u + 80u))

static char path[] = "/tmp/strobe-perf-XXXXXX";
static u8 file[FILE_ROOM];
static size_t file_size;
static struct timed_sample seen[16];
static u32 seen_count;
static struct samples samples;

// --- a stream ---------------------------------------------------------------

static _Alignas(8) u8 stream[4096];
static u32 stream_size;

static void *add(u32 type, u32 size, u64 time)
{
    struct sprofile_record *head = (void *)(stream + stream_size);
    size = ALIGN_UP(size, 8u);
    assert_true(stream_size + size <= sizeof(stream));
    memset(head, 0, size);
    *head = (struct sprofile_record){ type, size, 1, 0, time };
    stream_size += size;
    return head;
}

static struct sprofile_task *add_task(u32 kind, u32 task, const char *name,
                                      u64 time)
{
    struct sprofile_task *t = add(SPROFILE_R_TASK, sizeof(*t) + 16, time);
    t->task = task;
    t->parent = 1;
    t->kind = kind;
    strcpy(t->name, name);
    sprintf(t->path, "/none/%s", name);
    t->build_id_size = 20;
    memset(t->build_id, task, 20);
    return t;
}

static void add_sample(u32 task, u32 thread, u32 flags, u64 time,
                       const u32 *kernel, u32 kernel_depth, const u32 *user,
                       u32 user_depth)
{
    u32 words = kernel_depth + user_depth;
    struct sprofile_sample *s =
        add(SPROFILE_R_SAMPLE, sizeof(*s) + words * 4, time);
    s->head.flags = flags;
    s->task = task;
    s->thread = thread;
    s->period = 1000;
    s->kernel_depth = kernel_depth;
    s->user_depth = user_depth;
    if (kernel_depth > 0)
        memcpy(s->pc, kernel, kernel_depth * 4);
    if (user_depth > 0)
        memcpy(s->pc + kernel_depth, user, user_depth * 4);
}

static void add_times(enum sprofile_times_kind kind, u32 task, u64 user,
                      u64 kernel)
{
    struct sprofile_times *t = add(SPROFILE_R_TIMES, sizeof(*t), 10000);
    t->kind = kind;
    t->task = task;
    t->user = user;
    t->kernel = kernel;
}

static void make_stream(void)
{
    static const u32 user[] = { 0x8049010, 0x8049100 };
    static const u32 kernel[] = { 0xc0100010, 0xc0100200 };
    stream_size = 0;
    add_task(SPROFILE_T_FORKED, 7, "shell", 2000);
    add_task(SPROFILE_T_EXECED, 7, "prog", 4000);
    add_sample(7, 7, 0, 6000, NULL, 0, user, 2);
    add_sample(7, 9, SPROFILE_F_KERNEL | SPROFILE_F_IRQS_OFF, 8000, kernel, 2,
               user, 2);
    add_sample(0, 0, SPROFILE_F_KERNEL | SPROFILE_F_IDLE, 9000, kernel, 2, NULL,
               0);
    add_sample(0, 4, SPROFILE_F_KERNEL | SPROFILE_F_IRQ, 9500, kernel, 2, NULL,
               0);
    struct sprofile_lost *lost = add(SPROFILE_R_LOST, sizeof(*lost), 9600);
    lost->count = 3;
    add_task(SPROFILE_T_ENDED, 7, "", 10000);
    add_times(SPROFILE_TIMES_BEGIN, 1, 100, 200);
    add_times(SPROFILE_TIMES_END, 7, 70, 71);
    add_times(SPROFILE_TIMES_END, 1, 103, 202);
    add_times(SPROFILE_TIMES_BEGIN, 2, 5, 5); // it still runs
}

// --- the file ---------------------------------------------------------------

static void *no_file(const char *name UNUSED, size_t *size UNUSED)
{
    return NULL;
}

// If not NULL, finds the images of the first event.
static image_finder find_file;

static void see(void *arg UNUSED, const struct timed_sample *s)
{
    assert_true(seen_count < ARRAY_SIZE(seen));
    seen[seen_count++] = *s;
}

static void load(void)
{
    FILE *f = fopen(path, "r");
    file_size = fread(file, 1, sizeof(file), f);
    assert_true(file_size < sizeof(file));
    fclose(f);
}

static struct sprofile_options asked[EVENTS];
static struct sprofile_info infos[EVENTS];
static struct samples written[EVENTS];
static u32 asked_flags = SPROFILE_O_STACKS;
static u64 tsc_hz = TSC_HZ;

static void begin_events(struct perf_event *events)
{
    static const struct sprofile_info all[EVENTS] = {
        { .source = "nmi-hpet", .rate_hz = 1000, .cpus = 2, .tsc_hz = TSC_HZ },
        { .source = "lapic", .rate_hz = 500, .cpus = 2, .tsc_hz = TSC_HZ },
        { .source = "pmc", .event = "cycles:u", .period = 7, .tsc_hz = TSC_HZ },
    };
    struct program old = { .task = 1, .name = "init", .image = IMAGE_UNKNOWN };

    for (u32 i = 0; i < EVENTS; i++) {
        infos[i] = all[i];
        infos[i].tsc_hz = tsc_hz;
        asked[i].size = sizeof(asked[i]);
        asked[i].rate_hz = 999 + i;
        asked[i].flags = asked_flags;
        assert_int_equal(samples_init(&written[i], no_file), 0);
        programs_add(&written[i].programs, &old);
        events[i] = (struct perf_event){ &asked[i], &infos[i], &written[i] };
    }
}

// Writes `stream` as a run with `count` events, a session each. Unless `end`,
// `file` is the unfinished file, as after a loss of power.
static void write_stream(u32 count, bool end)
{
    char *const command[] = { "sprofile", "-o", "x", NULL };
    const struct sysinfo_cpu topology[2] = { { .core = 0 }, { .core = 1 } };
    struct perf_environment environment = { .host = "strobe",
                                            .cpu = "Model",
                                            .release = "0.1",
                                            .version = "#1 SMP v0.1",
                                            .machine = "i686",
                                            .cpus = 2,
                                            .topology = topology,
                                            .command = command,
                                            .kernel_id = { 0xaa },
                                            .kernel_id_size = 20,
                                            .date = { 1, 1, 9000, 7000 } };
    struct perf_event events[EVENTS];
    struct perf_writer w;

    begin_events(events);
    if (find_file != NULL)
        written[0].images.find = find_file;
    assert_null(perf_write_begin(&w, path, &environment, events, count));
    for (u32 i = 0; i < count; i++) {
        samples_add_stream(&written[i], stream, stream_size);
        perf_write_flush(&w);
        infos[i].taken = 7 + i;
        infos[i].lost = 5 + i; // of these, 2, 3, 4 after the last sample
        perf_write_info(&w, i, &infos[i]);
    }
    load();
    for (u32 i = 0; i < count; i++)
        perf_write_totals(&w, i, &infos[i]);
    assert_null(perf_write_end(&w));
    if (end)
        load();
    for (u32 i = 0; i < EVENTS; i++)
        samples_free(&written[i]);
}

static void write_events(u32 count, bool end)
{
    make_stream();
    write_stream(count, end);
}

static void write_file(bool end)
{
    write_events(1, end);
}

// Reads an event from the first `size` bytes of `file`.
static struct perf_file read_event(u32 event, size_t size)
{
    struct perf_file f = { .event = event, .sample = see };
    seen_count = 0;
    assert_int_equal(samples_init(&samples, no_file), 0);
    const char *problem = perf_read(&f, 1, &samples, file, size);
    if (problem != NULL)
        fail_msg("%s", problem);
    assert_int_equal(samples.reader.malformed, 0);
    return f;
}

static struct perf_file read_file(size_t size)
{
    return read_event(0, size);
}

static void assert_place(u32 chain, u32 image, u32 address)
{
    struct place p = samples.chains.nodes[chain].place;
    assert_int_equal(p.image, image);
    assert_int_equal(p.address, address);
}

static u32 caller(u32 chain)
{
    return samples.chains.nodes[chain].parent;
}

static void all_is_there(void **state UNUSED)
{
    write_file(true);
    struct perf_file f = read_file(file_size);
    assert_false(f.cut);
    assert_true(f.has_info);
    assert_int_equal(f.info.taken, 7);
    assert_int_equal(f.asked.rate_hz, 999);
    assert_string_equal(f.command, "sprofile -o x");
    assert_int_equal(samples.lost, 5);
    assert_int_equal(seen_count, 4);
    // The user sample. The caller's address is the last byte of its call.
    assert_int_equal(seen[0].time, 3000);
    assert_int_equal(seen[0].cpu, 1);
    assert_int_equal(seen[0].period, 1000);
    assert_int_equal(seen[0].mode, MODE_USER);
    const struct image *m = &samples.images.list[seen[0].image];
    assert_string_equal(m->path, "/none/prog");
    assert_int_equal(m->build_id_size, 20);
    assert_int_equal(m->build_id[19], 7);
    assert_place(seen[0].chain, seen[0].image, 0x8049010);
    assert_place(caller(seen[0].chain), seen[0].image, 0x80490ff);
    // The kernel sample, with user callers, in another thread.
    assert_int_equal(seen[1].mode, MODE_KERNEL);
    assert_int_equal(seen[1].thread, 9);
    assert_true(seen[1].irqs_off);
    assert_place(seen[1].chain, IMAGE_KERNEL, 0xc0100010);
    assert_place(caller(caller(seen[1].chain)), seen[1].image, 0x8049010);
    assert_int_equal(seen[2].mode, MODE_IDLE);
    assert_int_equal(seen[3].mode, MODE_IRQ);
    assert_int_equal(samples.images.list[IMAGE_KERNEL].build_id[0], 0xaa);
    samples_free(&samples);
}

// Each event has the exact times of its session's tasks.
static void tasks_times(void **state UNUSED)
{
    write_events(2, true);
    for (u32 event = 0; event < 2; event++) {
        read_event(event, file_size);
        const struct task_times *t = &samples.times;
        assert_int_equal(t->count, 2);
        assert_true(t->list[0].known && t->list[1].known);
        assert_int_equal(t->list[0].task, 1);
        assert_int_equal(t->list[0].user, 3);
        assert_int_equal(t->list[0].kernel, 2);
        assert_int_equal(t->list[1].task, 7);
        assert_int_equal(t->list[1].user, 70);
        samples_free(&samples);
    }
    write_events(1, false); // they are written at the end
    read_file(file_size);
    assert_int_equal(samples.times.count, 0);
    samples_free(&samples);
}

static u32 count_records(u32 type)
{
    struct perf_header h;
    u32 count = 0;

    memcpy(&h, file, sizeof(h));
    for (u64 at = h.data.offset; at < h.data.offset + h.data.size;) {
        const struct perf_record *r = (void *)(file + at);
        count += r->type == type;
        at += r->size;
    }
    return count;
}

// Without stacks a sample has no chain, only its address.
static void plain(void **state UNUSED)
{
    struct perf_header h;
    struct perf_file_attr a;

    asked_flags = 0;
    write_file(true);
    asked_flags = SPROFILE_O_STACKS;
    memcpy(&h, file, sizeof(h));
    memcpy(&a, file + h.attrs.offset, sizeof(a));
    assert_int_equal(a.attr.sample_type, 0x10187); // no CALLCHAIN
    for (u64 at = h.data.offset; at < h.data.offset + h.data.size;) {
        const struct perf_record *r = (void *)(file + at);
        if (r->type == PERF_RECORD_SAMPLE)
            assert_int_equal(r->size, 56);
        at += r->size;
    }
    assert_int_equal(read_file(file_size).info.taken, 7);
    assert_int_equal(seen_count, 4);
    assert_place(seen[0].chain, seen[0].image, 0x8049010);
    assert_int_equal(caller(seen[0].chain), CHAIN_ROOT);
    assert_int_equal(seen[0].time, 3000);
    assert_int_equal(seen[0].period, 1000);
    assert_place(seen[1].chain, IMAGE_KERNEL, 0xc0100010);
    assert_int_equal(caller(seen[1].chain), CHAIN_ROOT);
    assert_int_equal(seen[2].mode, MODE_IDLE);
    assert_int_equal(seen[3].mode, MODE_IRQ);
    samples_free(&samples);
}

// Times are in ns, at most 2 too low, and keep the order of the cycles.
static void times(void **state UNUSED)
{
    static const u64 frequencies[] = { 1,          1193182,    999999999,
                                       1000000000, 3333333333, 5100000001 };
    for (u32 i = 0; i < 6 * 50; i++) {
        u64 tsc[16], hz = frequencies[i % 6];
        const u32 pc = 0x8049000;
        stream_size = 0;
        for (u32 n = 0; n < ARRAY_SIZE(tsc); n++) {
            bool near = n > 0 && random_below(2);
            tsc[n] =
                near ? tsc[n - 1] + random_below(3)
                     : hz / 7 * random_below(1000) + random_below(hz >> 9 | 1);
            add_sample(7, 7, 0, tsc[n], NULL, 0, &pc, 1);
        }
        tsc_hz = hz;
        write_stream(1, true);
        tsc_hz = TSC_HZ;
        read_file(file_size);
        assert_int_equal(seen_count, ARRAY_SIZE(tsc));
        for (u32 n = 0; n < seen_count; n++) {
            u64 ns = (unsigned __int128)tsc[n] * NSEC_PER_SEC / hz;
            assert_true(seen[n].time <= ns && seen[n].time + 2 >= ns);
            for (u32 j = 0; j < seen_count; j++)
                assert_true(tsc[j] < tsc[n] || seen[j].time >= seen[n].time);
        }
        samples_free(&samples);
    }
}

static u32 files_found;

static void *find_threads(void *arg UNUSED, const struct image *m, size_t *size,
                          const char **problem UNUSED)
{
    if (strcmp(m->path, "/none/threads") != 0)
        return NULL;
    files_found++;
    FILE *f = fopen("build/guest/threads", "rb");
    u8 *bytes = malloc(65536);
    *size = fread(bytes, 1, 65536, f);
    fclose(f);
    return bytes;
}

// A program's file is read once, however often it is started. Without a build
// id it is read each time, as it may be another one.
static void started_often(void **state UNUSED)
{
    struct mapping m;
    assert_true(mapping_read(&m, "build/guest/threads"));
    for (u32 with_id = 0; with_id < 2; with_id++) {
        stream_size = 0;
        for (u32 n = 0; n < 10; n++) {
            add_task(SPROFILE_T_EXECED, 7 + n, "threads", 4000 + n);
            struct sprofile_task *t =
                (void *)(stream + stream_size - ALIGN_UP(sizeof(*t) + 16, 8u));
            t->build_id_size = with_id ? m.build_id_size : 0;
            memcpy(t->build_id, m.build_id, t->build_id_size);
        }
        files_found = 0;
        find_file = find_threads;
        write_stream(1, true);
        find_file = NULL;
        assert_int_equal(files_found, with_id ? 1 : 10);
        u32 at_its_place = 0;
        struct perf_header h;
        memcpy(&h, file, sizeof(h));
        for (u64 at = h.data.offset; at < h.data.offset + h.data.size;) {
            const struct perf_mmap2 *r = (void *)(file + at);
            if (r->head.type == PERF_RECORD_MMAP2 &&
                r->head.misc & PERF_MISC_USER)
                at_its_place += r->address == m.address && r->size == m.size;
            at += r->head.size;
        }
        assert_int_equal(at_its_place, 10);
    }
}

#define PIE "build/guest/pie"
#define BIAS 0x56789000u

static void *find_pie(void *arg UNUSED, const struct image *m UNUSED,
                      size_t *size, const char **problem UNUSED)
{
    FILE *f = fopen(PIE, "rb");
    u8 *bytes = malloc(65536);
    *size = fread(bytes, 1, 65536, f);
    fclose(f);
    return bytes;
}

// The first user mapping in the file.
static const struct perf_mmap2 *find_mapping(void)
{
    struct perf_header h;
    memcpy(&h, file, sizeof(h));
    for (u64 at = h.data.offset; at < h.data.offset + h.data.size;) {
        const struct perf_mmap2 *r = (void *)(file + at);
        if (r->head.type == PERF_RECORD_MMAP2 && r->head.misc & PERF_MISC_USER)
            return r;
        at += r->head.size;
    }
    fail_msg("there is no mapping");
    return NULL;
}

// A position-independent program: its mapping and samples have addresses in
// memory, and the reader returns addresses in the program's file. The same if
// that file is not found.
static void moved(void **state UNUSED)
{
    static const u32 user[] = { BIAS + 0x1010, BIAS + 0x1100 };
    struct mapping m;
    assert_true(mapping_read(&m, PIE));
    for (u32 found = 0; found < 2; found++) {
        stream_size = 0;
        struct sprofile_task *t = add_task(SPROFILE_T_EXECED, 7, "pie", 4000);
        u32 bias = BIAS;
        t->head.flags = SPROFILE_F_LOAD_BIAS;
        memcpy((u8 *)t + t->head.size - sizeof(bias), &bias, sizeof(bias));
        t->build_id_size = m.build_id_size;
        memcpy(t->build_id, m.build_id, sizeof(m.build_id));
        add_sample(7, 7, 0, 6000, NULL, 0, user, 2);
        find_file = found ? find_pie : NULL;
        write_stream(1, true);
        find_file = NULL;
        const struct perf_mmap2 *r = find_mapping();
        assert_int_equal(r->address - r->file_offset,
                         BIAS + (found ? m.address - m.file_offset : 0));
        assert_int_equal(r->file_offset, found ? m.file_offset : 0);
        assert_true(r->address <= user[0] && user[0] - r->address < r->size);
        read_file(file_size);
        assert_int_equal(seen_count, 1);
        assert_place(seen[0].chain, seen[0].image, 0x1010);
        assert_place(caller(seen[0].chain), seen[0].image, 0x10ff);
        samples_free(&samples);
    }
}

// Several events: each has its own samples, losses and statistics; task records
// are written once.
static void several(void **state UNUSED)
{
    write_events(1, true);
    u32 forks = count_records(PERF_RECORD_FORK);
    u32 mappings = count_records(PERF_RECORD_MMAP2);
    write_events(EVENTS, true);
    assert_int_equal(count_records(PERF_RECORD_FORK), forks);
    assert_int_equal(count_records(PERF_RECORD_MMAP2), mappings);
    assert_int_equal(count_records(PERF_RECORD_SAMPLE), 4 * EVENTS);
    for (u32 i = 0; i < EVENTS; i++) {
        struct perf_file f = read_event(i, file_size);
        assert_true(f.has_info);
        assert_string_equal(f.info.source, infos[i].source);
        assert_string_equal(f.info.event, infos[i].event);
        assert_int_equal(f.info.taken, 7 + i);
        assert_int_equal(f.asked.rate_hz, 999 + i);
        assert_int_equal(samples.lost, 5 + i);
        assert_int_equal(seen_count, 4);
        assert_int_equal(seen[0].time, 3000);
        assert_string_equal(samples.images.list[seen[0].image].path,
                            "/none/prog");
        samples_free(&samples);
    }
}

// EVENT_DESC contains each event's attribute, id and name.
static void described(void **state UNUSED)
{
    static const char *const names[EVENTS] = { "nmi-hpet", "lapic",
                                               "cycles:u" };
    const u64 before = 1 << PERF_FEATURE_EVENTS; // lower bits: earlier entries
    struct perf_header h;
    struct perf_section s;

    write_events(EVENTS, true);
    memcpy(&h, file, sizeof(h));
    u32 index = __builtin_popcountll(h.features[0] & (before - 1));
    memcpy(&s, file + h.data.offset + h.data.size + index * sizeof(s),
           sizeof(s));
    const u8 *at = file + s.offset;
    assert_memory_equal(at, ((u32[]){ EVENTS, sizeof(struct perf_attr) }), 8);
    at += 8;
    for (u32 i = 0; i < EVENTS; i++) {
        struct perf_file_attr a;
        u64 id;
        u32 length;
        memcpy(&a, file + h.attrs.offset + i * sizeof(a), sizeof(a));
        memcpy(&id, file + a.ids.offset, sizeof(id));
        assert_int_equal(id, i + 1);
        assert_memory_equal(at, &a.attr, sizeof(a.attr));
        memcpy(&length, at + sizeof(a.attr) + 4, sizeof(length));
        at += sizeof(a.attr) + 8;
        assert_string_equal((const char *)at, names[i]);
        at += length;
        assert_memory_equal(at, &id, sizeof(id));
        at += sizeof(id);
    }
    assert_ptr_equal(at, file + s.offset + s.size);
}

// A program with a build id is once in the BUILD_ID feature, by which perf
// finds the file with its symbols. Each feature is inside the file.
static void features(void **state UNUSED)
{
    const u64 wanted = 1 << PERF_FEATURE_BUILD_ID | 1 << PERF_FEATURE_HOSTNAME |
                       1 << PERF_FEATURE_OS_RELEASE |
                       1 << PERF_FEATURE_VERSION | 1 << PERF_FEATURE_ARCH |
                       1 << PERF_FEATURE_CPUS | 1 << PERF_FEATURE_CPU |
                       1 << PERF_FEATURE_COMMAND | 1 << PERF_FEATURE_EVENTS |
                       1 << PERF_FEATURE_TOPOLOGY | 1 << PERF_FEATURE_CLOCK;
    struct perf_header h;
    struct perf_section s;
    write_file(true);
    memcpy(&h, file, sizeof(h));
    assert_int_equal(h.features[0], wanted);
    size_t at = h.data.offset + h.data.size;
    memcpy(&s, file + at, sizeof(s));
    for (u32 end = s.offset + s.size; s.offset < end;) {
        struct perf_build_id b;
        memcpy(&b, file + s.offset, sizeof(b));
        const char *name = (char *)file + s.offset + sizeof(b);
        assert_int_equal(b.build_id_size, 20);
        assert_true(strcmp(name, PERF_KERNEL_PATH) == 0 ||
                    strcmp(name, "/none/prog") == 0);
        s.offset += b.head.size;
    }
    for (u64 bits = wanted; bits != 0; bits &= bits - 1, at += sizeof(s)) {
        memcpy(&s, file + at, sizeof(s));
        assert_true(s.size > 0 && s.offset + s.size <= file_size);
    }
}

// perf's types and configs of the events.
static void events(void **state UNUSED)
{
    static const struct {
        const char *event;
        u32 type;
        u64 config;
        u32 flags;
    } cases[] = {
        { "", PERF_TYPE_SOFTWARE, PERF_SOFTWARE_CPU_CLOCK, 0 },
        { "cycles", PERF_TYPE_HARDWARE, 0, 0 },
        { "branch-misses:u", PERF_TYPE_HARDWARE, 5, PERF_ATTR_EXCLUDE_KERNEL },
        { "ref-cycles:k", PERF_TYPE_HARDWARE, 9, PERF_ATTR_EXCLUDE_USER },
        { "cycles:u:k", PERF_TYPE_HARDWARE, 0, 0 },
        { "bus-cycles", PERF_TYPE_HARDWARE, 6, 0 },
        { "stalled-cycles-backend", PERF_TYPE_HARDWARE, 8, 0 },
        { "L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000, 0 },
        { "LLC-loads:u", PERF_TYPE_HW_CACHE, 2, PERF_ATTR_EXCLUDE_KERNEL },
        { "dTLB-store-misses", PERF_TYPE_HW_CACHE, 0x10103, 0 },
        { "iTLB-load-misses", PERF_TYPE_HW_CACHE, 0x10004, 0 },
        { "slots", PERF_TYPE_RAW, 0x400, 0 },
        // event 2e, mask 41: in perf's config the mask is the upper byte
        { "r2e41", PERF_TYPE_RAW, 0x412e, 0 },
        { "r1c007", PERF_TYPE_RAW, 0x1000007c0, 0 },
    };
    const u32 modes = PERF_ATTR_EXCLUDE_USER | PERF_ATTR_EXCLUDE_KERNEL;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct sprofile_options asked = { .flags = SPROFILE_O_STACKS };
        struct sprofile_info info = { .period = 1000 };
        struct perf_attr a;
        strcpy(info.event, cases[i].event);
        perf_attr_make(&a, &asked, &info);
        assert_int_equal(a.type, cases[i].type);
        assert_int_equal(a.config, cases[i].config);
        assert_int_equal(a.flags & modes, cases[i].flags);
        assert_int_equal(a.flags & PERF_ATTR_FREQ, 0);
        assert_int_equal(a.period, 1000);
    }
}

// --- repair -----------------------------------------------------------------

static void store(size_t size)
{
    FILE *f = fopen(path, "w");
    assert_int_equal(fwrite(file, 1, size, f), size);
    fclose(f);
}

static const char *repair(struct perf_repaired *r)
{
    FILE *f = fopen(path, "r+");
    const char *problem = perf_repair(fileno(f), r);
    fclose(f);
    return problem;
}

// The end of the last complete record in the first `size` bytes.
static size_t whole(size_t at, size_t size, size_t data_end, u32 *records)
{
    size = MIN(size, data_end);
    for (*records = 0; at + 8 <= size; ++*records) {
        const struct perf_record *r = (void *)(file + at);
        if (at + r->size > size)
            break;
        at += r->size;
    }
    return at;
}

// Truncates `file` at each byte; the long file of several events at each 11th.
static void cut_everywhere(u32 events, size_t data_end)
{
    static u8 original[FILE_ROOM];
    const size_t data = DATA_BEGINS(events);
    size_t size = file_size;
    memcpy(original, file, size);
    for (size_t cut = 0; cut<size; cut += events> 1 ? 11 : 1) {
        struct perf_repaired r;
        u32 records;
        memcpy(file, original, size);
        size_t end = whole(data, cut, data_end, &records);
        store(cut);
        const char *problem = repair(&r);
        if (end == data) {
            assert_non_null(problem);
            load();
            assert_int_equal(file_size, cut);
            assert_memory_equal(file, original, cut);
            continue;
        }
        if (problem != NULL)
            fail_msg("cut at %zu: %s", cut, problem);
        assert_true(r.changed);
        assert_int_equal(r.records, records);
        assert_int_equal(r.cut, cut - end);
        load();
        assert_memory_equal(file + data, original + data, end - data);
        for (u32 i = 0; i < events; i++) {
            assert_false(read_event(i, file_size).cut);
            samples_free(&samples);
        }
        assert_null(repair(&r));
        assert_false(r.changed);
    }
}

static void cut_unfinished(void **state UNUSED)
{
    write_file(false);
    cut_everywhere(1, file_size);
}

static void cut_plain(void **state UNUSED)
{
    asked_flags = 0;
    write_file(false);
    asked_flags = SPROFILE_O_STACKS;
    cut_everywhere(1, file_size);
}

static void cut_finished(void **state UNUSED)
{
    struct perf_header h;
    write_file(true);
    memcpy(&h, file, sizeof(h));
    cut_everywhere(1, h.data.offset + h.data.size);
}

static void cut_several(void **state UNUSED)
{
    struct perf_header h;
    write_events(EVENTS, false);
    cut_everywhere(EVENTS, file_size);
    write_events(EVENTS, true);
    memcpy(&h, file, sizeof(h));
    cut_everywhere(EVENTS, h.data.offset + h.data.size);
}

static void not_ours(void **state UNUSED)
{
    struct perf_repaired r;
    file_size = snprintf((char *)file, sizeof(file), "#!/bin/sh\n");
    store(file_size);
    assert_non_null(repair(&r));
}

// With any byte corrupt, repair ends, and makes no invalid access.
static void corrupt(void **state UNUSED)
{
    static u8 original[FILE_ROOM];
    struct perf_repaired r;
    write_events(EVENTS, true);
    memcpy(original, file, file_size);
    size_t size = file_size;
    for (size_t at = 0; at < size; at += 1 + random_below(5)) {
        memcpy(file, original, size);
        file[at] ^= 1u << random_below(8);
        store(size);
        repair(&r);
    }
}

static int create(void **state UNUSED)
{
    random_init();
    int fd = mkstemp(path);
    close(fd);
    return fd < 0 ? -1 : 0;
}

static int delete (void **state UNUSED)
{
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_there), cmocka_unit_test(features),
        cmocka_unit_test(events),       cmocka_unit_test(cut_unfinished),
        cmocka_unit_test(cut_finished), cmocka_unit_test(not_ours),
        cmocka_unit_test(corrupt),      cmocka_unit_test(several),
        cmocka_unit_test(described),    cmocka_unit_test(cut_several),
        cmocka_unit_test(plain),        cmocka_unit_test(cut_plain),
        cmocka_unit_test(times),        cmocka_unit_test(started_often),
        cmocka_unit_test(moved),        cmocka_unit_test(tasks_times),
    };
    return cmocka_run_group_tests(tests, create, delete);
}
