// kernel/fs/fat*.c on a hostile disk: any boot sector, table and directories,
// and transfers that fail. Used as kernel/fs/fat_fs.c does. Nothing is read or
// written outside the file system; what a call changes in the table is an entry
// of a cluster that exists, and leads to another one, or ends, or is free; both
// copies of the table have it.
// link: kernel/fs/fat_volume.c kernel/fs/fat_table.c kernel/fs/fat_file.c
// link: kernel/fs/fat_name.c kernel/fs/fat_dir.c kernel/block/partition.c
#include "host.h"

#include <string.h>

#include "kernel/base/errno.h"
#include "kernel/fs/fat.h"

#define DISK_MAX 65536u // sectors
#define KEPT 2048u      // of them that are not all `fill`; a power of two
#define AT_ONCE 64u
#define NODES 8u
#define DATA_MAX 20000u
#define NAMES_MAX 300u // of a directory that are read
#define STEPS 60u
#define NEVER (~0u)

static const struct fat_time now = { .date = 46u << 9 | 1 << 5 | 1 };

// --- the disk

struct sector {
    u32 number;
    bool changed; // since the last check
    u8 data[512];
    u8 before[512]; // at the last check
};
static struct sector *kept[KEPT]; // by a hash of the number
static struct sector *in_order[KEPT / 2];
static u32 kept_count, disk_sectors, transfers_left;
static u8 fill;
static bool failed, mounted;
static struct fat *fat;

static struct sector *find_kept(u32 number, bool add)
{
    u32 at = number * 2654435761u % KEPT;
    while (kept[at] && kept[at]->number != number)
        at = (at + 1) % KEPT;
    if (!kept[at] && add && kept_count < KEPT / 2) {
        struct sector *s = malloc(sizeof(*s));
        REQUIRE(s);
        s->number = number;
        s->changed = false;
        memset(s->data, fill, sizeof(s->data));
        memset(s->before, fill, sizeof(s->before));
        kept[at] = in_order[kept_count++] = s;
    }
    return kept[at];
}

static void empty_disk(void)
{
    for (u32 i = 0; i < kept_count; i++)
        free(in_order[i]);
    memset(kept, 0, sizeof(kept));
    kept_count = 0;
}

static bool in_table(u32 sector)
{
    return sector >= fat->table_start &&
           sector < fat->table_start + fat->tables * fat->table_sectors;
}

static bool may_be_written(u32 sector)
{
    u32 end = fat->data_start + fat->clusters * fat->cluster_sectors;
    if (sector == fat->info_sector)
        return sector > 0;
    return in_table(sector) || (sector >= fat->root_start && sector < end);
}

static int transfer(void *arg UNUSED, bool write, u32 sector, u32 count,
                    void *data)
{
    REQUIRE(count >= 1 && count <= AT_ONCE);
    REQUIRE(sector < disk_sectors && count <= disk_sectors - sector);
    if (transfers_left == 0) {
        failed = true;
        return -EIO;
    }
    if (transfers_left != NEVER)
        transfers_left--;
    for (u32 i = 0; i < count; i++) {
        u8 *bytes = (u8 *)data + i * 512;
        struct sector *s = find_kept(sector + i, write);
        REQUIRE(!write || (mounted && may_be_written(sector + i)));
        if (!s && write) { // it would be too large a disk
            failed = true;
            return -EIO;
        }
        if (write) {
            memcpy(s->data, bytes, 512);
            s->changed = true;
        } else if (s) {
            memcpy(bytes, s->data, 512);
        } else {
            memset(bytes, fill, 512);
        }
    }
    return 0;
}

// --- the table

static u8 table_byte(u32 table, u32 at, bool before)
{
    u32 number =
        fat->table_start + table * fat->table_sectors + at / FAT_SECTOR;
    const struct sector *s = find_kept(number, false);
    if (!s)
        return fill;
    return before ? s->before[at % FAT_SECTOR] : s->data[at % FAT_SECTOR];
}

static u32 entry(u32 table, u32 cluster, bool before)
{
    u32 at = fat->bits == 12 ? cluster + cluster / 2 : cluster * fat->bits / 8;
    u32 value = 0;
    for (u32 i = 0; i < (fat->bits == 32 ? 4 : 2); i++)
        value |= (u32)table_byte(table, at + i, before) << 8 * i;
    if (fat->bits == 12)
        value = cluster & 1 ? value >> 4 : value & 0xfff;
    return value;
}

static void check_entry(u32 cluster)
{
    u32 value = entry(0, cluster, false), old = entry(0, cluster, true);
    u32 end = fat->bits == 12 ? 0xff8 : fat->bits == 16 ? 0xfff8 : 0x0ffffff8;
    if (value == old)
        return;
    REQUIRE(fat_valid(fat, cluster));
    if (failed) // an entry of 12 bits may be changed by half
        return;
    if (fat->bits == 32) {
        REQUIRE(value >> 28 == old >> 28);
        value &= 0x0fffffff;
    }
    REQUIRE(value == 0 || value >= end || fat_valid(fat, value));
    REQUIRE(fat->tables == 1 ||
            entry(1, cluster, false) == entry(0, cluster, false));
    // The cluster that it leads to is not free.
    if (value && value < end)
        REQUIRE(entry(0, value, false) & 0x0fffffff);
}

// The entries of a changed sector, with those that are partly in it.
static void check_table_sector(u32 index)
{
    u32 first = index * FAT_SECTOR * 8 / fat->bits;
    u32 last = (index + 1) * FAT_SECTOR * 8 / fat->bits;
    u32 all = fat->table_sectors * FAT_SECTOR * 8 / fat->bits;
    for (u32 c = first ? first - 1 : 0; c <= last && c < all; c++)
        check_entry(c);
}

static void check_changes(void)
{
    for (u32 i = 0; i < kept_count; i++) {
        const struct sector *s = in_order[i];
        u32 at = s->number - fat->table_start;
        if (s->changed && at < fat->table_sectors)
            check_table_sector(at);
    }
    for (u32 i = 0; i < kept_count; i++) {
        struct sector *s = in_order[i];
        if (s->changed)
            memcpy(s->before, s->data, sizeof(s->before));
        s->changed = false;
    }
}

// --- images

static struct {
    u32 bits, table_start, table_sectors, root_start, data_start;
    u32 cluster_sectors;
} made;

static void put(u32 sector, u32 at, u32 value, u32 bytes)
{
    struct sector *s = find_kept(sector, true);
    for (u32 i = 0; s && i < bytes; i++)
        s->data[(at + i) % FAT_SECTOR] = (u8)(value >> 8 * i);
}

// An empty file system.
static void make(struct input *in)
{
    static const u8 kinds[] = { 12, 12, 16, 32 };
    u32 bits = kinds[take_byte(in) % 4], reserved = bits == 32 ? 3 : 1;
    u32 cluster = 1u << take_byte(in) % 4;
    u32 clusters = bits == 12   ? 20 + take_number(in, 2) % 4000
                   : bits == 16 ? 4085 + take_number(in, 2) % 3000
                                : 20 + take_number(in, 2) % 6000;
    u32 tables = 1 + take_byte(in) % 2, roots = bits == 32 ? 0 : 32;
    u32 table = ((clusters + 2) * bits / 8 + 1) / FAT_SECTOR + 1;
    fill = (u8[]){ 0, 0, 0xff, 0xe5 }[take_byte(in) % 4];
    made.bits = bits;
    made.table_start = reserved;
    made.table_sectors = table;
    made.root_start = reserved + tables * table;
    made.data_start = made.root_start + roots / 16;
    made.cluster_sectors = cluster;
    disk_sectors = made.data_start + clusters * cluster;
    for (u32 s = 0; s < made.table_start; s++)
        memset(find_kept(s, true)->data, 0, 512);
    put(0, 0, 0x90feeb, 3);
    put(0, 11, 512, 2);
    put(0, 13, cluster, 1);
    put(0, 14, reserved, 2);
    put(0, 16, tables, 1);
    put(0, 17, roots, 2);
    put(0, bits == 32 ? 32 : 19, disk_sectors, bits == 32 ? 4 : 2);
    put(0, bits == 32 ? 36 : 22, table, bits == 32 ? 4 : 2);
    put(0, 510, 0xaa55, 2);
    if (bits == 32) {
        put(0, 44, 2, 4);
        put(0, 48, 1, 2);
        put(1, 0, 0x41615252, 4);
        put(1, 484, 0x61417272, 4);
        put(1, 488, ~0u, 4);
        put(made.table_start, 8, 0x0fffffff, 4);
    }
    if (!fill)
        put(made.table_start, 0, 0x0ffffff8, bits == 32 ? 4 : bits / 4);
    disk_sectors = MIN(disk_sectors, DISK_MAX);
}

static void put_entry(u32 cluster, u32 value)
{
    u32 at = made.bits == 12 ? cluster + cluster / 2 : cluster * made.bits / 8;
    put(made.table_start + at / FAT_SECTOR, at, value, made.bits == 32 ? 4 : 2);
}

static void put_name(struct input *in, u32 sector, u32 at)
{
    u8 attributes = take_byte(in), letter = take_byte(in);
    for (u32 i = 0; i < 11; i++)
        put(sector, at + i, i == 1 ? letter : i < 4 ? 'A' : ' ', 1);
    put(sector, at + 11, attributes, 1);
    put(sector, at + 12, 0, 4);
    put(sector, at + 20, 0, 2);
    put(sector, at + 26, take_byte(in), 2);
    put(sector, at + 28, take_number(in, 2), 4);
}

static void edit(struct input *in)
{
    u8 how = take_byte(in), where = take_byte(in);
    u32 directory = how & 0x40 || made.bits == 32
                        ? made.data_start + where / 16 * made.cluster_sectors
                        : made.root_start + where / 16;
    switch (how % 8) {
    case 0:
        put(0, take_byte(in) % 96, take_byte(in), 1);
        break;
    case 1:
    case 2: // near: a chain
        put_entry(where, how & 0x80 ? take_number(in, 4) : take_byte(in));
        break;
    case 3:
        put_entry(where, ~0u);
        break;
    case 4:
    case 5:
        put_name(in, directory, where % 16 * 32);
        break;
    case 6:
        put(directory, take_number(in, 2) % 512, take_number(in, 2), 2);
        break;
    default:
        put(take_number(in, 2) % 512, take_number(in, 2) % 512,
            take_number(in, 4), 1 + how / 8 % 4);
    }
}

// --- use

static struct open_node {
    bool used, checked;
    struct fat_node node;
} nodes[NODES];
static u8 data[DATA_MAX];

// As find_vnode: one copy of each.
static struct open_node *open_node(const struct fat_node *n, u32 at)
{
    for (u32 i = 0; i < NODES; i++) {
        if (nodes[i].used && nodes[i].node.slot == n->slot &&
            nodes[i].node.directory == n->directory)
            return &nodes[i];
    }
    struct open_node *o = &nodes[1 + at % (NODES - 1)];
    if (o->used && o->node.slot == FAT_NO_SLOT)
        fat_discard(fat, &o->node);
    *o = (struct open_node){ .used = true, .node = *n };
    return o;
}

static bool usable(struct open_node *o)
{
    if (o->used && !o->checked)
        o->checked = fat_check(fat, &o->node) == 0;
    return o->used && o->checked;
}

static bool is_directory(const struct open_node *o)
{
    return o->node.attributes & FAT_DIRECTORY;
}

static bool is_open_directory(struct open_node *o)
{
    return usable(o) && is_directory(o) &&
           (o == nodes || o->node.slot != FAT_NO_SLOT);
}

static void check_entry_name(const struct fat_entry *e)
{
    REQUIRE(memchr(e->name, 0, sizeof(e->name)) && e->name[0]);
    REQUIRE(memchr(e->alias, 0, sizeof(e->alias)) && e->alias[0]);
    REQUIRE(!strchr(e->name, '/') && strcmp(e->name, ".") &&
            strcmp(e->name, ".."));
    REQUIRE(e->node.name_slot <= e->node.slot);
}

static void list(const struct open_node *o, u32 wanted)
{
    struct fat_walk w = { .directory = o->node.first };
    struct fat_entry e;
    u32 slot = 0;
    for (u32 n = 0; n < NAMES_MAX && !fat_read_name(fat, &w, &e); n++) {
        check_entry_name(&e);
        REQUIRE(w.slot > slot || n == 0);
        slot = w.slot;
        if (n >= wanted && n - wanted < NODES / 2)
            open_node(&e.node, n);
    }
}

static void take_name(struct input *in, char name[FAT_NAME_BYTES])
{
    static const char *const some[] = {
        "A",     "file.txt", "a longer name.data", "AAA~1", "Ab", ".x",
        "A.B.C", "e e"
    };
    u8 how = take_byte(in);
    u32 length = how & 0x40 ? 255 : how & 15;
    memset(name, 0, FAT_NAME_BYTES);
    if (!(how & 0x80)) {
        strcpy(name, some[how % 8]);
        return;
    }
    for (u32 i = 0; i < length; i++) {
        name[i] = in->left ? (char)take_byte(in) : 'n';
        if (name[i] == '/')
            name[i] = '_';
    }
}

static bool is_name(const char *name)
{
    return name[0] && strcmp(name, ".") && strcmp(name, "..");
}

static void create(struct input *in, const struct fat_node dir, u8 attributes)
{
    char name[FAT_NAME_BYTES];
    struct fat_entry e;
    struct fat_node made_node;
    take_name(in, name);
    if (!is_name(name) || fat_find(fat, &dir, name, &e) != -ENOENT)
        return;
    if (fat_create(fat, &dir, name, attributes, now, &made_node))
        return;
    struct open_node *o = &nodes[1 + take_byte(in) % (NODES - 1)];
    if (o->used && o->node.slot == FAT_NO_SLOT)
        fat_discard(fat, &o->node);
    *o = (struct open_node){ .used = true, .node = made_node };
    int err = fat_find(fat, &dir, name, &e);
    REQUIRE(failed || (!err && e.node.slot == made_node.slot));
}

static void move(struct input *in, struct open_node *o, struct open_node *dir)
{
    char name[FAT_NAME_BYTES];
    struct fat_entry e;
    take_name(in, name);
    if (o == nodes || o->node.slot == FAT_NO_SLOT || !is_name(name) ||
        fat_find(fat, &dir->node, name, &e) != -ENOENT)
        return;
    fat_rename(fat, &o->node, &dir->node, name);
}

static void change_size(struct input *in, struct open_node *o, u8 how)
{
    u32 bytes = take_number(in, 2), size = o->node.size;
    u32 pos = MIN(how & 0x80 ? size : take_number(in, 3), size);
    if (how & 0x40) {
        if (usable(o) || !pos)
            fat_shrink(fat, &o->node, pos, now);
        return;
    }
    if (!usable(o))
        return;
    int done = fat_write(fat, &o->node, pos, data, MIN(bytes, DATA_MAX), now);
    REQUIRE(done <= (int)DATA_MAX);
    REQUIRE(done < 0 || o->node.size >= pos + (u32)done);
    REQUIRE(done >= 0 || o->node.size == size);
}

static void read_file(struct input *in, struct open_node *o)
{
    u32 pos = take_number(in, 4), bytes = take_number(in, 2);
    u8 *to = malloc(bytes + 1);
    REQUIRE(to);
    int done = fat_read(fat, &o->node, pos, to, bytes);
    REQUIRE(done <= (int)bytes && (done <= 0 || pos < o->node.size));
    free(to);
}

static void remove_node(struct open_node *o)
{
    if (o == nodes || !o->used || o->node.slot == FAT_NO_SLOT)
        return;
    fat_remove(fat, &o->node);
}

static void step(struct input *in)
{
    u8 how = take_byte(in), which = take_byte(in);
    struct open_node *o = &nodes[which % NODES];
    struct open_node *other = &nodes[which / NODES % NODES];
    u32 free;
    switch (how % 16) {
    case 0:
    case 1:
    case 2:
        if (is_open_directory(o))
            list(o, how >> 4);
        break;
    case 3:
    case 4:
        if (is_open_directory(o))
            create(in, o->node, how & 0x80 ? FAT_DIRECTORY : 0);
        break;
    case 5:
        if (o->used && is_open_directory(other))
            move(in, o, other);
        break;
    case 6:
        remove_node(o);
        break;
    case 7:
        if (!fat_count_free(fat, &free))
            REQUIRE(free <= fat->clusters);
        break;
    case 8:
        fat_sync(fat);
        break;
    case 9:
        transfers_left = how & 0x80 ? which : NEVER;
        break;
    case 10:
    case 11:
        if (usable(o) && !is_directory(o))
            read_file(in, o);
        break;
    default:
        if (o->used && !is_directory(o))
            change_size(in, o, how);
    }
}

static void use(struct input *in)
{
    memset(nodes, 0, sizeof(nodes));
    fat_root(fat, &nodes[0].node);
    nodes[0].used = nodes[0].checked = true;
    REQUIRE(fat->bits != 32 || fat_check(fat, &nodes[0].node) == 0);
    failed = false;
    for (u32 i = 0; i < STEPS && in->left; i++) {
        step(in);
        check_changes();
        failed = failed && !transfers_left;
    }
    transfers_left = NEVER;
    for (u32 i = 1; i < NODES; i++) {
        if (nodes[i].used && nodes[i].node.slot == FAT_NO_SLOT)
            fat_discard(fat, &nodes[i].node);
    }
    fat_sync(fat);
    check_changes();
}

int LLVMFuzzerTestOneInput(const u8 *bytes, size_t size)
{
    struct input in = { bytes, size };
    fat = malloc(sizeof(*fat));
    REQUIRE(fat);
    transfers_left = NEVER;
    mounted = false;
    make(&in);
    for (u32 i = take_byte(&in) % 64; i; i--)
        edit(&in);
    for (u32 i = 0; i < kept_count; i++)
        memcpy(in_order[i]->before, in_order[i]->data, 512);
    struct fat_disk disk = { transfer, NULL, disk_sectors, AT_ONCE };
    mounted = !fat_mount(fat, &disk);
    if (mounted)
        use(&in);
    free(fat);
    empty_disk();
    return 0;
}
