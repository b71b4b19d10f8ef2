// user/libread/row_cache.c: its rows equal those of the sections at every pc of
// programs of the image, also of damaged and replaced programs. Chains are the
// same with and without cached rows.
//
// link: user/libprofile/images_read.c
// link: user/libprofile/images.c user/libprofile/mapping.c
// link: user/libprofile/user_chain.c
#include "test.h"

#include "user/libprofile/user_chain.h"
#include "user/libread/call_chain.h"

#define ESP 0xbfff0000u
#define STACK_WORDS 14u

static struct row_cache shared, fresh;

struct program {
    u8 *image;
    size_t size;
    struct cfi_entry *entries;
    struct cfi_program cfi;
};

static u8 *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = ftell(f);
    rewind(f);
    u8 *bytes = malloc(*size);
    assert_int_equal(fread(bytes, 1, *size, f), *size);
    fclose(f);
    return bytes;
}

// Collects the entries of all sections, sorted.
static void find_entries(struct program *p)
{
    u32 room = 0, count = 0;
    for (u32 i = 0; i < CFI_SECTIONS; i++) {
        if (p->cfi.sections[i].size > 0)
            room += cfi_entries(&p->cfi.sections[i], i, NULL, 0);
    }
    p->entries = malloc((room + 1) * sizeof(*p->entries));
    for (u32 i = 0; i < CFI_SECTIONS; i++) {
        if (p->cfi.sections[i].size > 0)
            count += cfi_entries(&p->cfi.sections[i], i, p->entries + count,
                                 room - count);
    }
    p->cfi.entries = p->entries;
    p->cfi.count = cfi_sort(p->entries, count);
}

static void load(struct program *p, const char *path, u32 id)
{
    *p = (struct program){ .cfi = { .id = id } };
    p->image = read_file(path, &p->size);
    cfi_sections(p->image, p->size, p->cfi.sections);
    find_entries(p);
}

static void unload(struct program *p)
{
    free(p->image);
    free(p->entries);
}

static void assert_same_row(const struct program *p, u32 pc)
{
    const struct cfi_row *got = row_cache_find(&shared, &p->cfi, pc);
    const struct cfi_entry *e = cfi_find(p->cfi.entries, p->cfi.count, pc);
    struct cfi_row want;
    if (!e || !cfi_row_at(&p->cfi.sections[e->section], e, pc, &want)) {
        assert_null(got);
        return;
    }
    assert_non_null(got);
    assert_true(got->start <= pc && pc < got->end);
    assert_int_equal(got->by_ebp, want.by_ebp);
    assert_int_equal(got->cfa_loaded, want.cfa_loaded);
    assert_int_equal(got->ebp_in_frame, want.ebp_in_frame);
    assert_int_equal(got->cfa_offset, want.cfa_offset);
    assert_int_equal(got->ebp_saved, want.ebp_saved);
    assert_int_equal(got->ebp_offset, want.ebp_offset);
}

static u32 first_pc(const struct program *p)
{
    return p->cfi.entries[0].start;
}

static u32 end_pc(const struct program *p)
{
    return p->cfi.entries[p->cfi.count - 1].end;
}

// Every pc, also between functions, in ascending, descending and random order,
// so that rows replace each other.
static void test_every_pc(void **state UNUSED)
{
    static const char *const paths[] = { "build/lua/lua", "build/guest/threads",
                                         "build/busybox/busybox" };
    memset(&shared, 0, sizeof(shared));
    for (u32 i = 0; i < ARRAY_SIZE(paths); i++) {
        struct program p;
        load(&p, paths[i], i + 1);
        u32 start = first_pc(&p), end = end_pc(&p);
        printf("# %s: %u functions, %u bytes\n", paths[i], p.cfi.count,
               end - start);
        assert_true(p.cfi.count > 100);
        for (u32 pc = start - 1; pc <= end; pc++)
            assert_same_row(&p, pc);
        for (u32 pc = end; pc >= start; pc -= 1 + random_below(5))
            assert_same_row(&p, pc);
        for (u32 n = 0; n < 100000; n++)
            assert_same_row(&p, start + random_below(end - start));
        unload(&p);
    }
}

static void fill_sample(struct chain_sample *s, u32 *pc, u32 *stack,
                        const struct program *p)
{
    u32 start = first_pc(p), bytes = end_pc(p) - start;
    stack[0] = ESP;
    stack[1] = ESP + 4 * random_below(STACK_WORDS);
    for (u32 i = 2; i < STACK_WORDS; i++)
        stack[i] = random_below(4) ? start + random_below(bytes) : 0;
    pc[1] = start;
    *s = (struct chain_sample){ pc, 2, stack, STACK_WORDS, 0, NULL, 0 };
}

static u32 complete(struct row_cache *rows, const struct program *p,
                    const struct chain_sample *s, u32 *out)
{
    u32 proven;
    memset(out, 0, CHAIN_MAX * sizeof(*out));
    struct chain_code code = { .program = &p->cfi };
    memcpy(&code.entry, p->image + 24, 4); // e_entry
    return chain_complete(rows, &code, s, out, &proven);
}

// Chains with the rows of all earlier samples equal those with an empty cache.
static void test_chains(void **state UNUSED)
{
    static const char *const paths[] = { "build/lua/lua",
                                         "build/guest/threads" };
    u32 longer = 0;
    memset(&shared, 0, sizeof(shared));
    for (u32 i = 0; i < ARRAY_SIZE(paths); i++) {
        struct program p;
        load(&p, paths[i], i + 1);
        for (u32 at = first_pc(&p); at < end_pc(&p); at++) {
            u32 pc[2] = { at }, stack[STACK_WORDS];
            u32 with[CHAIN_MAX], without[CHAIN_MAX];
            struct chain_sample s;
            fill_sample(&s, pc, stack, &p);
            memset(&fresh, 0, sizeof(fresh));
            u32 n = complete(&fresh, &p, &s, without);
            assert_int_equal(complete(&shared, &p, &s, with), n);
            assert_memory_equal(with, without, sizeof(with));
            longer += n > 2;
        }
        unload(&p);
    }
    printf("# %u chains got callers\n", longer);
    assert_true(longer > 10000);
}

// Damaged sections: rows that go backwards, invalid instructions, premature
// ends.
static void test_damage(void **state UNUSED)
{
    struct program p;
    memset(&shared, 0, sizeof(shared));
    load(&p, "build/guest/threads", 1);
    for (u32 round = 0; round < 1000; round++) {
        struct program damaged = { .cfi = { .id = round + 1 } };
        struct cfi_section *s = &damaged.cfi.sections[0];
        *s = p.cfi.sections[round & 1];
        s->size = MIN(s->size, 4096u);
        u8 *copy = malloc(s->size); // ASan guards its end
        memcpy(copy, s->bytes, s->size);
        s->bytes = copy;
        if (round % 3 == 0)
            s->size = random_below(s->size);
        for (u32 i = 0; s->size && i < 1 + round / 8; i++)
            copy[random_below(s->size)] =
                random_below(4) ? random_u64() : random_below(5);
        if (s->size > 0)
            find_entries(&damaged);
        for (u32 i = 0; i < damaged.cfi.count; i++) {
            const struct cfi_entry *e = &damaged.cfi.entries[i];
            u32 bytes = MIN(e->end - e->start, 64u);
            for (u32 n = 0; n < 2 * bytes; n++)
                assert_same_row(&damaged, e->start + random_below(bytes));
        }
        free(damaged.entries);
        free(copy);
    }
    unload(&p);
}

// A function whose rows are not in the order of their addresses, as only in a
// damaged section: the row of a pc is the one where a decoder stops after it
// has passed the pc.
static void test_backwards(void **state UNUSED)
{
    static const u8 section[] = {
        // CIE: esp+4, the return address at c-4
        16,
        0,
        0,
        0,
        0xff,
        0xff,
        0xff,
        0xff, //
        1,
        0,
        1,
        0x7c,
        8,
        0x0c,
        4,
        4,
        0x88,
        1,
        0,
        0,
        // FDE 0x1000..0x1010
        32,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0x00,
        0x10,
        0,
        0,
        0x10,
        0,
        0,
        0, //
        0x48,
        0x0e,
        8, // 0x1008: esp+8
        1,
        0x02,
        0x10,
        0,
        0, // set_loc 0x1002
        0x0e,
        12, // esp+12
        0x4a,
        0x0e,
        16, // 0x100c: esp+16
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    };
    struct program p = { .cfi = { .id = 1 } };
    p.cfi.sections[0] =
        (struct cfi_section){ section, sizeof(section), 0, false, 0 };
    find_entries(&p);
    assert_int_equal(p.cfi.count, 1);
    for (u32 first = 0; first < 16; first++) {
        memset(&shared, 0, sizeof(shared));
        assert_same_row(&p, 0x1000 + first);
        for (u32 pc = 0x1000; pc < 0x1010; pc++)
            assert_same_row(&p, pc);
    }
    assert_int_equal(row_cache_find(&shared, &p.cfi, 0x1004)->cfa_offset, 4);
    assert_int_equal(row_cache_find(&shared, &p.cfi, 0x1009)->cfa_offset, 12);
    free(p.entries);
}

// --- images -----------------------------------------------------------------

static const char *now_at_path;

static void *read_now(const char *path UNUSED, size_t *size)
{
    return now_at_path ? read_file(now_at_path, size) : NULL;
}

static u32 add_image(struct images *i, const char *file)
{
    struct mapping m;
    now_at_path = file;
    assert_true(mapping_read(&m, file));
    assert_true(m.build_id_size > 0);
    u32 n = images_add(i, "/bin/prog", m.build_id, m.build_id_size);
    assert_true(images_load(i, n)->frames.count > 0);
    return n;
}

// Two programs at the same path, with code at the same addresses: neither gets
// the other's rows. The list of images grows beyond its initial capacity.
static void test_replaced(void **state UNUSED)
{
    static const char *const files[] = { "build/lua/lua",
                                         "build/guest/threads" };
    struct program p[2];
    struct images images;
    u32 number[2], differ = 0;

    memset(&shared, 0, sizeof(shared));
    assert_int_equal(images_init(&images, read_now), 0);
    for (u32 i = 0; i < 2; i++) {
        load(&p[i], files[i], i + 1);
        number[i] = add_image(&images, files[i]);
    }
    assert_int_not_equal(number[0], number[1]);
    now_at_path = NULL;
    for (u32 i = 0; i < 100; i++) {
        char path[20];
        snprintf(path, sizeof(path), "/none/%u", i);
        assert_int_not_equal(images_add(&images, path, NULL, 0), IMAGE_UNKNOWN);
    }
    for (u32 at = first_pc(&p[1]); at < end_pc(&p[1]); at++) {
        u32 pc[2] = { at }, stack[STACK_WORDS], n[2], proven;
        u32 got[USER_CHAIN_MAX], want[2][CHAIN_MAX];
        struct chain_sample c;
        fill_sample(&c, pc, stack, &p[1]);
        struct stream_sample s = { .user = pc,
                                   .user_depth = 2,
                                   .stack = stack,
                                   .stack_words = STACK_WORDS };
        for (u32 i = 0; i < 2; i++) {
            struct user_code code = { .image = number[i] };
            memset(&fresh, 0, sizeof(fresh));
            n[i] = complete(&fresh, &p[i], &c, want[i]);
            assert_int_equal(user_chain(&images, &code, &s, got, &proven),
                             n[i]);
            assert_memory_equal(got, want[i], n[i] * sizeof(got[0]));
        }
        differ += n[0] != n[1] || memcmp(want[0], want[1], sizeof(want[0]));
    }
    printf("# %u chains differ between the programs\n", differ);
    assert_true(differ > 100);
    images_free(&images);
    unload(&p[0]);
    unload(&p[1]);
}

int main(void)
{
    random_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pc), cmocka_unit_test(test_chains),
        cmocka_unit_test(test_damage),   cmocka_unit_test(test_backwards),
        cmocka_unit_test(test_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
