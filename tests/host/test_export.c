// tools/strobe-src: the output of the exporters, also for malformed files, and
// the choice of an image's ELF file. Files are changed in every byte and
// truncated at every byte.
// link: user/libprofile/check.c user/libprofile/binomial.c
// link: user/libstrobe/core_clock.c
// link: tools/strobe-src/traced.c user/libprofile/call_paths.c
// link: user/libprofile/call_tables.c user/libprofile/calls_file.c
// link: user/libprofile/gmon_file.c
// link: user/libprofile/shares.c
// link: user/libprofile/mapping.c user/libprofile/images_read.c
// link: tools/strobe-src/oracle.c
// link: tools/strobe-src/oracle_flat.c
// link: tools/strobe-src/oracle_parse.c
// link: tools/strobe-src/oracle_programs.c
// link: tools/strobe-src/profile.c tools/strobe-src/elves.c
// link: tools/strobe-src/frames.c
// link: tools/strobe-src/folded.c tools/strobe-src/speedscope.c
// link: tools/strobe-src/gmon.c
// link: tools/strobe-src/gprof_names.c tools/strobe-src/callgrind.c
// link: tools/strobe-src/lines.c
// link: tools/strobe-src/coprocess.c tools/strobe-src/names.c
// link: tools/strobe-src/inlines.c
// link: tools/strobe-src/places.c tools/strobe-src/by_thread.c
// link: tools/strobe-src/header_lines.c
// link: tools/strobe-src/firefox.c tools/strobe-src/firefox_tables.c
// link: tools/strobe-src/firefox_columns.c tools/strobe-src/firefox_shared.c
// link: tools/strobe-src/firefox_meta.c tools/strobe-src/task_events.c
// link: tools/strobe-src/numbering.c
// link: tools/strobe-src/html_data.c tools/strobe-src/timeline.c
// link: user/libprofile/perf_read.c user/libprofile/perf_walk.c
// link: user/libprofile/samples.c user/libprofile/stream.c
// link: user/libprofile/user_chain.c user/libprofile/header.c
// link: user/libprofile/samples_cut.c
// link: user/libprofile/chains.c user/libprofile/images.c
// link: user/libprofile/programs.c user/libprofile/views.c
// link: user/libprofile/tree.c user/libprofile/sources.c
// link: user/libstrobe/table.c user/libstrobe/messages.c
// link: user/libprofile/choose_event.c
// link: user/libprofile/perf_programs.c
// link: user/libstrobe/kbox.c user/libstrobe/sysinfo.c
// link: user/libprofile/task_times.c
#define _GNU_SOURCE // open_memstream, mkdtemp, memfd_create
#include "perf_made.h"

#undef fail // strobe has a function of that name
#include "tools/strobe-src/export.h"
#include "tools/strobe-src/html_data.h"
#include "tools/strobe-src/lines.h"

#include "lib/elf.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CODE 0x8049000u

// --- exporters --------------------------------------------------------------

static struct made made;

static const u64 user_chain[] = { PERF_CONTEXT_USER, CODE + 0x10, CODE + 0x20,
                                  CODE + 0x10 };
static const u64 both_chain[] = { PERF_CONTEXT_KERNEL, 0xc0100010, 0xc0100200,
                                  PERF_CONTEXT_USER, CODE + 0x20 };

static void make(void)
{
    struct made_sample s = { .task = 7,
                             .thread = 8,
                             .time = 10,
                             .period = 3,
                             .chain = user_chain,
                             .depth = ARRAY_SIZE(user_chain) };
    made_begin(&made);
    made_comm(&made, 7, "a;\"\n(", false, 1);
    made_mmap(&made, 7, "/bin/p;\"\n(", CODE, 0x11, 1);
    made_sample(&made, &s);
    s.chain = both_chain;
    s.depth = ARRAY_SIZE(both_chain);
    s.flags = SPROFILE_F_KERNEL;
    made_sample(&made, &s);
    s.task = s.thread = 0;
    s.flags = SPROFILE_F_KERNEL | SPROFILE_F_IDLE;
    s.depth = 2;
    made_sample(&made, &s);
    made_end(&made);
}

// A file with two events: the first has one sample, the second has two, with
// another period.
static void make_several(void)
{
    static const u64 ids[] = { 5, 9 };
    struct sprofile_info info = { .source = "pmc", .event = "cycles u" };
    struct made_sample s = { .task = 7,
                             .thread = 8,
                             .time = 10,
                             .period = 4,
                             .chain = user_chain,
                             .depth = ARRAY_SIZE(user_chain) };

    made_begin_events(&made, ids, ARRAY_SIZE(ids));
    made_own(&made, PERF_STROBE_INFO | 1 << PERF_STROBE_EVENT_SHIFT, &info,
             sizeof(info));
    made_comm(&made, 7, "p", false, 1);
    made_mmap(&made, 7, "/bin/p", CODE, 0x11, 1);
    s.id = ids[0];
    made_sample(&made, &s);
    s.id = ids[1];
    s.period = 1000;
    made_sample(&made, &s);
    made_sample(&made, &s);
    made_end(&made);
}

// A shell's child that becomes another program of the same file.
static void make_applets(void)
{
    struct made_sample s = { .task = 7,
                             .thread = 7,
                             .period = 1,
                             .chain = user_chain,
                             .depth = ARRAY_SIZE(user_chain) };

    made_begin(&made);
    made_comm(&made, 7, "sh", false, 1);
    made_mmap(&made, 7, "/bin/busybox", CODE, 0x11, 1);
    made_comm(&made, 7, "ls", true, 20);
    made_mmap(&made, 7, "/bin/busybox", CODE, 0x11, 20);
    s.time = 10;
    made_sample(&made, &s);
    s.time = 30;
    made_sample(&made, &s);
    made_sample(&made, &s);
    made_end(&made);
}

static struct timed_sample list[8];

static void keep(void *arg, const struct timed_sample *s)
{
    struct profile *p = arg;
    if (p->count < ARRAY_SIZE(list))
        p->list[p->count++] = *s;
}

// Every image has these functions, as nm prints them.
static const char functions[] = "c0100000 T k\nc0100100 T l\nc0101000 T end\n";

static void *read_functions(void *arg UNUSED, const struct image *m UNUSED,
                            size_t *size, const char **problem UNUSED)
{
    *size = sizeof(functions) - 1;
    return memcpy(malloc(sizeof(functions)), functions, sizeof(functions));
}

static image_finder find = elves_read;

// Makes a file of these bytes; `name` is its path while `fd` is open.
static int make_file(char name[32], const u8 *bytes, size_t size)
{
    int fd = memfd_create("made", 0);

    assert_true(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    snprintf(name, 32, "/proc/self/fd/%d", fd);
    return fd;
}

// Returns an exporter's output for the file; NULL: the file cannot be read.
static char *exported(void (*export)(struct export *e), const u8 *bytes,
                      size_t size)
{
    static const struct view_filter all;
    char name[32];
    int fd = make_file(name, bytes, size);
    struct profile p = { .path = name, .list = list };
    char *text = NULL;
    size_t length;
    struct view v;

    assert_int_equal(samples_init(&p.samples, NULL), 0);
    p.samples.images.find = find;
    p.samples.images.find_arg = &p.elves;
    if (perf_read_events(&p.events, bytes, size) == NULL) {
        p.file_count = p.events.count;
        for (u32 i = 0; i < p.file_count; i++)
            p.files[i] =
                (struct perf_file){ .event = i, .sample = keep, .arg = &p };
    }
    if (p.file_count > 0 &&
        perf_read(p.files, p.file_count, &p.samples, bytes, size) == NULL) {
        profile_view(&v, &p, BY_SYMBOL, &all);
        struct export e = { .profile = &p, .view = &v, .filter = &all };
        e.out = open_memstream(&text, &length);
        export(&e);
        fclose(e.out);
        view_free(&v);
    }
    if (p.lines != NULL)
        lines_free(p.lines);
    free(p.lines);
    samples_free(&p.samples);
    elves_free(&p.elves);
    close(fd);
    return text;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        print_error("no '%s' in:\n%s\n", part, text);
    assert_non_null(strstr(text, part));
}

static void texts(void **state UNUSED)
{
    make();
    char *folded = exported(export_folded, made.bytes, made.size);
    assert_has(folded, "a:\"?(;0x8049010;0x8049020;0x8049010 3\n");
    assert_has(folded, "a:\"?(;0x8049020;0xc0100200_[k];0xc0100010_[k] 3\n");
    assert_has(folded, "[idle];0xc0100010_[k] 3\n");
    free(folded);

    char *json = exported(export_speedscope, made.bytes, made.size);
    assert_has(json, "{\"name\":\"[idle]\"}");
    assert_has(json, "\"name\":\"a;\\\"\\u000a( (task 7, thread 8)\"");
    assert_has(json, "\"name\":\"idle CPU 0\"");
    assert_has(json, "\"weights\":[3,3]");
    free(json);

    // The outermost function calls itself indirectly: its cost counts once.
    char *calls = exported(export_callgrind, made.bytes, made.size);
    assert_has(calls, "totals: 3 9\n");
    assert_has(calls, "cfn=0x8049020\ncalls=1 0\n0 1 3\n");
    assert_has(calls, "fn=[idle]\n0 0\n");
    assert_null(strstr(calls, "cfn=0x8049010\n"));
    free(calls);
}

static void several(void **state UNUSED)
{
    make_several();
    char *json = exported(export_speedscope, made.bytes, made.size);
    assert_has(json, "\"name\":\"p (task 7, thread 8), event-1\",\"unit\":"
                     "\"nanoseconds\",\"startValue\":0,\"endValue\":4,");
    assert_has(json, "\"name\":\"p (task 7, thread 8), cycles u\",\"unit\":"
                     "\"none\",\"startValue\":0,\"endValue\":2000,");
    assert_has(json, "\"weights\":[4]}");
    assert_has(json, "\"weights\":[1000,1000]}");
    free(json);

    char *calls = exported(export_callgrind, made.bytes, made.size);
    assert_has(calls, "events: event-1-Samples event-1-Nanoseconds "
                      "cycles?u-Samples cycles?u-Events\n");
    assert_has(calls, "summary: 1 4 2 2000\n");
    assert_has(calls, "calls=3 0\n0 1 4 2 2000\n0 1 4 2 2000\n\ntotals");
    assert_has(calls, "fn=0x8049010\n0 0\ncob=/bin/p\n");
    assert_has(calls, "totals: 1 4 2 2000\n");
    free(calls);
}

// A sample belongs to the program that its task ran at its time.
static void applets(void **state UNUSED)
{
    make_applets();
    char *folded = exported(export_folded, made.bytes, made.size);
    assert_has(folded, "sh;0x8049010;0x8049020;0x8049010 1\n");
    assert_has(folded, "ls;0x8049010;0x8049020;0x8049010 2\n");
    free(folded);
}

static void damage(void (*write)(struct export *e))
{
    for (size_t at = 0; at < made.size; at++) {
        free(exported(write, made.bytes, at));
        for (u32 bits = 1; bits < 256; bits = bits * 4 + 3) {
            made.bytes[at] ^= bits;
            free(exported(write, made.bytes, made.size));
            made.bytes[at] ^= bits;
        }
    }
}

static void write_gmon_of_kernel(struct export *e)
{
    e->program = "[kernel]";
    export_gmon(e);
}

// gmon.out describes one program, and needs its symbols.
static void gmon(void **state UNUSED)
{
    struct {
        char magic[4];
        u32 version, spare[3];
        u8 tag;
        u32 low, high, bins, rate;
        char dimension[15], letter;
        u16 count[128];
        u8 arc;
        u32 from, self, calls;
    } PACKED *out;

    make();
    find = read_functions;
    out = (void *)exported(write_gmon_of_kernel, made.bytes, made.size);
    assert_memory_equal(out->magic, "gmon\1\0\0\0", 8);
    assert_int_equal(out->low, 0xc0100000);
    assert_int_equal(out->high, 0xc0100100);
    assert_int_equal(out->bins, ARRAY_SIZE(out->count));
    for (u32 i = 0; i < out->bins; i++)
        assert_int_equal(out->count[i], i == 8 ? 2 * 3 : 0); // ns
    assert_int_equal(out->arc, 1);
    assert_int_equal(out->from, 0xc0100200);
    assert_int_equal(out->self, 0xc0100000);
    assert_int_equal(out->rate, 1000000000);
    assert_int_equal(out->calls, 3);
    free(out);
    damage(write_gmon_of_kernel);
    find = elves_read;
}

static void write_page_data(struct export *e)
{
    html_data(e->profile, e->out);
}

// The times of Firefox's profile begin at a date, if the file has one.
static void date(void **state UNUSED)
{
    static const struct perf_date known = { PERF_DATE_VERSION, 1,
                                            1700000000000000000, 5000000000 };

    make();
    char *json = exported(export_firefox, made.bytes, made.size);
    assert_has(json, "\"startTime\":0.000000,");
    free(json);
    made_own(&made, PERF_STROBE_FEATURE + PERF_FEATURE_CLOCK, &known,
             sizeof(known));
    made_end(&made);
    json = exported(export_firefox, made.bytes, made.size);
    assert_has(json, "\"startTime\":1699999995000.000000,");
    free(json);
}

static void damaged(void **state UNUSED)
{
    static void (*const writers[])(
        struct export * e) = { export_folded, export_speedscope, export_firefox,
                               export_callgrind, write_page_data };

    for (size_t w = 0; w < ARRAY_SIZE(writers); w++) {
        make();
        damage(writers[w]);
        make_several();
        damage(writers[w]);
    }
}

// --- ELF files --------------------------------------------------------------

// The parts of a file that elves.c reads: header, four sections, their names, a
// note.
struct elf {
    struct elf_header header;
    struct elf_section sections[4];
    char names[32];
    u32 note[3];
    char owner[4];
    u8 id[20];
};
enum { NOTHING, NAMES, LINES, NOTE };

static char folder[] = "/tmp/strobe-test-XXXXXX";
static char path[sizeof(folder) + 8];

static struct elf make_elf(u8 id, bool lines)
{
    struct elf e = { .header = { .type = ELF_TYPE_EXEC,
                                 .machine = ELF_MACHINE_386,
                                 .shoff = offsetof(struct elf, sections),
                                 .shentsize = sizeof(struct elf_section),
                                 .shnum = ARRAY_SIZE(e.sections),
                                 .shstrndx = NAMES },
                     .note = { 4, 20, 3 },
                     .owner = "GNU",
                     .id = { id } };
    memcpy(e.header.ident, ELF_MAGIC "\1\1\1", 7);
    memcpy(e.names, "\0.debug_line", sizeof("\0.debug_line"));
    e.sections[NAMES].offset = offsetof(struct elf, names);
    e.sections[NAMES].size = sizeof(e.names);
    e.sections[LINES].name = lines ? 1 : 0;
    e.sections[NOTE].type = 7;
    e.sections[NOTE].offset = offsetof(struct elf, note);
    e.sections[NOTE].size = sizeof(e) - offsetof(struct elf, note);
    return e;
}

static void put_file(const char *name, const void *bytes, size_t size)
{
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
}

static const char *problem;

// Returns the name of the file that is chosen for /bin/p with a build id that
// begins with `id` (0: without one).
static const char *taken(u8 id)
{
    static char found[sizeof(path)], why[512];
    struct image m = { .path = (char *)"/bin/p",
                       .build_id = { id },
                       .build_id_size = id != 0 ? 20 : 0 };
    struct elves e;
    elves_init(&e, NULL, folder);
    const char *file = elves_path(&e, &m, &problem);
    snprintf(found, sizeof(found), "%s", file != NULL ? file : "none");
    snprintf(why, sizeof(why), "%s", problem != NULL ? problem : "");
    problem = why;
    elves_free(&e);
    return strrchr(found, '/') != NULL ? strrchr(found, '/') + 1 : found;
}

static void found(void **state UNUSED)
{
    struct elf plain = make_elf(1, false), lines = make_elf(1, true),
               other = make_elf(2, true);
    put_file("p", &other, sizeof(other));
    assert_string_equal(taken(2), "p");
    assert_string_equal(taken(0), "p"); // by its name
    assert_string_equal(taken(1), "none");
    assert_has(problem, "it was build id 01000000");
    assert_has(problem, "/p has 02000000");
    put_file("q", &plain, sizeof(plain));
    assert_string_equal(taken(1), "q"); // by its build id
    put_file("r", &lines, sizeof(lines));
    assert_string_equal(taken(1), "r"); // it has line information
    unlink(path);
    put_file("q", "", 0);
    unlink(path);
    put_file("p", "", 0);
    unlink(path);
    assert_string_equal(taken(1), "none");
    assert_has(problem, "no file with its build id");
}

static void damaged_elf(void **state UNUSED)
{
    struct elf e = make_elf(1, true);
    u8 *bytes = (u8 *)&e;
    for (size_t at = 0; at < sizeof(e); at++) {
        put_file("p", bytes, at);
        assert_string_equal(taken(1), "none");
        for (u32 bits = 1; bits < 256; bits = bits * 4 + 3) {
            bytes[at] ^= bits;
            put_file("p", bytes, sizeof(e));
            taken(1);
            bytes[at] ^= bits;
        }
    }
    unlink(path);
}

static int make_folder(void **state UNUSED)
{
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state UNUSED)
{
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),   cmocka_unit_test(several),
        cmocka_unit_test(applets), cmocka_unit_test(damaged),
        cmocka_unit_test(date),    cmocka_unit_test(gmon),
        cmocka_unit_test(found),   cmocka_unit_test(damaged_elf),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
