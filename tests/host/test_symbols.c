// user/libread/symbols.c (and user/libread/sort.c): synthetic ELF files, also
// truncated and damaged; tools/strobe-src/gprof_names.c.
// link: tools/strobe-src/gprof_names.c
#include "test.h"

#include "lib/elf.h"
#include "tools/strobe-src/gprof_names.h"
#include "user/libread/sort.h"
#include "user/libread/symbols.h"

#define TEXT 0x08048000u
#define TEXT_SIZE 0x1000u
#define DATA_AT 0x0804a000u

#define FUNC ELF_STT_FUNC
#define LABEL ELF_STT_NOTYPE
#define OBJECT 1
#define LOCAL (0 << 4)
#define GLOBAL (1 << 4)
#define WEAK (2 << 4)

enum { NO_SECTION, TEXT_SECTION, DATA_SECTION, SYMBOLS, STRINGS, SECTIONS };

struct entry {
    const char *name;
    u32 value, size;
    u8 info;
    u16 section;
};

struct file {
    u8 *bytes;
    size_t size;
};

// Header, section headers, symbols, strings, in this order.
static struct file make_elf(const struct entry *entries, u32 count)
{
    size_t strings_size = 1;
    for (u32 i = 0; i < count; i++)
        strings_size += strlen(entries[i].name) + 1;

    u32 sections_at = sizeof(struct elf_header);
    u32 symbols_at = sections_at + SECTIONS * sizeof(struct elf_section);
    u32 strings_at = symbols_at + (count + 1) * sizeof(struct elf_symbol);
    struct file f = { calloc(1, strings_at + strings_size),
                      strings_at + strings_size };

    struct elf_header *h = (void *)f.bytes;
    *h = (struct elf_header){ .type = ELF_TYPE_EXEC,
                              .machine = ELF_MACHINE_386,
                              .version = 1,
                              .shoff = sections_at,
                              .ehsize = sizeof(*h),
                              .shentsize = sizeof(struct elf_section),
                              .shnum = SECTIONS };
    memcpy(h->ident, ELF_MAGIC "\1\1\1", 7);

    struct elf_section *s = (void *)(f.bytes + sections_at);
    s[TEXT_SECTION] = (struct elf_section){
        .type = 1, .flags = 6, .addr = TEXT, .size = TEXT_SIZE
    };
    s[DATA_SECTION] = (struct elf_section){
        .type = 1, .flags = 3, .addr = DATA_AT, .size = 0x1000
    };
    s[SYMBOLS] = (struct elf_section){ .type = ELF_SHT_SYMTAB,
                                       .offset = symbols_at,
                                       .size = strings_at - symbols_at,
                                       .link = STRINGS,
                                       .entsize = sizeof(struct elf_symbol) };
    s[STRINGS] = (struct elf_section){ .type = 3,
                                       .offset = strings_at,
                                       .size = strings_size };

    struct elf_symbol *symbol = (void *)(f.bytes + symbols_at);
    char *name = (char *)f.bytes + strings_at + 1;
    for (u32 i = 0; i < count; i++) {
        const struct entry *e = &entries[i];
        *++symbol =
            (struct elf_symbol){ .name = name - (char *)f.bytes - strings_at,
                                 .value = e->value,
                                 .size = e->size,
                                 .info = e->info,
                                 .shndx = e->section };
        strcpy(name, e->name);
        name += strlen(name) + 1;
    }
    return f;
}

static struct symbols symbols;
static struct symbol *table;

static enum symbols_status read_image(const void *image, size_t size)
{
    u32 room = symbols_room(image, size);
    free(table);
    table = malloc(room * sizeof(*table) + 1);
    return symbols_read(&symbols, image, size, table, room);
}

// The name found for an address; "-" for none.
static const char *at(u32 address)
{
    static char name[64];
    const struct symbol *s = symbols_find(&symbols, address);
    snprintf(name, sizeof(name), "%.*s", s != NULL ? (int)s->name_size : 1,
             s != NULL ? s->name : "-");
    return name;
}

static void read_entries(const struct entry *entries, u32 count)
{
    struct file f = make_elf(entries, count);
    static u8 *kept; // names point into the image
    free(kept);
    kept = f.bytes;
    assert_int_equal(read_image(f.bytes, f.size), SYMBOLS_OK);
}

static void functions(void **state UNUSED)
{
    const struct entry entries[] = {
        { "b", TEXT + 0x80, 0x10, GLOBAL | FUNC, TEXT_SECTION },
        { "a", TEXT + 0x40, 0x20, GLOBAL | FUNC, TEXT_SECTION },
    };
    read_entries(entries, ARRAY_SIZE(entries));
    assert_string_equal(at(TEXT), "-");
    assert_string_equal(at(TEXT + 0x3f), "-");
    assert_string_equal(at(TEXT + 0x40), "a");
    assert_string_equal(at(TEXT + 0x5f), "a");
    assert_string_equal(at(TEXT + 0x60), "-");
    assert_string_equal(at(TEXT + 0x8f), "b");
    assert_string_equal(at(TEXT + 0x90), "-");
    assert_string_equal(at(0), "-");
    assert_string_equal(at(UINT32_MAX), "-");
}

static void without_size(void **state UNUSED)
{
    const struct entry entries[] = {
        { "first", TEXT + 0x10, 0, GLOBAL | FUNC, TEXT_SECTION },
        { "second", TEXT + 0x30, 0, GLOBAL | LABEL, TEXT_SECTION },
        { "too_long", TEXT + 0xff0, 0x1000, GLOBAL | FUNC, TEXT_SECTION },
    };
    read_entries(entries, ARRAY_SIZE(entries));
    assert_string_equal(at(TEXT + 0x2f), "first");
    assert_string_equal(at(TEXT + 0x30), "second");
    assert_string_equal(at(TEXT + 0xfef), "second");
    assert_string_equal(at(TEXT + 0xfff), "too_long");
    assert_string_equal(at(TEXT + 0x1000), "-");
}

static void what_is_left_out(void **state UNUSED)
{
    const struct entry entries[] = {
        { "f", TEXT + 0x10, 0x40, GLOBAL | FUNC, TEXT_SECTION },
        { "inner_label", TEXT + 0x20, 0, LOCAL | LABEL, TEXT_SECTION },
        { ".L12", TEXT + 0x60, 0, LOCAL | LABEL, TEXT_SECTION },
        { "$x", TEXT + 0x70, 0, LOCAL | LABEL, TEXT_SECTION },
        { "", TEXT + 0x80, 0, LOCAL | FUNC, TEXT_SECTION },
        { "object", TEXT + 0x90, 4, GLOBAL | OBJECT, TEXT_SECTION },
        { "data", DATA_AT + 4, 4, GLOBAL | FUNC, DATA_SECTION },
        { "undefined", 0, 0, GLOBAL | FUNC, 0 },
        { "absolute", TEXT + 0xa0, 0, GLOBAL | LABEL, 0xfff1 },
        { "outside", TEXT - 4, 8, GLOBAL | FUNC, TEXT_SECTION },
        { "the_end", TEXT + TEXT_SIZE, 0, GLOBAL | LABEL, TEXT_SECTION },
    };
    read_entries(entries, ARRAY_SIZE(entries));
    assert_int_equal(symbols.count, 1);
    assert_string_equal(at(TEXT + 0x20), "f");
    assert_string_equal(at(TEXT + 0x60), "-");
}

static void one_name_of_many(void **state UNUSED)
{
    const struct entry entries[] = {
        { "__hidden_write", TEXT, 0x10, LOCAL | FUNC, TEXT_SECTION },
        { "__libc_write", TEXT, 0x10, GLOBAL | FUNC, TEXT_SECTION },
        { "write", TEXT, 0x10, WEAK | FUNC, TEXT_SECTION },
        { "w", TEXT, 0x10, LOCAL | FUNC, TEXT_SECTION },
        { "start_of_text", TEXT, 0, GLOBAL | LABEL, TEXT_SECTION },
        { "bb", TEXT + 0x20, 0, GLOBAL | FUNC, TEXT_SECTION },
        { "aa", TEXT + 0x20, 0, GLOBAL | FUNC, TEXT_SECTION },
        { "longer_but_sized", TEXT + 0x20, 4, LOCAL | FUNC, TEXT_SECTION },
    };
    read_entries(entries, ARRAY_SIZE(entries));
    assert_int_equal(symbols.count, 2);
    assert_string_equal(at(TEXT), "write");
    assert_string_equal(at(TEXT + 0x20), "aa");
    assert_string_equal(at(TEXT + 0x24), "-");
}

// Nested and overlapping functions: the innermost is found.
static void nested(void **state UNUSED)
{
    const struct entry entries[] = {
        { "outer", TEXT, 0x100, GLOBAL | FUNC, TEXT_SECTION },
        { "inner", TEXT + 0x20, 0x20, GLOBAL | FUNC, TEXT_SECTION },
        { "innermost", TEXT + 0x28, 0x08, GLOBAL | FUNC, TEXT_SECTION },
        { "over_the_end", TEXT + 0xf0, 0x20, GLOBAL | FUNC, TEXT_SECTION },
    };
    read_entries(entries, ARRAY_SIZE(entries));
    assert_string_equal(at(TEXT + 0x1f), "outer");
    assert_string_equal(at(TEXT + 0x20), "inner");
    assert_string_equal(at(TEXT + 0x2f), "innermost");
    assert_string_equal(at(TEXT + 0x30), "inner");
    assert_string_equal(at(TEXT + 0x40), "outer");
    assert_string_equal(at(TEXT + 0xf0), "over_the_end");
    assert_string_equal(at(TEXT + 0x10f), "over_the_end");
    assert_string_equal(at(TEXT + 0x110), "-");
}

static void nm_text(void **state UNUSED)
{
    const char text[] = "         U nothing\n"
                        "garbage\n";
    assert_int_equal(read_image(text, strlen(text)), SYMBOLS_FOREIGN);

    const char good[] = "08048000 T main\n"
                        "08048010 00000008 t helper\n"
                        "08048040 t .Llocal\n"
                        "garbage in the middle\n"
                        "08048060 T last_of_page\n"
                        "0804a000 D data\n"
                        "0804a010 W weak\n"
                        "0804a020 b bss_like_a_digit\n"
                        "0804b000 T end";
    assert_int_equal(read_image(good, strlen(good)), SYMBOLS_OK);
    assert_int_equal(symbols.count, 5);
    assert_string_equal(at(0x08048000), "main");
    assert_string_equal(at(0x0804800f), "main");
    assert_string_equal(at(0x08048017), "helper");
    assert_string_equal(at(0x08048018), "-");
    assert_string_equal(at(0x08049fff), "last_of_page");
    assert_string_equal(at(0x0804a000), "-");
    assert_string_equal(at(0x0804a01f), "weak");
    assert_string_equal(at(0x0804a020), "-");
    assert_string_equal(at(0x0804bff0), "end");
    assert_string_equal(at(0x0804c000), "-");
}

static void not_for_us(void **state UNUSED)
{
    assert_int_equal(read_image("", 0), SYMBOLS_FOREIGN);
    assert_int_equal(read_image("#!/bin/sh\n", 10), SYMBOLS_FOREIGN);
    assert_int_equal(read_image(ELF_MAGIC, 4), SYMBOLS_FOREIGN);
    assert_int_equal(symbols.count, 0);
    assert_string_equal(at(TEXT), "-");

    struct file f = make_elf(NULL, 0);
    assert_int_equal(read_image(f.bytes, f.size), SYMBOLS_STRIPPED);
    f.bytes[4] = 2; // ELFCLASS64
    assert_int_equal(read_image(f.bytes, f.size), SYMBOLS_FOREIGN);
    free(f.bytes);
}

// --- damage -----------------------------------------------------------------

static const struct entry some[] = {
    { "a", TEXT, 0x40, GLOBAL | FUNC, TEXT_SECTION },
    { "inner", TEXT + 0x10, 0x10, LOCAL | FUNC, TEXT_SECTION },
    { "label", TEXT + 0x40, 0, GLOBAL | LABEL, TEXT_SECTION },
    { "f", TEXT + 0x80, 0x40, WEAK | FUNC, TEXT_SECTION },
};

// Reads a damaged file in memory of the exact size (ASan guards its end), and
// uses every name and address.
static void read_damaged(const u8 *bytes, size_t size)
{
    u8 *copy = malloc(size + 1); // malloc(0) may be NULL
    u8 *exact = size > 0 ? realloc(copy, size) : copy;
    memcpy(exact, bytes, size);
    read_image(exact, size);

    u32 sum = 0, last = 0;
    for (u32 i = 0; i < symbols.count; i++) {
        const struct symbol *s = &symbols.table[i];
        assert_true(i == 0 || s->start > last);
        assert_true(s->start <= s->end);
        last = s->start;
        for (u32 j = 0; j < s->name_size; j++)
            sum += s->name[j];
        symbols_find(&symbols, s->start + sum % 16);
    }
    gprof_names(exact, size); // changes bytes of the image
    free(exact);
}

static void names_for_gprof(void **state UNUSED)
{
    const struct entry entries[] = {
        { "luaV_concat.part.0", TEXT, 0x40, LOCAL | FUNC, TEXT_SECTION },
        { "plain", TEXT + 0x40, 0x40, GLOBAL | FUNC, TEXT_SECTION },
        { "table.7", DATA_AT, 4, LOCAL | OBJECT, DATA_SECTION },
    };
    struct file f = make_elf(entries, ARRAY_SIZE(entries));
    assert_int_equal(gprof_names(f.bytes, f.size), 1);
    assert_int_equal(read_image(f.bytes, f.size), SYMBOLS_OK);
    assert_string_equal(at(TEXT), "luaV_concat_part_0");
    assert_string_equal(at(TEXT + 0x40), "plain");
    assert_int_equal(gprof_names(f.bytes, f.size), 0);
    free(f.bytes);
}

static void every_truncation(void **state UNUSED)
{
    struct file f = make_elf(some, ARRAY_SIZE(some));
    for (size_t size = 0; size <= f.size; size++)
        read_damaged(f.bytes, size);
    free(f.bytes);
}

static void every_byte_damaged(void **state UNUSED)
{
    static const u8 masks[] = { 0x01, 0x02, 0x04, 0x08, 0x10,
                                0x20, 0x40, 0x80, 0xff, 0x7f };
    struct file f = make_elf(some, ARRAY_SIZE(some));
    for (size_t i = 0; i < f.size; i++) {
        for (size_t m = 0; m < ARRAY_SIZE(masks); m++) {
            f.bytes[i] ^= masks[m];
            read_damaged(f.bytes, f.size);
            f.bytes[i] ^= masks[m];
        }
    }
    free(f.bytes);
}

static void many_bytes_damaged(void **state UNUSED)
{
    struct file f = make_elf(some, ARRAY_SIZE(some));
    u8 *damaged = malloc(f.size);
    for (int i = 0; i < 50000; i++) {
        memcpy(damaged, f.bytes, f.size);
        for (u32 n = 1 + random_below(8); n > 0; n--)
            damaged[4 + random_below(f.size - 4)] = random_u64();
        read_damaged(damaged, f.size);
    }
    free(damaged);
    free(f.bytes);
}

static void damaged_nm_text(void **state UNUSED)
{
    const char text[] = "08048000 T main\n08048010 00000008 t f\n"
                        "ffffffff T last\nfffffff0 000000ff t over\n";
    u8 damaged[sizeof(text)];
    for (int i = 0; i < 50000; i++) {
        memcpy(damaged, text, sizeof(text));
        for (u32 n = random_below(4); n > 0; n--)
            damaged[random_below(sizeof(text))] =
                " \n0fTt\0\xff"[random_below(8)];
        read_damaged(damaged, random_below(sizeof(text)));
    }
}

// --- speed and sorting ------------------------------------------------------

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

// The time of a million lookups in `count` symbols.
static double seconds_for(u32 count)
{
    enum { SAMPLES = 1000000 };
    struct symbol *many = calloc(count, sizeof(*many));
    for (u32 i = 0; i < count; i++)
        many[i] = (struct symbol){ .start = TEXT + 64 * i,
                                   .end = TEXT + 64 * i + 60,
                                   .enclosing = SYMBOL_NONE };
    struct symbols s = { many, count };

    u32 found = 0;
    double start = seconds();
    for (u32 i = 0; i < SAMPLES; i++)
        found += symbols_find(&s, TEXT + random_below(64 * count)) != NULL;
    double taken = seconds() - start;
    assert_in_range(found, SAMPLES / 64 * 59, SAMPLES / 64 * 61);
    free(many);
    return taken;
}

// tools/bench/symbols checks the time of optimised code. Here the time must not
// grow with the number of symbols as that of a linear search does, a thousand
// times. One good attempt of five is enough.
static void fast_enough(void **state UNUSED)
{
    double few = 0, many = 0;
    for (u32 i = 0; i < 5 && many >= few * 30; i++) {
        few = seconds_for(10);
        many = seconds_for(10000);
        printf("# a million samples: 10 symbols %.3f s, 10,000 %.3f s\n", few,
               many);
    }
    assert_true(many < few * 30);
}

static bool u32_less(const void *a, const void *b)
{
    return *(const u32 *)a < *(const u32 *)b;
}

static void sorting(void **state UNUSED)
{
    for (u32 n = 0; n < 300; n++) {
        u32 *numbers = malloc(n * sizeof(*numbers) + 1);
        u64 before = 0, after = 0;
        for (u32 i = 0; i < n; i++)
            before += numbers[i] = random_below(n % 3 == 0 ? 5 : UINT32_MAX);
        sort(numbers, n, sizeof(*numbers), u32_less);
        for (u32 i = 0; i < n; i++) {
            after += numbers[i];
            assert_true(i == 0 || numbers[i - 1] <= numbers[i]);
        }
        assert_true(before == after);
        free(numbers);
    }
}

// The first ones are those of a sort of all, and none is lost.
static void sorting_the_first(void **state UNUSED)
{
    u32 numbers[100], sorted[100];
    for (u32 round = 0; round < 3000; round++) {
        u32 n = random_below(ARRAY_SIZE(numbers) + 1);
        u32 wanted = random_below(n + 3);
        for (u32 i = 0; i < n; i++)
            numbers[i] = sorted[i] = random_below(round % 3 ? 1000 : 5);
        sort(sorted, n, sizeof(*sorted), u32_less);
        sort_first(numbers, n, sizeof(*numbers), wanted, u32_less);
        for (u32 i = 0; i < n && i < wanted; i++)
            assert_int_equal(numbers[i], sorted[i]);
        sort(numbers, n, sizeof(*numbers), u32_less);
        for (u32 i = 0; i < n; i++)
            assert_int_equal(numbers[i], sorted[i]);
    }
}

static void map_of_jit(void **state UNUSED)
{
    static const char text[] = "1000 20 first\n"
                               "1010 8 in it\n"
                               "nonsense\n"
                               "2000 10\n"
                               "2000 zz bad size\n"
                               "1000 18 again, later\n"
                               "fffffff0 ffff last";
    size_t size = sizeof(text) - 1;
    struct symbol table[8];
    struct symbols s;
    u32 room = symbols_room_of_map(text, size);
    assert_int_equal(room, 7);
    symbols_read_map(&s, text, size, table, room);
    assert_int_equal(s.count, 3);
    const struct {
        u32 at;
        const char *name;
    } cases[] = {
        { 0xfff, NULL },        { 0x1000, "again, later" }, { 0x1010, "in it" },
        { 0x1017, "in it" },    { 0x1018, NULL },           { 0x2000, NULL },
        { 0xfffffff8, "last" },
    };
    for (u32 i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct symbol *found = symbols_find(&s, cases[i].at);
        assert_true((found == NULL) == (cases[i].name == NULL));
        if (found != NULL) {
            assert_int_equal(found->name_size, strlen(cases[i].name));
            assert_memory_equal(found->name, cases[i].name, found->name_size);
        }
    }
    // Truncated at every length, in memory of the exact size.
    for (size_t cut = 0; cut <= size; cut++) {
        char *copy = malloc(cut + (cut == 0));
        memcpy(copy, text, cut);
        symbols_read_map(&s, copy, cut, table, 8);
        assert_true(s.count <= 4);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions),
        cmocka_unit_test(without_size),
        cmocka_unit_test(what_is_left_out),
        cmocka_unit_test(one_name_of_many),
        cmocka_unit_test(nested),
        cmocka_unit_test(nm_text),
        cmocka_unit_test(map_of_jit),
        cmocka_unit_test(not_for_us),
        cmocka_unit_test(names_for_gprof),
        cmocka_unit_test(every_truncation),
        cmocka_unit_test(every_byte_damaged),
        cmocka_unit_test(many_bytes_damaged),
        cmocka_unit_test(damaged_nm_text),
        cmocka_unit_test(fast_enough),
        cmocka_unit_test(sorting),
        cmocka_unit_test(sorting_the_first),
    };
    random_init();
    int failed = cmocka_run_group_tests_name("symbols", tests, NULL, NULL);
    free(table);
    return failed;
}
