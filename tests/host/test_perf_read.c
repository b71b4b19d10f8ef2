// user/libprofile/perf_read.c: synthetic files, complete, out of order,
// truncated at every byte, and with every byte changed.
// link: user/libprofile/shares.c
// link: user/libprofile/mapping.c user/libprofile/images_read.c
// link: user/libprofile/perf_read.c user/libprofile/perf_walk.c
// link: user/libprofile/perf_programs.c
// link: user/libprofile/samples.c user/libprofile/stream.c
// link: user/libprofile/chains.c user/libprofile/images.c
// link: user/libprofile/programs.c user/libprofile/user_chain.c
// link: user/libprofile/task_times.c
#include "perf_made.h"

#include "user/libprofile/perf_read.h"

#define VDSO 0xbffe0000u

static struct made made;
static struct samples samples;
static struct perf_file file;
static u32 event; // the event to read
static struct perf_events events;
static struct timed_sample seen[64];
static u32 seen_count;

static void *no_file(const char *path UNUSED, size_t *size UNUSED)
{
    return NULL;
}

static void see(void *arg UNUSED, const struct timed_sample *s)
{
    if (seen_count < ARRAY_SIZE(seen))
        seen[seen_count++] = *s;
}

// Reads the first `size` bytes, from memory of exactly that size.
static const char *read_bytes(const u8 *bytes, size_t size)
{
    u8 *copy = malloc(size + (size == 0));
    memcpy(copy, bytes, size);
    samples_free(&samples);
    assert_int_equal(samples_init(&samples, no_file), 0);
    file = (struct perf_file){ .event = event, .sample = see };
    seen_count = 0;
    const char *no_events = perf_read_events(&events, copy, size);
    const char *problem = perf_read(&file, 1, &samples, copy, size);
    free(copy);
    assert_true((no_events == NULL && event < events.count) ==
                (problem == NULL));
    return problem;
}

static void read_made(void)
{
    const char *problem = read_bytes(made.bytes, made.size);
    if (problem != NULL)
        fail_msg("%s", problem);
}

static const u64 user_chain[] = { PERF_CONTEXT_USER, 0x8049010, 0x80490ff };
static const u64 both_chain[] = { PERF_CONTEXT_KERNEL, 0xc0100010, 0xc01001ff,
                                  PERF_CONTEXT_USER,   0x8049020,  0x80490ff };
static const u64 vdso_chain[] = { PERF_CONTEXT_USER, VDSO + 0x40, 0x80490ff };

static const struct made_sample user_sample = { .task = 7,
                                                .thread = 8,
                                                .cpu = 1,
                                                .time = 1000,
                                                .period = 5,
                                                .chain = user_chain,
                                                .depth = 3 };

// The records of a small session: four samples, and one lost.
static void make(void)
{
    struct made_sample kernel = user_sample, idle = { 0 }, vdso = user_sample;
    struct sprofile_info info = { .source = "nmi-hpet", .taken = 5, .cpus = 2 };
    static const u8 command[] = "\2\0\0\0"
                                "\4\0\0\0"
                                "lua\0"
                                "\4\0\0\0"
                                "x y";
    static const u8 version[] = "\10\0\0\0#1 v0.2";

    kernel.chain = both_chain;
    kernel.depth = 6;
    kernel.flags = SPROFILE_F_KERNEL | SPROFILE_F_IRQS_OFF;
    kernel.time = 1500;
    vdso.chain = vdso_chain;
    vdso.time = 1600;
    idle.flags = SPROFILE_F_IDLE | SPROFILE_F_KERNEL;
    idle.chain = both_chain;
    idle.depth = 2;
    idle.time = 900;

    made_begin(&made);
    made_own(&made, PERF_STROBE_FEATURE + PERF_FEATURE_COMMAND, command,
             sizeof(command));
    made_own(&made, PERF_STROBE_FEATURE + PERF_FEATURE_VERSION, version,
             sizeof(version));
    made_mmap(&made, PERF_KERNEL_PID, PERF_KERNEL_PATH, 0xc0100000, 0xaa, 1);
    made_mmap(&made, 0, PERF_VDSO_PATH, VDSO, 0, 1);
    made_comm(&made, 7, "shell", false, 100);
    made_mmap(&made, 7, "/bin/sh", 0x8048000, 0x11, 100);
    made_sample(&made, &user_sample);
    made_sample(&made, &kernel);
    made_sample(&made, &vdso);
    made_lost(&made, 0, 1, 1700);
    made_sample(&made, &idle);
    made_own(&made, PERF_STROBE_INFO, &info, sizeof(info));
    made_end(&made);
}

static struct place innermost(u32 chain)
{
    return samples.chains.nodes[chain].place;
}

static struct place caller(u32 chain)
{
    return innermost(samples.chains.nodes[chain].parent);
}

static void assert_place(struct place p, u32 image, u32 address)
{
    assert_int_equal(p.image, image);
    assert_int_equal(p.address, address);
}

static void whole(void **state UNUSED)
{
    make();
    read_made();
    assert_false(file.cut);
    assert_true(file.has_info);
    assert_string_equal(file.info.source, "nmi-hpet");
    assert_string_equal(file.command, "lua x y");
    assert_string_equal(file.version, "#1 v0.2");
    assert_int_equal(samples.total, 4);
    assert_int_equal(samples.lost, 1);
    assert_int_equal(samples.reader.malformed, 0);
    assert_int_equal(file.first, 900);
    assert_int_equal(file.last, 1600);
    assert_int_equal(seen_count, 4);

    const struct image *sh = &samples.images.list[seen[0].image];
    assert_string_equal(sh->path, "/bin/sh");
    assert_int_equal(sh->build_id_size, 20);
    assert_int_equal(sh->build_id[0], 0x11);
    assert_int_equal(samples.images.list[IMAGE_KERNEL].build_id[0], 0xaa);

    assert_int_equal(seen[0].task, 7);
    assert_int_equal(seen[0].thread, 8);
    assert_int_equal(seen[0].cpu, 1);
    assert_int_equal(seen[0].period, 5);
    assert_int_equal(seen[0].mode, MODE_USER);
    assert_false(seen[0].irqs_off);
    assert_place(innermost(seen[0].chain), seen[0].image, 0x8049010);
    assert_place(caller(seen[0].chain), seen[0].image, 0x80490ff);

    assert_int_equal(seen[1].mode, MODE_KERNEL);
    assert_true(seen[1].irqs_off);
    assert_place(innermost(seen[1].chain), IMAGE_KERNEL, 0xc0100010);
    assert_place(caller(seen[1].chain), IMAGE_KERNEL, 0xc01001ff);
    assert_place(innermost(seen[2].chain), IMAGE_VDSO, 0x40);
    assert_int_equal(seen[3].mode, MODE_IDLE);
}

// A sample gets the program that its task ran then, in any order of records.
static void programs_by_time(void **state UNUSED)
{
    struct made_sample s = user_sample;

    made_begin(&made);
    s.time = 5000;
    made_sample(&made, &s); // runs /bin/lua by then
    s.time = 2000;
    made_sample(&made, &s); // still /bin/sh
    s.task = 9;
    s.time = 3500;
    made_sample(&made, &s); // a child, forked from /bin/sh
    made_comm(&made, 7, "lua", true, 4000);
    made_mmap(&made, 7, "/bin/lua", 0x8048000, 0x22, 4000);
    made_fork(&made, 9, 7, 3000);
    made_comm(&made, 7, "sh", false, 100);
    made_mmap(&made, 7, "/bin/sh", 0x8048000, 0x11, 100);
    made_end(&made);
    read_made();
    assert_int_equal(seen_count, 3);
    assert_string_equal(samples.images.list[seen[0].image].path, "/bin/lua");
    assert_string_equal(samples.images.list[seen[1].image].path, "/bin/sh");
    assert_string_equal(samples.images.list[seen[2].image].path, "/bin/sh");
    const struct program *p = programs_find(&samples.programs, 7, 5000);
    assert_string_equal(p->name, "lua");
}

static void made_load(u32 task, u32 bias, u64 time)
{
    struct perf_load load = { task, bias, time };
    made_own(&made, PERF_STROBE_LOAD, &load, sizeof(load));
}

// The load bias follows the program's mapping. A forked child inherits it, the
// next program does not.
static void moved(void **state UNUSED)
{
    static const u64 high[] = { PERF_CONTEXT_USER, 0x56601010, 0x566010ff };
    static const u64 made_by_it[] = { PERF_CONTEXT_USER, 0x56700010,
                                      0x566010ff };
    static const u64 low[] = { PERF_CONTEXT_USER, 0x8048010 };
    struct made_sample s = user_sample;

    made_begin(&made);
    s.chain = high;
    s.time = 2000;
    made_sample(&made, &s);
    s.task = 9;
    s.time = 3500;
    made_sample(&made, &s); // a child
    s.chain = made_by_it;
    made_sample(&made, &s); // code outside all files
    s.task = 7;
    s.time = 5000;
    s.chain = low;
    s.depth = 2;
    made_sample(&made, &s); // another program, which is not moved
    made_comm(&made, 7, "lua", true, 4000);
    made_mmap(&made, 7, "/bin/lua", 0x8048000, 0x22, 4000);
    made_fork(&made, 9, 7, 3000);
    made_comm(&made, 7, "pie", false, 100);
    made_mmap(&made, 7, "/bin/pie", 0x56601000, 0x11, 100);
    made_load(7, 0x56600000, 100);
    made_own(&made, PERF_STROBE_LOAD, "\7\0\0",
             4); // too short: of another version
    made_end(&made);
    read_made();
    assert_int_equal(samples.reader.malformed, 0);
    assert_int_equal(seen_count, 4);
    for (u32 i = 0; i < 2; i++) {
        assert_place(innermost(seen[i].chain), seen[i].image, 0x1010);
        assert_place(caller(seen[i].chain), seen[i].image, 0x10ff);
    }
    assert_int_equal(seen[0].chain, seen[1].chain);
    assert_place(innermost(seen[2].chain), seen[2].image, 0x56700010);
    assert_place(caller(seen[2].chain), seen[2].image, 0x10ff);
    assert_place(innermost(seen[3].chain), seen[3].image, 0x8048010);
}

static void without_figures(void **state UNUSED)
{
    made_begin(&made);
    made_sample(&made, &user_sample);
    made_lost(&made, 0, 3, 1);
    made_end(&made);
    read_made();
    assert_false(file.has_info);
    assert_int_equal(file.info.taken, 4);
    assert_int_equal(file.info.user, 1);
    assert_int_equal(file.info.lost, 3);
    assert_int_equal(file.info.cpus, 2);
    assert_int_equal(seen[0].image, IMAGE_UNKNOWN);
}

// Unterminated strings in the file are terminated.
static void names_without_end(void **state UNUSED)
{
    struct sprofile_info info;
    struct sprofile_options asked;

    memset(&info, 'x', sizeof(info));
    memset(&asked, 'x', sizeof(asked));
    made_begin(&made);
    made_own(&made, PERF_STROBE_OPTIONS, &asked, sizeof(asked));
    made_own(&made, PERF_STROBE_INFO, &info, sizeof(info));
    made_end(&made);
    read_made();
    assert_int_equal(strlen(file.info.source), SPROFILE_SOURCE_NAME - 1);
    assert_int_equal(strlen(file.info.event), SPROFILE_EVENT_NAME - 1);
    assert_int_equal(strlen(file.info.instead_of), SPROFILE_SOURCE_NAME - 1);
    assert_int_equal(strlen(file.asked.source), SPROFILE_SOURCE_NAME - 1);
    assert_int_equal(strlen(file.asked.event), SPROFILE_EVENT_NAME - 1);
}

static void refused(void **state UNUSED)
{
    struct perf_file_attr *a =
        (void *)(made.bytes + sizeof(struct perf_header));

    assert_non_null(strstr(read_bytes((const u8 *)"", 0), "not a perf.data"));
    assert_non_null(
        strstr(read_bytes((const u8 *)"\177ELF....", 8), "not a perf.data"));
    made_begin(&made);
    a->attr.sample_type |= 1u << 14;
    assert_non_null(
        strstr(read_bytes(made.bytes, made.size), "another program"));
}

// In a file truncated anywhere, each complete record counts.
static void truncated(void **state UNUSED)
{
    make();
    u32 before = 0;
    for (size_t size = 0; size < made.size; size++) {
        const char *problem = read_bytes(made.bytes, size);
        if (size < MADE_DATA) {
            assert_non_null(problem);
            continue;
        }
        assert_null(problem);
        assert_true(file.cut);
        assert_int_equal(samples.reader.malformed, 0);
        assert_true(seen_count >= before);
        before = seen_count;
    }
    assert_int_equal(before, 4);
}

// No changed byte causes an invalid read (ASan), or too many samples.
static void changed(void **state UNUSED)
{
    make();
    for (size_t at = 0; at < made.size; at++) {
        for (u32 bits = 1; bits < 256; bits = bits * 2 + 1) {
            made.bytes[at] ^= bits;
            if (read_bytes(made.bytes, made.size) == NULL)
                assert_true(samples.total <= file.records);
            made.bytes[at] ^= bits;
        }
    }
}

static void deep_chain(void **state UNUSED)
{
    static u64 chain[1000];
    struct made_sample s = user_sample;

    for (u32 i = 0; i < ARRAY_SIZE(chain); i++)
        chain[i] = 0x8049000 + i;
    s.chain = chain;
    s.depth = ARRAY_SIZE(chain);
    made_begin(&made);
    made_sample(&made, &s);
    made_end(&made);
    read_made();
    assert_int_equal(samples.chains.count, 1 + ARRAY_SIZE(chain));
    // A depth that exceeds the record: the sample is skipped.
    struct perf_sample *record = (void *)(made.bytes + made.last);
    record->depth = UINT64_MAX / 8 + 2;
    read_made();
    assert_int_equal(samples.total, 0);
    assert_int_equal(samples.reader.malformed, 1);
}

// --- several events ---------------------------------------------------------

static const u64 ids[] = { 40, 7, 1ull << 40 };

#define OF_EVENT(kind, event) ((kind) | (event) << PERF_STROBE_EVENT_SHIFT)

// Three events, with one, two and three samples, each at its own times. The
// last event has no statistics.
static void make_several(void)
{
    struct sprofile_info info = { .source = "nmi-hpet", .taken = 3, .lost = 2 };
    struct sprofile_options asked = { .rate_hz = 100 };

    made_begin_events(&made, ids, ARRAY_SIZE(ids));
    made_own(&made, OF_EVENT(PERF_STROBE_OPTIONS, 0u), &asked, sizeof(asked));
    asked.rate_hz = 200;
    made_own(&made, OF_EVENT(PERF_STROBE_OPTIONS, 1u), &asked, sizeof(asked));
    made_own(&made, OF_EVENT(PERF_STROBE_INFO, 0u), &info, sizeof(info));
    made_comm(&made, 7, "shell", false, 100);
    made_mmap(&made, 7, "/bin/sh", 0x8048000, 0x11, 100);
    for (u32 round = 0; round < 3; round++) {
        for (u32 i = 0; i <= round; i++) {
            struct made_sample s = user_sample;
            s.id = ids[2 - i];
            s.time = 1000 * (3 - i) + round;
            made_sample(&made, &s);
        }
    }
    made_lost(&made, ids[0], 2, 3000);
    info = (struct sprofile_info){ .source = "pmc", .event = "cycles:u" };
    info.taken = 2;
    made_own(&made, OF_EVENT(PERF_STROBE_INFO, 1u), &info, sizeof(info));
    made_end(&made);
}

// Each event has only its own samples and statistics.
static void several(void **state UNUSED)
{
    static const char *const names[] = { "nmi-hpet", "cycles:u", "event-3" };

    make_several();
    for (event = 0; event < 3; event++) {
        read_made();
        assert_int_equal(events.count, 3);
        assert_string_equal(events.name[event], names[event]);
        assert_int_equal(perf_find_event(&events, names[event]), event);
        assert_int_equal(samples.reader.malformed, 0);
        assert_int_equal(seen_count, event + 1);
        assert_int_equal(file.first / 1000, event + 1);
        assert_int_equal(file.last / 1000, event + 1);
        assert_int_equal(samples.lost, event == 0 ? 2 : 0);
        assert_int_equal(file.has_info, event < 2);
        assert_int_equal(file.info.taken, 3 - (event == 1));
        assert_int_equal(file.asked.rate_hz, event < 2 ? 100 * event + 100 : 0);
        assert_string_equal(samples.images.list[seen[0].image].path, "/bin/sh");
    }
    assert_int_equal(perf_find_event(&events, "lapic"), 3);
    assert_non_null(strstr(read_bytes(made.bytes, made.size), "no such event"));
    event = 0;
}

// Read together, each event has the same samples and statistics as alone.
static void together(void **state UNUSED)
{
    struct perf_file files[3];
    u64 counted[3] = { 0 };

    make_several();
    samples_free(&samples);
    assert_int_equal(samples_init(&samples, no_file), 0);
    seen_count = 0;
    for (u32 i = 0; i < 3; i++)
        files[i] = (struct perf_file){ .event = 2 - i, .sample = see };
    assert_null(perf_read(files, 3, &samples, made.bytes, made.size));
    assert_int_equal(samples.reader.malformed, 0);
    assert_int_equal(samples.total, 6);
    assert_int_equal(seen_count, 6);
    for (u32 i = 0; i < seen_count; i++)
        assert_int_equal(seen[i].time / 1000, 3 - seen[i].event);
    for (u32 i = 0; i < samples.count; i++)
        counted[samples.counts[i].event] += samples.counts[i].samples;
    for (u32 i = 0; i < 3; i++) {
        assert_int_equal(counted[i], 3 - i);
        assert_int_equal(files[i].first / 1000, 3 - i);
        assert_int_equal(files[i].lost, i == 2 ? 2 : 0);
        assert_int_equal(files[i].has_info, i > 0);
        assert_int_equal(files[i].info.taken, 3 - (i == 1));
    }
    files[1] = (struct perf_file){ .event = 3 };
    assert_non_null(perf_read(files, 2, &samples, made.bytes, made.size));
}

static void all_names(void **state UNUSED)
{
    char text[64], little[8];

    make_several();
    read_made();
    perf_list_events(&events, text, sizeof(text));
    assert_string_equal(text, "nmi-hpet, cycles:u, event-3");
    perf_list_events(&events, little, sizeof(little));
    assert_string_equal(little, "nmi-hpe");
}

// A sample with an unknown id belongs to no event.
static void unknown_id(void **state UNUSED)
{
    struct made_sample s = user_sample;

    made_begin_events(&made, ids, 2);
    s.id = ids[0];
    made_sample(&made, &s);
    s.id = ids[2];
    made_sample(&made, &s);
    made_lost(&made, 0, 1, 2000);
    made_end(&made);
    read_made();
    assert_int_equal(seen_count, 1);
    assert_int_equal(samples.lost, 0);
    assert_int_equal(samples.reader.malformed, 2);
}

// Files with missing ids, with too many events or with none are refused.
static void bad_ids(void **state UNUSED)
{
    static u64 many[PERF_EVENTS_MAX + 1];
    struct perf_file_attr *second =
        (void *)(made.bytes + sizeof(struct perf_header) + 3 * sizeof(u64) +
                 sizeof(struct perf_file_attr));

    make_several();
    second->ids.size = 0;
    assert_non_null(read_bytes(made.bytes, made.size));
    make_several();
    second->ids.offset = made.size - 7;
    assert_non_null(read_bytes(made.bytes, made.size));
    make_several();
    second->ids.offset = UINT64_MAX - 3;
    assert_non_null(read_bytes(made.bytes, made.size));
    made_begin_events(&made, many, ARRAY_SIZE(many));
    made_end(&made);
    assert_non_null(read_bytes(made.bytes, made.size));
    made_begin_events(&made, many, 0);
    made_end(&made);
    assert_non_null(read_bytes(made.bytes, made.size));
}

static void several_truncated(void **state UNUSED)
{
    make_several();
    const size_t data = ((struct perf_header *)made.bytes)->data.offset;
    for (event = 0; event < 3; event++) {
        u32 before = 0;
        for (size_t size = 0; size < made.size; size++) {
            const char *problem = read_bytes(made.bytes, size);
            assert_true((size < data) == (problem != NULL));
            assert_int_equal(samples.reader.malformed, 0);
            assert_true(seen_count >= before);
            before = seen_count;
        }
        assert_int_equal(before, event + 1);
    }
    event = 0;
}

static void several_changed(void **state UNUSED)
{
    make_several();
    for (size_t at = 0; at < made.size; at++) {
        for (u32 bits = 1; bits < 256; bits = bits * 2 + 1) {
            made.bytes[at] ^= bits;
            event = at % 3;
            if (read_bytes(made.bytes, made.size) == NULL)
                assert_true(samples.total <= file.records);
            made.bytes[at] ^= bits;
        }
    }
    event = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),           cmocka_unit_test(programs_by_time),
        cmocka_unit_test(without_figures), cmocka_unit_test(names_without_end),
        cmocka_unit_test(refused),         cmocka_unit_test(truncated),
        cmocka_unit_test(changed),         cmocka_unit_test(deep_chain),
        cmocka_unit_test(several),         cmocka_unit_test(together),
        cmocka_unit_test(all_names),       cmocka_unit_test(unknown_id),
        cmocka_unit_test(bad_ids),         cmocka_unit_test(several_truncated),
        cmocka_unit_test(several_changed), cmocka_unit_test(moved),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    samples_free(&samples);
    return failed;
}
