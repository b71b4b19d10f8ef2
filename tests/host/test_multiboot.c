// What Multiboot 2 passes, tag by tag: whole, cut off, damaged.
// link: arch/i386/boot/boot_fill.c arch/i386/boot/mb2_parse.c
// link: arch/i386/boot/memory_map.c
#include "test.h"

#include "arch/i386/boot/boot_fill.h"
#include "arch/i386/boot/memory_map.h"

#define SIZE_MAX_INFO 32768

static u8 info[SIZE_MAX_INFO];
static u32 length;

static void put(const void *data, u32 size)
{
    memcpy(info + length, data, size);
    length += size;
}

static void begin(void)
{
    memset(info, 0, sizeof(info));
    length = sizeof(struct mb2_info);
}

static void tag(u32 type, const void *data, u32 size)
{
    struct mb2_tag t = { type, sizeof(t) + size };
    put(&t, sizeof(t));
    put(data, size);
    length = ALIGN_UP(length, 8u);
}

static void framebuffer(const struct mb2_framebuffer *f)
{
    tag(MB2_TAG_FRAMEBUFFER, (const u8 *)f + sizeof(f->tag),
        sizeof(*f) - sizeof(f->tag));
}

// The parser may read exactly `size` bytes: the sanitizer sees one more.
static void parse(u32 size)
{
    u8 *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, info, size);
    boot_fill_begin();
    mb2_parse((const void *)copy, size);
    boot_fill_finish();
    free(copy);
}

static const struct mb2_framebuffer screen = {
    .base = 0xc0000000,
    .pitch = 5504,
    .width = 1366,
    .height = 768,
    .bits = 32,
    .kind = MB2_FRAMEBUFFER_RGB,
    .red_shift = 16,
    .red_bits = 8,
    .green_shift = 8,
    .green_bits = 8,
    .blue_bits = 8,
};

// What GRUB passes on a UEFI machine.
static void whole(void)
{
    const u32 entries[] = { 24,       0, // size and version of an entry
                            0,        0, 0xa0000,    0, 1, 0, // low memory
                            0x100000, 0, 0x700000,   0, 1, 0,
                            0x7ff000, 0, 0x1000,     0, 4, 0,   // firmware's
                            0,        1, 0x40000000, 0, 1, 0 }; // at 4 GiB
    const u32 module[] = { 0x90000000, 0x90001000 };
    u8 text[sizeof(module) + 20] = { 0 }, rsdp[36] = "RSD PTR old";
    memcpy(text, module, sizeof(module));
    memcpy(text + sizeof(module), "/boot/initrd x", 14);
    begin();
    tag(21, "\0\0\x10", 4); // unknown to us
    tag(MB2_TAG_CMDLINE, "console=tty0", 13);
    tag(MB2_TAG_LOADER, "GRUB 2.06", 10);
    tag(MB2_TAG_MODULE, text, sizeof(text));
    tag(MB2_TAG_MMAP, entries, sizeof(entries));
    framebuffer(&screen);
    tag(MB2_TAG_RSDP_OLD, rsdp, 20);
    memcpy(rsdp + 8, "new", 3);
    tag(MB2_TAG_RSDP_NEW, rsdp, 36);
    rsdp[8] = 'O';
    tag(MB2_TAG_RSDP_OLD, rsdp, 20);
    tag(MB2_TAG_END, "", 0);
}

static void all_tags(void **state UNUSED)
{
    whole();
    parse(length);
    assert_int_equal(boot_info.problem_count, 0);
    assert_string_equal(boot_info.cmdline, "console=tty0");
    assert_string_equal(boot_info.loader, "GRUB 2.06");
    assert_int_equal(boot_info.module_count, 1);
    assert_int_equal(boot_info.modules[0].base, 0x90000000);
    assert_int_equal(boot_info.modules[0].size, 0x1000);
    assert_string_equal(boot_info.modules[0].name, "initrd");
    assert_int_equal(boot_info.region_count, 6);
    const struct boot_region *last = &boot_info.regions[5];
    assert_true(last->usable && last->base == 1ull << 32);
    assert_memory_equal(boot_info.rsdp_data, "RSD PTR new", 11);
    assert_true(boot_info.rsdp_copied);
    assert_true(boot_info.framebuffer.base == screen.base);
    assert_int_equal(boot_info.framebuffer.pitch, 5504);
    assert_int_equal(boot_info.framebuffer.red.shift, 16);
}

static void cut_off_anywhere(void **state UNUSED)
{
    whole();
    for (u32 size = 0; size < length; size++) {
        parse(size);
        assert_true(boot_info.problem_count <= 1);
    }
    // Within the command line's tag.
    parse(sizeof(struct mb2_info) + 16 + 12);
    assert_string_equal(boot_info.problems[0],
                        "tag 1 has 21 bytes where 12 are left: the rest is "
                        "skipped");
}

static void any_byte_is_wrong(void **state UNUSED)
{
    for (u32 i = sizeof(struct mb2_info); i < length; i++) {
        static const u8 others[] = { 0, 1, 7, 8, 0x7f, 0x80, 0xff };
        for (u32 n = 0; n < ARRAY_SIZE(others); n++) {
            whole();
            info[i] = others[n];
            parse(length);
            assert_true(boot_info.module_count <= BOOT_MODULES_MAX);
        }
    }
}

// `usable` pieces of 64 KiB, one in each MiB from 1 MiB on, and `others` of a
// page between them, the latter last or first.
static void fragmented(u32 usable, u32 others, bool others_last)
{
    static u32 entries[2 + 6 * 1200];
    u32 *e = entries;
    *e++ = 24;
    *e++ = 0;
    for (u32 i = 0; i < usable + others; i++) {
        bool is_usable = others_last ? i < usable : i >= others;
        u32 n =
            is_usable == others_last ? i : i - (others_last ? usable : others);
        u32 at = MIB(1) * (n + 1);
        *e++ = is_usable ? at : at + MIB(1) / 2;
        *e++ = 0;
        *e++ = is_usable ? KIB(64) : PAGE_SIZE;
        *e++ = 0;
        *e++ = is_usable ? BOOT_RANGE_USABLE : 2;
        *e++ = 0;
    }
    begin();
    tag(MB2_TAG_MMAP, entries, (u32)((u8 *)e - (u8 *)entries));
    parse(length);
}

static u32 usable_kib(void)
{
    u64 sum = 0;
    for (u32 i = 0; i < boot_info.region_count; i++) {
        if (boot_info.regions[i].usable)
            sum += boot_info.regions[i].size;
    }
    return (u32)(sum / 1024);
}

// A firmware's with 312 entries has been seen.
static void many_ranges(void **state UNUSED)
{
    fragmented(312, 0, true);
    assert_int_equal(usable_kib(), 312 * 64);
    assert_int_equal(boot_info.problem_count, 0);
    fragmented(255, 255, true); // with our own two: all there is room for
    assert_int_equal(usable_kib(), 255 * 64);
    assert_int_equal(boot_info.range_count, MEMORY_RANGES_MAX);
    assert_int_equal(boot_info.problem_count, 0);
}

static void assert_dropped(u32 kept, u32 dropped)
{
    char want[96];
    snprintf(want, sizeof(want),
             "its memory map has too many ranges: %u KiB are not used",
             dropped * 64);
    assert_int_equal(usable_kib(), kept * 64);
    assert_int_equal(boot_info.problem_count, 1);
    assert_string_equal(boot_info.problems[0], want);
    assert_true(boot_info.memory_dropped == (u64)dropped * KIB(64));
}

// What is not usable is never dropped for what is.
static void too_many_ranges(void **state UNUSED)
{
    fragmented(600, 0, true); // two of them make room for our own
    assert_dropped(MEMORY_RANGES_MAX - 2, 600 - (MEMORY_RANGES_MAX - 2));
    for (u32 last = 0; last < 2; last++) {
        fragmented(400, 400, last);
        assert_dropped(MEMORY_RANGES_MAX - 2 - 400,
                       400 - (MEMORY_RANGES_MAX - 2 - 400));
    }
}

static void short_tags_are_skipped(void **state UNUSED)
{
    static const struct {
        u32 type, least;
    } tags[] = {
        { MB2_TAG_MODULE, 8 },    { MB2_TAG_MEMORY, 8 },
        { MB2_TAG_MMAP, 8 },      { MB2_TAG_FRAMEBUFFER, 24 },
        { MB2_TAG_RSDP_OLD, 20 }, { MB2_TAG_RSDP_NEW, 36 },
    };
    for (u32 i = 0; i < ARRAY_SIZE(tags); i++) {
        u8 zeros[64] = { 0 };
        char want[96];
        begin();
        tag(tags[i].type, zeros, tags[i].least - 1);
        parse(length);
        assert_int_equal(boot_info.problem_count, 1);
        snprintf(want, sizeof(want), "tag %u has only %u bytes: skipped",
                 tags[i].type, 8 + tags[i].least - 1);
        assert_string_equal(boot_info.problems[0], want);
        assert_int_equal(boot_info.module_count, 0);
        assert_false(boot_info.rsdp_copied);
    }
}

static void assert_unusable(struct mb2_framebuffer f)
{
    begin();
    framebuffer(&f);
    parse(length);
    assert_int_equal(boot_info.problem_count, 1);
    assert_non_null(strstr(boot_info.problems[0], "no use of a framebuffer"));
    assert_int_equal(boot_info.framebuffer.width, 0);
}

#define WITH(...)                          \
    ({                                     \
        struct mb2_framebuffer f = screen; \
        __VA_ARGS__;                       \
        f;                                 \
    })

static void framebuffers_that_are_none(void **state UNUSED)
{
    assert_unusable(WITH(f.kind = 0)); // a palette
    assert_unusable(WITH(f.bits = 8));
    assert_unusable(WITH(f.bits = 64));
    assert_unusable(WITH(f.base = 0));
    assert_unusable(WITH(f.base = -4096ull));
    assert_unusable(WITH(f.width = 0));
    assert_unusable(WITH(f.height = 100000));
    assert_unusable(WITH(f.pitch = 1366 * 4 - 1));
    assert_unusable(WITH(f.pitch = -1u));
    assert_unusable(WITH(f.red_shift = 25));
    assert_unusable(WITH(f.green_bits = 0));
    assert_unusable(WITH(f.blue_bits = 9));
    // A text mode is no framebuffer, and no problem.
    begin();
    struct mb2_framebuffer text = WITH(f.kind = MB2_FRAMEBUFFER_TEXT);
    tag(MB2_TAG_FRAMEBUFFER, (const u8 *)&text + 8, 24);
    parse(length);
    assert_int_equal(boot_info.problem_count, 0);
    assert_int_equal(boot_info.framebuffer.width, 0);
}

static void maps_without_entries(void **state UNUSED)
{
    const u32 none[] = { 0, 0 }, plain[] = { 640, 1024 };
    begin();
    tag(MB2_TAG_MMAP, none, sizeof(none));
    tag(MB2_TAG_MEMORY, plain, sizeof(plain));
    parse(length);
    assert_string_equal(boot_info.problems[0],
                        "its memory map has entries of 0 bytes: skipped");
    assert_int_equal(boot_info.region_count, 4);
    assert_true(!boot_info.regions[2].usable &&
                boot_info.regions[2].base == ROM_START);
    assert_true(boot_info.regions[3].base == MIB(1) &&
                boot_info.regions[3].size == MIB(1));
}

static void more_than_there_is_room_for(void **state UNUSED)
{
    const u32 module[] = { 0x200000, 0x201000, 0 };
    const u32 wrong[] = { 0x200000, 0x1ff000, 0 };
    char line[BOOT_CMDLINE_MAX / 2 + SIZE_MAX_INFO / 4];
    begin();
    for (u32 i = 0; i < BOOT_MODULES_MAX + 2; i++)
        tag(MB2_TAG_MODULE, module, sizeof(module));
    tag(MB2_TAG_MODULE, wrong, sizeof(wrong));
    parse(length);
    assert_int_equal(boot_info.module_count, BOOT_MODULES_MAX);
    assert_int_equal(boot_info.problem_count, 3);
    memset(line, 'x', sizeof(line));
    begin();
    tag(MB2_TAG_LOADER, line, sizeof(line)); // without its end
    parse(length);
    assert_int_equal(strlen(boot_info.loader), sizeof(boot_info.loader) - 1);
}

// The page for other CPUs, where the memory [0, `first`) and [second, end) is
// usable, and a module of `size` bytes lies at `at`.
static u32 start_page(u32 first, u32 second, u32 end, u32 at, u32 size)
{
    const u32 map[] = { 24,           0, 0, 0, first, 0, 1, 0, second, 0,
                        end - second, 0, 1, 0 };
    const u32 module[] = { at, at + size, 0 };
    begin();
    tag(MB2_TAG_MMAP, map, sizeof(map));
    tag(MB2_TAG_MODULE, module, sizeof(module));
    parse(length);
    return boot_info.start_page;
}

static void where_cpus_start(void **state UNUSED)
{
    const u32 far = 0x200000;
    assert_int_equal(start_page(0x9fc00, MIB(1), MIB(2), far, 1), 0x8000);
    assert_int_equal(start_page(0x9000, MIB(1), MIB(2), far, 1), 0x8000);
    assert_int_equal(start_page(0x8fff, MIB(1), MIB(2), far, 1), 0x1000);
    assert_int_equal(start_page(0x1fff, 0x5800, MIB(2), far, 1), 0x8000);
    assert_int_equal(start_page(0x1fff, 0x8001, MIB(2), far, 1), 0x9000);
    assert_int_equal(start_page(0x1fff, 0x9f000, MIB(2), far, 1), 0x9f000);
    assert_int_equal(start_page(0x1fff, 0x9f001, MIB(2), far, 1), 0);
    assert_int_equal(start_page(0x1fff, 0xa0000, MIB(2), far, 1), 0);
    // Modules are in usable memory.
    assert_int_equal(start_page(0x9fc00, MIB(1), MIB(2), 0x8fff, 1), 0x1000);
    assert_int_equal(start_page(0x9fc00, MIB(1), MIB(2), 0x7fff, 1), 0x8000);
    assert_int_equal(start_page(0x9fc00, MIB(1), MIB(2), 0x9000, 9), 0x8000);
    assert_int_equal(start_page(0x9fc00, MIB(1), MIB(2), 0x1fff, 0x7000),
                     0x9000);
    assert_int_equal(start_page(0x9fc00, MIB(1), MIB(2), 0x100, MIB(1)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_tags),
        cmocka_unit_test(cut_off_anywhere),
        cmocka_unit_test(any_byte_is_wrong),
        cmocka_unit_test(many_ranges),
        cmocka_unit_test(too_many_ranges),
        cmocka_unit_test(short_tags_are_skipped),
        cmocka_unit_test(framebuffers_that_are_none),
        cmocka_unit_test(maps_without_entries),
        cmocka_unit_test(more_than_there_is_room_for),
        cmocka_unit_test(where_cpus_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
