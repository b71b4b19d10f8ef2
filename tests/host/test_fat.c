// FAT file systems: made by mkfs.vfat, filled at random by us and by mtools,
// compared with a model, checked by fsck.vfat; disks that vanish, and damaged
// ones.
// link: kernel/fs/fat_volume.c kernel/fs/fat_table.c kernel/fs/fat_file.c
// link: kernel/fs/fat_name.c kernel/fs/fat_dir.c
// link: kernel/block/partition.c
#include "test.h"

#include <stdarg.h>
#include <unistd.h>

#include "kernel/base/errno.h"
#include "kernel/fs/fat.h"

#define NOW 1767225600 // 2026-01-01
#define FILES 24
#define BYTES_MAX 40000u
#define FOLDER_TEMPLATE "/tmp/strobe-fat-XXXXXX"
#define ALL (~0u)

static char folder[] = FOLDER_TEMPLATE;
static const struct fat_time now = { .date = 46u << 9 | 1 << 5 | 1, .time = 0 };

// --- the disk

struct image {
    u8 *data;
    u32 sectors;
    u32 writes_left; // then it is gone
    bool gone;
    u32 lacking; // sectors at its end
};

static int transfer(void *arg, bool write, u32 sector, u32 count, void *data)
{
    struct image *i = arg;
    assert_true(count >= 1 && count <= 64);
    assert_true(sector < i->sectors && count <= i->sectors - sector);
    if (i->gone || (write && !i->writes_left)) {
        i->gone = true;
        return -EIO;
    }
    if (sector + count > i->sectors - i->lacking)
        return -EIO;
    if (!write) {
        memcpy(data, i->data + (size_t)sector * FAT_SECTOR,
               (size_t)count * FAT_SECTOR);
        return 0;
    }
    assert_true(sector > 0);
    if (i->writes_left != ALL)
        i->writes_left--;
    memcpy(i->data + (size_t)sector * FAT_SECTOR, data,
           (size_t)count * FAT_SECTOR);
    return 0;
}

static struct fat_disk disk_of(struct image *i)
{
    return (struct fat_disk){ transfer, i, i->sectors, 64 };
}

__attribute__((format(printf, 1, 2))) static int run(const char *how, ...)
{
    char command[1024];
    va_list args;
    va_start(args, how);
    vsnprintf(command, sizeof(command), how, args);
    va_end(args);
    return system(command);
}

static void load(struct image *i, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    *i = (struct image){ .data = malloc((size_t)size),
                         .sectors = (u32)(size / FAT_SECTOR),
                         .writes_left = ALL };
    assert_int_equal(fread(i->data, 1, (size_t)size, file), size);
    fclose(file);
}

static void store(const struct image *i, const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    size_t size = (size_t)i->sectors * FAT_SECTOR;
    assert_int_equal(fwrite(i->data, 1, size, file), size);
    fclose(file);
}

static void make(struct image *i, u32 bits, u32 kilobytes, const char *options)
{
    assert_int_equal(run("rm -f %s/disk && /usr/sbin/mkfs.vfat -C -i 12345678 "
                         "-F %u %s %s/disk %u >/dev/null 2>&1",
                         folder, bits, options, folder, kilobytes),
                     0);
    load(i, "disk");
}

// What fsck.vfat says of it is shown if it is not clean.
static void assert_clean(const struct image *i)
{
    store(i, "check");
    assert_int_equal(run("/usr/sbin/fsck.vfat -n %s/check >%s/said 2>&1 || "
                         "{ cat %s/said; false; }",
                         folder, folder, folder),
                     0);
}

static struct fat *mounted(struct image *i)
{
    struct fat *f = malloc(sizeof(*f));
    struct fat_disk disk = disk_of(i);
    const char *why = fat_mount(f, &disk);
    if (why)
        fail_msg("%s", why);
    return f;
}

// --- random files, and a model of them

static struct model {
    char name[FAT_NAME_BYTES];
    bool exists;
    struct fat_node node;
    u32 size;
    u8 data[BYTES_MAX];
} files[FILES];

static const char *const odd_names[] = {
    "README.TXT",
    "lower.txt",
    "Mixed Case Name.data",
    "p.data",
    "no extension",
    ".hidden",
    "a.b.c.d",
    "Größe.txt",
    "\xf0\x9f\x98\x80.bin",
    "longer than eight.c",
    "ABCDEFGH.XYZ",
    "ABCDEFGHI.XYZ",
    "plus+and,comma;[x]",
    "exactly13char",
};

static void name_file(u32 n)
{
    struct model *m = &files[n];
    if (n < ARRAY_SIZE(odd_names))
        strcpy(m->name, odd_names[n]);
    else if (n == FILES - 1)
        memset(m->name, 'x', 255);
    else
        sprintf(m->name, "profile of the run number %u.data", n);
}

static void change_file(struct fat *f, const struct fat_node *dir,
                        struct model *m)
{
    static u8 data[BYTES_MAX];
    if (!m->exists) {
        assert_int_equal(fat_create(f, dir, m->name, 0, now, &m->node), 0);
        m->exists = true;
        m->size = 0;
        return;
    }
    u32 pos = random_below(m->size + 1);
    switch (random_below(8)) {
    case 0:
        assert_int_equal(fat_remove(f, &m->node), 0);
        assert_int_equal(fat_discard(f, &m->node), 0);
        m->exists = false;
        return;
    case 1:
        assert_int_equal(fat_shrink(f, &m->node, pos, now), 0);
        m->size = pos;
        return;
    default:
        break;
    }
    u32 n =
        random_below(MIN(BYTES_MAX - pos, random_below(2) ? 20000u : 700u) + 1);
    for (u32 i = 0; i < n; i++)
        data[i] = (u8)random_u64();
    assert_int_equal(fat_write(f, &m->node, pos, data, n, now), n);
    memcpy(m->data + pos, data, n);
    m->size = MAX(m->size, pos + n);
    assert_int_equal(m->node.size, m->size);
}

static void compare_file(struct fat *f, const struct fat_node *dir,
                         const struct model *m)
{
    static u8 data[BYTES_MAX + 1];
    struct fat_entry e;
    int err = fat_find(f, dir, m->name, &e);
    assert_int_equal(err, m->exists ? 0 : -ENOENT);
    if (err)
        return;
    assert_string_equal(e.name, m->name);
    assert_int_equal(e.node.size, m->size);
    assert_int_equal(fat_check(f, &e.node), 0);
    u32 from = random_below(m->size + 1);
    assert_int_equal(fat_read(f, &e.node, from, data, sizeof(data)),
                     m->size - from);
    assert_memory_equal(data, m->data + from, m->size - from);
}

static void work(struct image *i, u32 steps)
{
    struct fat *f = mounted(i);
    struct fat_node root, dir;
    memset(files, 0, sizeof(files));
    fat_root(f, &root);
    assert_int_equal(
        fat_create(f, &root, "A directory", FAT_DIRECTORY, now, &dir), 0);
    for (u32 n = 0; n < FILES; n++)
        name_file(n);
    for (u32 step = 0; step < steps; step++)
        change_file(f, &dir, &files[random_below(FILES)]);
    for (u32 n = 0; n < FILES; n++)
        compare_file(f, &dir, &files[n]);
    assert_int_equal(fat_sync(f), 0);
    free(f);
    assert_clean(i);
    f = mounted(i);
    for (u32 n = 0; n < FILES; n++)
        compare_file(f, &dir, &files[n]);
    free(f);
}

static void random_work(void **state UNUSED)
{
    static const struct {
        u32 bits, kilobytes;
        const char *options;
    } kinds[] = {
        { 12, 1440, "" },      { 12, 2000, "-s 1 -f 1" },
        { 16, 12000, "-s 2" }, { 32, 3000, "-s 1" },
        { 32, 6000, "-s 8" },  { 16, 9000, "-s 1 -r 512" },
    };
    for (u32 k = 0; k < ARRAY_SIZE(kinds); k++) {
        struct image i;
        make(&i, kinds[k].bits, kinds[k].kilobytes, kinds[k].options);
        work(&i, 300);
        free(i.data);
    }
}

// The other side's names and ours are the same ones.
static void with_mtools(void **state UNUSED)
{
    struct image i;
    struct fat_entry e;
    struct fat_node root;
    char text[32] = { 0 };
    make(&i, 32, 40000, "-s 1");
    assert_int_equal(
        run("export LC_ALL=C.UTF-8 MTOOLS_SKIP_CHECK=1; cd %s && "
            "echo theirs >t && mcopy -i disk t '::A long name of theirs.txt' "
            "&& mcopy -i disk t ::PLAIN.TXT && mmd -i disk ::Größe",
            folder),
        0);
    free(i.data);
    load(&i, "disk");
    struct fat *f = mounted(&i);
    fat_root(f, &root);
    assert_int_equal(fat_find(f, &root, "GRÖßE", &e), -ENOENT);
    assert_int_equal(fat_find(f, &root, "GRößE", &e), 0); // ASCII only
    assert_int_equal(e.node.attributes & FAT_DIRECTORY, FAT_DIRECTORY);
    assert_int_equal(fat_find(f, &root, "plain.txt", &e), 0);
    assert_int_equal(fat_find(f, &root, "alongn~1.txt", &e), 0);
    assert_string_equal(e.name, "A long name of theirs.txt");
    assert_int_equal(fat_read(f, &e.node, 0, text, sizeof(text)), 7);
    assert_string_equal(text, "theirs\n");
    assert_int_equal(fat_create(f, &root, "Ours, größer.txt", 0, now, &e.node),
                     0);
    assert_int_equal(fat_write(f, &e.node, 0, "ours\n", 5, now), 5);
    assert_int_equal(fat_sync(f), 0);
    free(f);
    assert_clean(&i);
    assert_int_equal(
        run("export LC_ALL=C.UTF-8; cd %s && mcopy -n -i check "
            "'::Ours, größer.txt' - | grep -qx ours && mdir -i check ::/ | "
            "grep -q '2026-01-01 *0:00.*Ours, größer.txt'",
            folder),
        0);
    free(i.data);
}

static void directories(void **state UNUSED)
{
    struct image i;
    struct fat_entry e;
    struct fat_node root, a, b, file;
    u32 free_before, free_after;
    make(&i, 16, 9000, "-s 1");
    struct fat *f = mounted(&i);
    fat_root(f, &root);
    assert_int_equal(fat_count_free(f, &free_before), 0);
    assert_int_equal(fat_create(f, &root, "a", FAT_DIRECTORY, now, &a), 0);
    assert_int_equal(fat_create(f, &a, "b", FAT_DIRECTORY, now, &b), 0);
    for (u32 n = 0; n < 200; n++) { // more than a cluster, and many an alias
        char name[64];
        sprintf(name, "the same beginning %u.data", n);
        assert_int_equal(fat_create(f, &b, name, 0, now, &file), 0);
    }
    assert_int_equal(fat_write(f, &file, 0, "text", 4, now), 4);
    assert_int_equal(fat_empty(f, &b), -ENOTEMPTY);
    assert_int_equal(fat_remove(f, &b), -ENOTEMPTY);
    assert_int_equal(fat_rename(f, &file, &root, "moved"), 0);
    assert_int_equal(fat_rename(f, &b, &root, "B now"), 0);
    assert_int_equal(fat_find(f, &root, "moved", &e), 0);
    assert_int_equal(e.node.size, 4);
    assert_clean(&i);
    assert_int_equal(fat_empty(f, &a), 0);
    for (u32 n = 0; n < 199; n++) {
        char name[64];
        sprintf(name, "THE SAME beginning %u.data", n);
        assert_int_equal(fat_find(f, &b, name, &e), 0);
        assert_int_equal(fat_remove(f, &e.node), 0);
    }
    assert_int_equal(fat_remove(f, &b), 0);
    assert_int_equal(fat_discard(f, &b), 0);
    assert_int_equal(fat_remove(f, &a), 0);
    assert_int_equal(fat_discard(f, &a), 0);
    assert_int_equal(fat_remove(f, &file), 0);
    assert_int_equal(fat_discard(f, &file), 0);
    assert_int_equal(fat_count_free(f, &free_after), 0);
    assert_int_equal(free_before, free_after);
    free(f);
    assert_clean(&i);
    free(i.data);
}

static void full(void **state UNUSED)
{
    static u8 data[200000];
    struct image i;
    struct fat_node root, file, more;
    u32 n = 0;
    make(&i, 12, 1440, "");
    struct fat *f = mounted(&i);
    fat_root(f, &root);
    assert_int_equal(fat_create(f, &root, "big", 0, now, &file), 0);
    for (int done;
         (done = fat_write(f, &file, n, data, sizeof(data), now)) > 0;)
        n += (u32)done;
    assert_int_equal(fat_write(f, &file, n, data, 1, now), -ENOSPC);
    assert_in_range(n, 1400000, 1440 * 1024);
    assert_int_equal(fat_create(f, &root, "d", FAT_DIRECTORY, now, &more),
                     -ENOSPC);
    int err = 0;
    for (u32 k = 0; !err && k < 300; k++) { // the root is full at some time
        char name[16];
        sprintf(name, "%u", k);
        err = fat_create(f, &root, name, 0, now, &more);
    }
    assert_int_equal(err, -ENOSPC);
    assert_int_equal(fat_sync(f), 0);
    free(f);
    assert_clean(&i);
    free(i.data);
}

static void names(void **state UNUSED)
{
    static const char *const wrong[] = {
        "",    "dot.",  "space ", " space", "a/b",
        "a:b", "a\x01", "\xff",   "\xc3",   "\xed\xa0\x80",
    };
    u16 units[FAT_UNITS_MAX + 1];
    char long_name[400] = { 0 }, back[FAT_NAME_BYTES];
    for (u32 k = 0; k < ARRAY_SIZE(wrong); k++)
        assert_int_equal(fat_encode_name(wrong[k], units), 0);
    memset(long_name, 'n', 255);
    assert_int_equal(fat_encode_name(long_name, units), 255);
    assert_true(fat_decode_name(units, 255, back));
    assert_string_equal(back, long_name);
    long_name[255] = 'n';
    assert_int_equal(fat_encode_name(long_name, units), 0);
    static const u16 half[] = { 'a', 0xd800, 'b' }, dots[] = { '.', '.' };
    assert_false(fat_decode_name(half, 3, back));
    assert_false(fat_decode_name(half, 2, back));
    assert_false(fat_decode_name(dots, 2, back));
}

static void times(void **state UNUSED)
{
    assert_int_equal(fat_seconds(now), NOW);
    struct fat_time t = fat_time_of(NOW + 86399);
    assert_int_equal(fat_seconds(t), NOW + 86398);
    assert_int_equal(fat_seconds(fat_time_of(0)), 315532800); // 1980
    assert_int_equal(fat_seconds((struct fat_time){ 0, 0xffff }), 0);
}

// What is no file system, or says that it is larger than its partition; a disk
// that says that it is larger than it is.
static void refusals(void **state UNUSED)
{
    struct image i;
    make(&i, 16, 9000, "-s 1");
    struct fat *f = mounted(&i);
    struct fat_disk disk = disk_of(&i);
    disk.sectors -= 100;
    assert_string_equal(fat_mount(f, &disk),
                        "its file system is larger than the disk");
    disk.sectors += 100;
    i.lacking = 100; // more than what is behind the last cluster
    assert_string_equal(fat_mount(f, &disk),
                        "its last sector cannot be read: is the disk smaller "
                        "than it says?");
    i.lacking = 0;
    assert_null(fat_mount(f, &disk));
    i.data[13] = 0;
    assert_string_equal(fat_mount(f, &disk), "it has no FAT file system");
    disk.sectors = 0;
    assert_string_equal(fat_mount(f, &disk), "it cannot be read");
    free(f);
    free(i.data);
}

// --- the disk vanishes after each number of writes

#define APPENDS 12u
#define APPEND 3000u

static u8 expected(u32 at)
{
    return (u8)(at * 7 + at / 251);
}

// Returns the bytes that were said to be written.
static u32 append_until_gone(struct image *i)
{
    u8 data[APPEND];
    struct fat *f = mounted(i);
    struct fat_node root, dir, file;
    u32 size = 0;
    fat_root(f, &root);
    bool right = !fat_create(f, &root, "dir", FAT_DIRECTORY, now, &dir) &&
                 !fat_create(f, &dir, "a long name.data", 0, now, &file);
    for (u32 k = 0; right && k < APPENDS; k++) {
        for (u32 n = 0; n < APPEND; n++)
            data[n] = expected(size + n);
        int done = fat_write(f, &file, size, data, APPEND, now);
        right = done == APPEND;
        size += right ? APPEND : 0;
    }
    if (right)
        fat_rename(f, &file, &root, "renamed.data");
    free(f);
    return size;
}

static void compare_rest(struct image *i, u32 size)
{
    static u8 data[APPENDS * APPEND];
    struct fat *f = mounted(i);
    struct fat_node root;
    struct fat_entry e;
    fat_root(f, &root);
    int err = fat_find(f, &root, "dir", &e);
    if (!err)
        err = fat_find(f, &e.node, "a long name.data", &e);
    if (err)
        err = fat_find(f, &root, "renamed.data", &e);
    assert_int_equal(err, size ? 0 : err);
    if (!err) {
        assert_in_range(e.node.size, size, sizeof(data));
        int n = fat_read(f, &e.node, 0, data, sizeof(data));
        assert_int_equal(n, e.node.size);
        for (int at = 0; at < n; at++)
            assert_int_equal(data[at], expected((u32)at));
    }
    free(f);
}

static void vanishes(void **state UNUSED)
{
    struct image fresh;
    bool gone = true;
    make(&fresh, 32, 600, "-s 1");
    for (u32 writes = 0; gone; writes++) {
        struct image i = fresh;
        size_t bytes = (size_t)i.sectors * FAT_SECTOR;
        i.data = malloc(bytes);
        memcpy(i.data, fresh.data, bytes);
        i.writes_left = writes;
        u32 size = append_until_gone(&i);
        gone = i.gone;
        i.gone = false;
        i.writes_left = ALL;
        compare_rest(&i, size);
        store(&i, "check");
        run("/usr/sbin/fsck.vfat -a %s/check >/dev/null 2>&1", folder);
        assert_int_equal(
            run("/usr/sbin/fsck.vfat -n %s/check >/dev/null 2>&1", folder), 0);
        free(i.data);
        load(&i, "check");
        if (writes % 4 == 0) // the names may be the checker's after a rename
            compare_rest(&i, gone && size < APPENDS * APPEND ? size : 0);
        free(i.data);
    }
    free(fresh.data);
}

// --- damage

// Walks all, reads all, and writes a little; whatever it finds.
static void use(struct fat *f, const struct fat_node *dir, u32 depth)
{
    static u8 data[70000];
    struct fat_walk w = { .directory = dir->first };
    struct fat_entry e;
    struct fat_node made;
    for (u32 n = 0; n < 40 && !fat_read_name(f, &w, &e); n++) {
        struct fat_node node = e.node;
        assert_true(strlen(e.name) > 0 && !strchr(e.name, '/'));
        if (fat_check(f, &node))
            continue;
        if (node.attributes & FAT_DIRECTORY) {
            if (depth < 3)
                use(f, &node, depth + 1);
            continue;
        }
        fat_read(f, &node, 0, data, sizeof(data));
        fat_write(f, &node, node.size / 2, data, 700, now);
        if (random_below(2))
            fat_shrink(f, &node, node.size / 3, now);
        else if (!fat_remove(f, &node))
            fat_discard(f, &node);
    }
    if (!fat_create(f, dir, "a new file of mine", 0, now, &made))
        fat_write(f, &made, 0, data, 3000, now);
    if (!fat_create(f, dir, "sub", FAT_DIRECTORY, now, &made))
        fat_rename(f, &made, dir, "renamed");
}

static void damage(u8 *data, u32 bytes, u32 times)
{
    static const u8 values[] = { 0, 1, 2, 3, 0xff, 0xf8, 0xe5, 0x0f, 0x10 };
    for (u32 k = 0; k < times; k++) {
        u32 at = random_below(bytes);
        data[at] = random_below(3) ? values[random_below(sizeof(values))]
                                   : (u8)(data[at] ^ 1 << random_below(8));
    }
}

// A disk that refuses to be written: nothing that it did not take is seen.
static void refused(void **state UNUSED)
{
    struct image i;
    struct fat_node root, file;
    struct fat_entry e;
    u32 free_before, free_after;
    make(&i, 12, 1440, "");
    struct fat *f = mounted(&i);
    fat_root(f, &root);
    assert_int_equal(fat_create(f, &root, "file", 0, now, &file), 0);
    assert_int_equal(fat_write(f, &file, 0, "text", 4, now), 4);
    assert_int_equal(fat_count_free(f, &free_before), 0);
    for (u32 writes = 0; writes < 4; writes++) {
        char data[5000] = { 0 }, name[2] = { (char)('0' + writes), 0 };
        i.writes_left = writes;
        assert_int_equal(fat_write(f, &file, 4, data, sizeof(data), now), -EIO);
        i.gone = false;
        assert_int_equal(file.size, 4);
        i.writes_left = 0;
        assert_int_equal(fat_create(f, &root, name, 0, now, &e.node), -EIO);
        i.gone = false;
        assert_int_equal(fat_find(f, &root, name, &e), -ENOENT);
        assert_int_equal(fat_shrink(f, &file, 1, now), -EIO);
        i.gone = false;
        assert_int_equal(file.size, 4);
        assert_int_equal(fat_remove(f, &file), -EIO);
        i.gone = false;
        assert_int_equal(fat_find(f, &root, "file", &e), 0);
        assert_int_equal(e.node.size, 4);
    }
    i.writes_left = ALL;
    assert_int_equal(fat_count_free(f, &free_after), 0);
    assert_in_range(free_before - free_after, 0, 40); // lost, for a checker
    assert_int_equal(fat_write(f, &file, 4, "more", 4, now), 4);
    free(f);
    free(i.data);
}

// What is before the data, and the first directories, is damaged.
static void damaged(void **state UNUSED)
{
    static const struct {
        u32 bits, kilobytes;
        const char *options;
    } kinds[] = { { 12, 160, "-s 1 -r 32" },
                  { 16, 2200, "-s 1 -r 32" },
                  { 32, 400, "-s 1" } };
    for (u32 k = 0; k < ARRAY_SIZE(kinds); k++) {
        struct image fresh;
        make(&fresh, kinds[k].bits, kinds[k].kilobytes, kinds[k].options);
        append_until_gone(&fresh);
        struct fat *f = mounted(&fresh);
        u32 end = (f->data_start + 40) * FAT_SECTOR;
        u32 table = f->table_start * FAT_SECTOR, used = table + 200;
        free(f);
        size_t bytes = (size_t)fresh.sectors * FAT_SECTOR;
        u8 *memory = malloc(bytes);
        for (u32 run = 0; run < 2500; run++) {
            struct image i = fresh;
            i.data = memory;
            memcpy(i.data, fresh.data, bytes);
            if (random_below(4) == 0)
                damage(i.data, 90, 1 + random_below(3)); // the boot sector
            if (random_below(2))
                damage(i.data + table, used - table, 1 + random_below(8));
            damage(i.data + table, end - table, random_below(400));
            i.writes_left = random_below(10) ? ALL : random_below(40);
            struct fat_disk disk = disk_of(&i);
            f = malloc(sizeof(*f));
            struct fat_node root;
            if (!fat_mount(f, &disk)) {
                u32 free;
                fat_root(f, &root);
                use(f, &root, 0);
                fat_count_free(f, &free);
                fat_sync(f);
            }
            free(f);
        }
        free(memory);
        free(fresh.data);
    }
}

// Chains without an end.
static void cycles(void **state UNUSED)
{
    struct image i;
    struct fat_node root, dir, file;
    struct fat_entry e;
    u8 data[2000] = { 0 };
    make(&i, 16, 9000, "-s 1");
    struct fat *f = mounted(&i);
    fat_root(f, &root);
    assert_int_equal(fat_create(f, &root, "file", 0, now, &file), 0);
    assert_int_equal(fat_write(f, &file, 0, data, sizeof(data), now), 2000);
    assert_int_equal(fat_create(f, &root, "dir", FAT_DIRECTORY, now, &dir), 0);
    u8 *table = i.data + f->table_start * FAT_SECTOR;
    fat_put_word(table + 2 * (file.first + 3), file.first);
    fat_put_word(table + 2 * dir.first, dir.first);
    for (u32 at = 2; at < 16; at++) // no end in it
        memset(i.data + fat_sector(f, dir.first) * FAT_SECTOR + at * 32, 0xe5,
               32);
    free(f);
    f = mounted(&i);
    assert_int_equal(fat_find(f, &root, "file", &e), 0);
    assert_int_equal(fat_check(f, &e.node), -EIO);
    assert_int_equal(fat_find(f, &root, "dir", &e), 0);
    assert_int_equal(fat_check(f, &e.node), -EIO);
    assert_int_equal(fat_find(f, &e.node, "x", &e), -EIO);
    fat_put_word(table + 2 * (file.first + 3), 0xffff);
    fat_put_word(table + 2 * (file.first + 1), 60000);
    free(f);
    f = mounted(&i);
    assert_int_equal(fat_check(f, &file), -EIO);
    fat_put_word(table + 2 * (file.first + 1), 0xffff); // too short
    free(f);
    f = mounted(&i);
    assert_int_equal(fat_check(f, &file), -EIO);
    free(f);
    free(i.data);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_work), cmocka_unit_test(with_mtools),
        cmocka_unit_test(directories), cmocka_unit_test(full),
        cmocka_unit_test(names),       cmocka_unit_test(times),
        cmocka_unit_test(refusals),    cmocka_unit_test(vanishes),
        cmocka_unit_test(refused),     cmocka_unit_test(damaged),
        cmocka_unit_test(cycles),
    };
    random_init();
    if (!mkdtemp(folder))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    run("rm -rf %s", folder);
    return failed;
}
