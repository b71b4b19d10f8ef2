// Text files generated when they are read, /proc, the random generator, lookup
// of devices.

#include "kernel/base/errno.h"
#include "kernel/fs/devfs.h"
#include "kernel/fs/text_file.h"
#include "kernel/mm/heap.h"
#include "lib/format.h"
#include "lib/string.h"
#include "tests/kernel/test.h"

#define NUMBERS 20000u
#define NUMBER_SIZE 6u // "%05u\n"
#define LONG_SIZE (3 * PAGE_SIZE + 7)

static int read_all(struct text_file *tf, text_maker make, void *arg, u64 *pos,
                    char *buf, size_t n)
{
    struct iovec_k part;
    struct io io;

    io_init(&io, &part, (u32)buf, n, true);
    return text_file_read(tf, &io, pos, make, arg);
}

static int count_far(struct chain *t, void *arg UNUSED)
{
    for (u32 i = 0; i < NUMBERS; i++)
        chain_printf(t, "%05u\n", i);
    chain_append(t, "", 0);
    return 0;
}

// Reads of random sizes: no byte is lost across page boundaries.
KERNEL_TEST(text_grows)
{
    struct text_file *tf = text_file_create();
    char *all = kmalloc(NUMBERS * NUMBER_SIZE), expected[NUMBER_SIZE + 1];
    u64 pos = 0;
    int n;

    expect(tf && all);
    do {
        u32 left = NUMBERS * NUMBER_SIZE - (u32)pos;
        n = read_all(tf, count_far, NULL, &pos, all + pos,
                     MIN(left, 1 + test_random() % 9000));
        expect(n >= 0);
    } while (n > 0);
    expect(pos == NUMBERS * NUMBER_SIZE);
    for (u32 i = 0; i < NUMBERS; i++) {
        format(expected, sizeof(expected), "%05u\n", i);
        expect(!memcmp(all + i * NUMBER_SIZE, expected, NUMBER_SIZE));
    }
    kfree(all);
    text_file_free(tf);
}

static int one_line(struct chain *t, void *line)
{
    chain_printf(t, "[%s]", (char *)line);
    chain_printf(t, ".");
    return 0;
}

KERNEL_TEST(text_has_long_lines)
{
    struct text_file *tf = text_file_create();
    char *line = kmalloc(LONG_SIZE + 1), *read = kmalloc(LONG_SIZE + 4);
    u64 pos = 0;

    expect(tf && line && read);
    for (u32 i = 0; i < LONG_SIZE; i++)
        line[i] = (char)('a' + test_random() % 26);
    line[LONG_SIZE] = '\0';
    expect(read_all(tf, one_line, line, &pos, read, LONG_SIZE + 4) ==
           (int)LONG_SIZE + 3);
    expect(read[0] == '[' && !memcmp(read + 1, line, LONG_SIZE));
    expect(!memcmp(read + 1 + LONG_SIZE, "].", 2));
    kfree(line);
    kfree(read);
    text_file_free(tf);
}

static int blocks(struct chain *t, void *count)
{
    static char block[4096];

    for (u32 i = 0; i < *(u32 *)count; i++)
        chain_append(t, block, sizeof(block));
    return 0;
}

KERNEL_TEST(text_says_when_it_does_not_fit)
{
    struct text_file *tf = text_file_create();
    u32 fits = TEXT_FILE_MAX / 4096, too_many = fits + 1;
    char buf[8];
    u64 pos = 0;

    expect(tf != NULL);
    expect(read_all(tf, blocks, &fits, &pos, buf, sizeof(buf)) == 8);
    pos = 0;
    expect(read_all(tf, blocks, &too_many, &pos, buf, sizeof(buf)) == -ENOMEM);
    expect(pos == 0);
    text_file_free(tf);
}

static int count_up(struct chain *t, void *arg)
{
    u32 *made = arg;

    ++*made;
    chain_printf(t, "text %u", *made);
    return *made == 4 ? -ESRCH : 0;
}

static int read_at(struct text_file *tf, u32 *made, u64 *pos, char *buf,
                   size_t n)
{
    return read_all(tf, count_up, made, pos, buf, n);
}

KERNEL_TEST(text_file_is_consistent)
{
    struct text_file *tf = text_file_create();
    char buf[16];
    u32 made = 0;
    u64 pos = 0;

    expect(tf != NULL);
    if (tf == NULL)
        return;
    expect(read_at(tf, &made, &pos, buf, 5) == 5 && made == 1);
    expect(read_at(tf, &made, &pos, buf, 5) == 1 && buf[0] == '1');
    expect(read_at(tf, &made, &pos, buf, 5) == 0 && made == 1);
    pos = 0; // a read at 0 generates a new text
    expect(read_at(tf, &made, &pos, buf, 16) == 6 && buf[5] == '2');
    pos = ~0ull;
    expect(read_at(tf, &made, &pos, buf, 16) == 0 && made == 2);
    pos = 0;
    made = 3; // the maker fails the next time
    expect(read_at(tf, &made, &pos, buf, 16) == -ESRCH && pos == 0);
    expect(read_at(tf, &made, &pos, buf, 16) == 6 && buf[5] == '5');
    text_file_free(tf);
}

static int read_file(const char *path, char *buf, size_t n)
{
    struct file *f;
    struct iovec_k part;
    struct io io;
    u64 pos = 0;
    int result = vfs_open(NULL, path, O_RDONLY, 0, &f);

    if (result)
        return result;
    io_init(&io, &part, (u32)buf, n, true);
    result = f->ops->read(f, &io, &pos);
    file_unref(f);
    return result;
}

KERNEL_TEST(procfs_shows_the_machine)
{
    char buf[64];

    expect(read_file("/proc/meminfo", buf, sizeof(buf)) == sizeof(buf));
    expect(memcmp(buf, "MemTotal:", 9) == 0);
    expect(read_file("/proc/stat", buf, sizeof(buf)) == sizeof(buf));
    expect(memcmp(buf, "cpu  ", 5) == 0);
    expect(read_file("/proc/version", buf, sizeof(buf)) > 0);
    expect(memcmp(buf, "Strobe version", 14) == 0);
    expect(read_file("/proc/nothing", buf, sizeof(buf)) == -ENOENT);
    expect(read_file("/proc/../proc/./cpuinfo", buf, sizeof(buf)) > 0);
}

KERNEL_TEST(devices_are_found_by_number)
{
    static const struct char_device taken = {
        .name = "taken",
        .rdev = DEVICE_NUMBER(1, 3),
    };
    const struct char_device *null = char_device_find(DEVICE_NUMBER(1, 3));
    char buf[8] = "unread!";

    expect(null != NULL && strcmp(null->name, "null") == 0);
    expect(char_device_find(DEVICE_NUMBER(99, 1)) == NULL);
    expect(char_device_register(&taken) == -EEXIST);
    expect(read_file("/dev/null", buf, sizeof(buf)) == 0);
    expect(read_file("/dev/zero", buf, sizeof(buf)) == 8 && buf[0] == 0);
    expect(read_file("/dev/random", buf, sizeof(buf)) == 8);
}

// Half of the bits are 1, and two requests return different bytes.
KERNEL_TEST(random_bytes_are_balanced)
{
    static u8 buf[8192], other[sizeof(buf)];
    u32 ones = 0, same = 0;

    random_bytes(buf, sizeof(buf));
    random_bytes(other, sizeof(other));
    for (u32 i = 0; i < sizeof(buf); i++) {
        ones += __builtin_popcount(buf[i]);
        same += buf[i] == other[i];
    }
    // 65536 bits: the standard deviation is 128, 10 of them are allowed. Of
    // 8192 pairs of bytes 32 are equal by chance.
    expect(ones > 32768 - 1280 && ones < 32768 + 1280);
    expect(same < 100);
    for (u32 n = 1; n <= 80; n++) { // no write beyond the request
        memset(buf, 0xee, 100);
        random_bytes(buf, n);
        expect(buf[n] == 0xee);
    }
}

KERNEL_TEST(text_devices_have_different_numbers)
{
    LINKER_SET_FOR_EACH(const struct char_device, d, char_devices)
        expect(char_device_find((*d)->rdev) == *d);
}
