// user/libread/cfi.c, cfi_sections.c and call_chain.c: the same rows as
// binutils' readelf in programs of the image; compressed and damaged sections;
// chains through frames of all kinds.
#include "test.h"

#include <unistd.h>

#include "user/libread/call_chain.h"
#include "user/libread/cfi.h"

static u8 *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *size = ftell(f);
    rewind(f);
    u8 *bytes = malloc(*size);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

struct program {
    u8 *image;
    struct cfi_section sections[CFI_SECTIONS];
    u8 *unpacked[CFI_SECTIONS];
    struct cfi_entry *entries;
    u32 count;
};

static bool load(struct program *p, const char *path)
{
    size_t size;
    *p = (struct program){ .image = read_file(path, &size) };
    if (!p->image)
        return false;
    u32 n = cfi_sections(p->image, size, p->sections), total = 0;
    for (u32 i = 0; i < n; i++) {
        if (p->sections[i].unpacked_size) {
            p->unpacked[i] = malloc(p->sections[i].unpacked_size);
            cfi_unpack(&p->sections[i], p->unpacked[i]);
        }
    }
    for (u32 i = 0; i < n; i++)
        total += cfi_entries(&p->sections[i], i, NULL, 0);
    p->entries = malloc(total * sizeof(*p->entries));
    for (u32 i = 0; i < n; i++)
        p->count += cfi_entries(&p->sections[i], i, p->entries + p->count,
                                total - p->count);
    p->count = cfi_sort(p->entries, p->count);
    return true;
}

static void unload(struct program *p)
{
    free(p->image);
    free(p->unpacked[0]);
    free(p->unpacked[1]);
    free(p->entries);
}

// Converts the columns of readelf's output to a row.
static bool parse(const char *cfa, const char *ebp, struct cfi_row *out)
{
    char reg[4];
    *out = (struct cfi_row){ 0 };
    if (sscanf(cfa, "%3s", reg) != 1 ||
        sscanf(cfa + 3, "%d", &out->cfa_offset) != 1)
        return false;
    out->by_ebp = !strcmp(reg, "ebp");
    if (!out->by_ebp && strcmp(reg, "esp"))
        return false;
    out->ebp_saved = ebp[0] == 'c';
    if (out->ebp_saved)
        out->ebp_offset = atoi(ebp + 1);
    return true;
}

static u32 compare_with_readelf(const struct program *p, const char *path)
{
    char command[200], line[400], *word[16];
    u32 compared = 0, words = 0, ebp_column = 0;
    bool in_function = false;
    snprintf(command, sizeof(command),
             "i686-linux-gnu-readelf --debug-dump=frames-interp %s 2>/dev/null",
             path);
    FILE *f = popen(command, "r");
    while (fgets(line, sizeof(line), f)) {
        if (strstr(line, " CIE ") || strstr(line, " FDE "))
            in_function = strstr(line, " FDE ");
        words = 0;
        for (char *w = strtok(line, " \n"); w && words < 16;
             w = strtok(NULL, " \n"))
            word[words++] = w;
        if (words && !strcmp(word[0], "LOC")) {
            ebp_column = 0;
            for (u32 i = 0; i < words; i++) {
                if (!strcmp(word[i], "ebp"))
                    ebp_column = i;
            }
            continue;
        }
        struct cfi_row want, got;
        if (!in_function || words < 3 || strlen(word[0]) != 8 ||
            strcmp(word[words - 1], "c-4") || // _start has no caller
            !parse(word[1], ebp_column ? word[ebp_column] : "u", &want))
            continue;
        u32 pc = strtoul(word[0], NULL, 16);
        const struct cfi_entry *e = cfi_find(p->entries, p->count, pc);
        if (!e) // a row at the end of its function, or an empty one
            continue;
        assert_true(cfi_row_at(&p->sections[e->section], e, pc, &got));
        assert_int_equal(got.by_ebp, want.by_ebp);
        assert_int_equal(got.cfa_offset, want.cfa_offset);
        assert_int_equal(got.ebp_saved, want.ebp_saved);
        if (want.ebp_saved)
            assert_int_equal(got.ebp_offset, want.ebp_offset);
        compared++;
    }
    pclose(f);
    return compared;
}

static void test_as_readelf(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "build/busybox/busybox",
        "build/lua/lua",
        "build/guest/threads",
        "build/kernel.elf",
    };
    for (u32 i = 0; i < ARRAY_SIZE(paths); i++) {
        struct program p;
        assert_true(load(&p, paths[i]));
        u32 compared = compare_with_readelf(&p, paths[i]);
        printf("# %s: %u functions, %u rows\n", paths[i], p.count, compared);
        assert_true(compared > p.count);
        unload(&p);
    }
}

// Compressed sections, as in Go's programs, have the same contents.
static void test_compressed(void **state)
{
    (void)state;
    char path[] = "/tmp/test_cfi.XXXXXX", command[200];
    struct program plain, packed;
    close(mkstemp(path));
    snprintf(command, sizeof(command),
             "i686-linux-gnu-objcopy --compress-debug-sections=zlib "
             "build/guest/threads %s",
             path);
    assert_int_equal(system(command), 0);
    assert_true(load(&plain, "build/guest/threads"));
    assert_true(load(&packed, path));
    unlink(path);
    assert_true(packed.unpacked[0] || packed.unpacked[1]);
    assert_int_equal(packed.count, plain.count);
    for (u32 i = 0; i < CFI_SECTIONS; i++) {
        assert_int_equal(packed.sections[i].size, plain.sections[i].size);
        assert_memory_equal(packed.sections[i].bytes, plain.sections[i].bytes,
                            plain.sections[i].size);
    }
    unload(&plain);
    unload(&packed);
}

// 36 letters and a "!".
static const u8 stream[] = { 0x78, 0x01, 0x4b, 0x4c, 0x4a, 0x4e, 0x24,
                             0x84, 0x14, 0x01, 0x0c, 0xf9, 0x0d, 0xea };
#define CONTENTS 37u

// Unpacks a copy of the stream, with `damage` bytes of it changed, to a block
// of `size` bytes. ASan guards the ends of both. Returns the section's size.
static u32 unpack(u32 bytes, u32 size, u32 damage)
{
    u8 *copy = malloc(bytes), *out = malloc(size);
    memcpy(copy, stream, bytes);
    for (u32 i = 0; i < damage; i++)
        copy[random_below(bytes)] = random_u64();
    struct cfi_section s = { copy, bytes, 0, false, size };
    cfi_unpack(&s, out);
    free(copy);
    free(out);
    return s.size;
}

static void test_damaged_stream(void **state)
{
    (void)state;
    u32 found = 0, rounds = 20000;
    for (u32 size = 1; size < 2 * CONTENTS; size++)
        assert_int_equal(unpack(sizeof(stream), size, 0),
                         size == CONTENTS ? CONTENTS : 0);
    for (u32 bytes = 0; bytes < sizeof(stream); bytes++)
        assert_int_equal(unpack(bytes, CONTENTS, 0), 0);
    for (u32 i = 0; i < rounds; i++)
        found += !unpack(sizeof(stream), CONTENTS, 1 + i % 4);
    assert_true(found > rounds - rounds / 50);
}

// Decodes every 7th entry of a section at a random pc.
static void ask_all(const struct cfi_section *s)
{
    static struct cfi_entry e[4096];
    struct cfi_row row;
    u32 n = MIN(cfi_entries(s, 0, e, ARRAY_SIZE(e)), (u32)ARRAY_SIZE(e));
    n = cfi_sort(e, n);
    for (u32 i = 0; i < n; i += 7)
        cfi_row_at(s, &e[i], e[i].start + random_below(e[i].end - e[i].start),
                   &row);
}

static void test_damage(void **state)
{
    (void)state;
    struct program p;
    assert_true(load(&p, "build/guest/threads"));
    for (u32 round = 0; round < 300; round++) {
        struct cfi_section s = p.sections[round & 1];
        s.size = MIN(s.size, 4096u);
        u8 *copy = malloc(s.size); // ASan guards its end
        memcpy(copy, s.bytes, s.size);
        s.bytes = copy;
        if (round % 3 == 0)
            s.size = random_below(s.size);
        for (u32 i = 0; s.size && i < 1 + round / 20; i++)
            copy[random_below(s.size)] = random_u64();
        ask_all(&s);
        free(copy);
    }
    unload(&p);
}

// A function with a row for each of its states: before, in and after its frame,
// as in `push %ebp; mov %esp,%ebp; ...; pop %ebp; ret`.
static const u8 frames[] = {
    // CIE
    16, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 1, 0x7c, 8, 0x0c, 4, 4, 0x88, 1,
    0, 0,
    // FDE 0x1000..0x1010
    28, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x10, 0, 0, 0x10, 0, 0, 0, 0x41, 0x0e, 8,
    0x85,
    2, // 0x1001: esp+8, ebp at c-8
    0x42, 0x0d,
    5, // 0x1003: ebp+8
    0x49, 0xc5, 0x0c, 4,
    4, // 0x100c: esp+4
    0x41, 0x85,
    2, // the same with ebp at c-8, as clang leaves it
};

#define ESP 0xbfff0000u

static u32 load_bias; // of the program

static u32 complete(u32 pc, u32 frame, const u32 *words, u32 *out)
{
    struct cfi_section section = { frames, sizeof(frames), 0, false, 0 };
    struct cfi_entry entry;
    assert_int_equal(cfi_entries(&section, 0, &entry, 1), 1);
    static struct row_cache rows;
    struct cfi_program p = { { section }, &entry, 1, 1 };
    u32 stack[4] = { ESP, frame, words[0], words[1] };
    u32 chain[3] = { load_bias + pc, 0x5555, 0x6666 };
    struct chain_sample s = { chain, 3, stack, 4, 0, NULL, 0 };
    u32 proven;
    struct chain_code code = { .program = &p, .load_bias = load_bias };
    return chain_complete(&rows, &code, &s, out, &proven);
}

static void test_chain(void **state)
{
    (void)state;
    u32 out[CHAIN_MAX];
    u32 at_entry[2] = { 0x4444, 0 }, pushed[2] = { 0xbfff0100, 0x4444 };
    // At the first instruction and at the return, the return address is on top.
    assert_int_equal(complete(0x1000, 0xbfff0100, at_entry, out), 4);
    assert_int_equal(out[0], load_bias + 0x1000);
    assert_int_equal(out[1], 0x4444);
    assert_int_equal(out[2], 0x5555);
    assert_int_equal(complete(0x100c, 0xbfff0100, at_entry, out), 4);
    assert_int_equal(out[1], 0x4444);
    assert_int_equal(complete(0x100d, 0xbfff0100, at_entry, out), 4);
    assert_int_equal(out[1], 0x4444);
    assert_int_equal(out[2], 0x5555);
    // ebp is pushed, but is still the caller's.
    assert_int_equal(complete(0x1001, 0xbfff0100, pushed, out), 4);
    assert_int_equal(out[1], 0x4444);
    // ebp is this function's: the chain is already complete.
    assert_int_equal(complete(0x1002, ESP, pushed, out), 3);
    assert_int_equal(out[1], 0x5555);
    assert_int_equal(complete(0x1003, ESP, pushed, out), 3);
    // The pc is outside all functions: no caller is added.
    assert_int_equal(complete(0x2000, 0xbfff0100, at_entry, out), 3);
}

// At any load bias: rows are found by addresses in the file.
static void test_moved(void **state)
{
    for (u32 i = 0; i < 10; i++) {
        load_bias = (u32)random_u64() & ~0xfffu;
        test_chain(state);
    }
    load_bias = 0;
}

// 0x2000: a function that realigns its stack (lea 4(%esp), %ecx; and $-16,
// %esp; push -4(%ecx); push %ebp; mov %esp, %ebp; push %ecx), and 0x3000: one
// without a frame pointer.
static const u8 realigned[] = {
    // CIE
    16, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 1, 0x7c, 8, 0x0c, 4, 4, 0x88, 1,
    0, 0,
    // FDE 0x2000..0x2010
    32, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x20, 0, 0, 0x10, 0, 0, 0, //
    0x44, 0x0c, 1, 0,                                         // 0x2004: ecx+0
    0x44, 0x10, 5, 2, 0x75, 0,                   // 0x2008: ebp at ebp+0
    0x42, 0x0f, 3, 0x75, 0x7c, 0x06, 0, 0, 0, 0, // 0x200a: *(ebp-4)
    // FDE 0x3000..0x3010: esp+80
    20, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x30, 0, 0, 0x10, 0, 0, 0, 0x0e, 80, 0, 0, 0,
    0, 0, 0
};

// The chain from `pc`, with so many words of the stack from `words` on, of
// which [8] is at ebp.
static u32 complete_deep(u32 pc, const u32 *words, u32 count, u32 flags,
                         u32 *out)
{
    static struct row_cache rows;
    struct cfi_section section = { realigned, sizeof(realigned), 0, false, 0 };
    struct cfi_entry entries[2];
    assert_int_equal(cfi_entries(&section, 0, entries, 2), 2);
    struct cfi_program p = { { section }, entries, 2, 1 };
    u32 stack[64] = { ESP, ESP + 4 * 8 }, proven;
    memcpy(stack + 2, words, count * sizeof(*words));
    u32 chain[2] = { pc, 0x3008 };
    struct chain_sample s = { chain, 2, stack, 2 + count, flags, NULL, 0 };
    struct chain_code code = { .program = &p, .entry = 0x4440 };
    return chain_complete(&rows, &code, &s, out, &proven);
}

// The caller of a realigned function has its stack pointer at the saved CFA, so
// that its own caller is found, too.
static void test_realigned(void **state)
{
    (void)state;
    u32 out[CHAIN_MAX], words[40];
    for (u32 i = 0; i < ARRAY_SIZE(words); i++)
        words[i] = 0x9999;
    words[7] = ESP + 4 * 14;
    words[8] = 0; // the caller's ebp
    words[9] = words[13] = 0x3008;
    words[14 + 19] = 0x4444;
    assert_int_equal(complete_deep(0x200c, words, 40, 0, out), 3);
    assert_int_equal(out[1], 0x3008);
    assert_int_equal(out[2], 0x4444);
    // A CFA below the stack pointer is not one.
    words[7] = ESP - 4 * 14;
    assert_int_equal(complete_deep(0x200c, words, 40, 0, out), 2);
    // There the CFA is in ecx, which a sample does not have: who calls is not
    // known, and not the caller of the frame that ebp still has, either.
    assert_int_equal(complete_deep(0x2005, words, 40, 0, out), 3);
    assert_int_equal(out[1], CHAIN_BROKEN);
    assert_int_equal(out[2], 0x3008);
}

// Whether a chain ends for want of a longer copy of the stack.
static void test_short_copy(void **state)
{
    (void)state;
    u32 out[CHAIN_MAX], words[40] = { [19] = 0x4444 };
    assert_int_equal(
        complete_deep(0x3004, words, 20, SPROFILE_F_USER_MORE, out), 2);
    assert_int_equal(out[1], 0x4444);
    complete_deep(0x3004, words, 19, SPROFILE_F_USER_MORE, out);
    assert_int_equal(out[1], CHAIN_SHORT);
    complete_deep(0x3004, words, 19, 0, out); // that was all of the stack
    assert_int_equal(out[1], CHAIN_BROKEN);
}

// Nested signals: the inner handler's signal interrupted the restorer of the
// outer handler.
static void test_restorer(void **state)
{
    (void)state;
    enum { HANDLER = 0x1000, RESTORER = 0x2000, INTERRUPTED = 0x3000 };
    const struct sprofile_signal signals[2] = {
        { .frame = ESP + 64,
          .back = RESTORER,
          .eip = RESTORER + 6,
          .esp = ESP + 128,
          .ebp = ESP + 256,
          .from = ESP + 256 },
        { .frame = ESP + 128,
          .back = RESTORER,
          .eip = INTERRUPTED,
          .esp = ESP + 192,
          .ebp = ESP + 256,
          .from = ESP + 256 },
    };
    u32 stack[2] = { ESP, ESP + 16 };
    u32 pcs[4] = { HANDLER, RESTORER, 0x5555, 0x6666 };
    struct chain_sample s = { pcs,     4, stack, 2, SPROFILE_F_USER_SIGNALS,
                              signals, 2 };
    const u32 expected[] = { HANDLER,         RESTORER + 1, RESTORER + 7,
                             INTERRUPTED + 1, 0x5555,       0x6666 };
    const struct chain_code code = { 0 };
    u32 out[CHAIN_MAX], proven;
    assert_int_equal(chain_complete(NULL, &code, &s, out, &proven), 6);
    assert_memory_equal(out, expected, sizeof(expected));
    // The sample is in the restorer of the inner handler.
    pcs[0] = RESTORER + 8;
    pcs[1] = 0x5555;
    pcs[2] = 0x6666;
    stack[1] = ESP + 256;
    s.depth = 3;
    assert_int_equal(chain_complete(NULL, &code, &s, out, &proven), 5);
    assert_int_equal(out[0], RESTORER);
    assert_memory_equal(out + 1, expected + 2, 4 * sizeof(*expected));
}

int main(void)
{
    random_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_readelf),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_restorer),
        cmocka_unit_test(test_compressed),
        cmocka_unit_test(test_damaged_stream),
        cmocka_unit_test(test_realigned),
        cmocka_unit_test(test_short_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
