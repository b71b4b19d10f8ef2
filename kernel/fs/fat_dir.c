// FAT: directories (FAT, "Directory Structure", "Long Directory Entries"); see
// fat.h. A name is the entry of its alias, with those of its long name before
// it, the last part first.
#include "kernel/base/errno.h"
#include "kernel/fs/fat.h"
#include "lib/assert.h"
#include "lib/string.h"

#define SLOT_BYTES 32u
#define SECTOR_SLOTS (FAT_SECTOR / SLOT_BYTES)
#define SLOTS_MAX 65536u
#define ALIAS 11u

enum { // offsets in an entry
    AT_ATTRIBUTES = 11,
    AT_CASES = 12,
    AT_CREATED_TIME = 14,
    AT_CREATED_DATE = 16,
    AT_READ_DATE = 18,
    AT_FIRST_HIGH = 20,
    AT_TIME = 22,
    AT_DATE = 24,
    AT_FIRST_LOW = 26,
    AT_SIZE = 28,
};
enum { // and in one of a long name
    AT_ORDER = 0,
    AT_SUM = 13,
};
#define IS_LAST 0x40
#define ORDER 0x3f
#define PARTS_MAX 20u
#define UNUSED_SLOT 0xe5
#define END_SLOT 0
#define LABEL 0x08
#define LONG_NAME 0x0f
#define ATTRIBUTES 0x3f
#define ARCHIVE 0x20
#define ATTEMPTS 100u

static const u8 unit_at[FAT_PART_UNITS] = { 1,  3,  5,  7,  9,  14, 16,
                                            18, 20, 22, 24, 28, 30 };

// --- slots

static int load_slots(struct fat *f, u32 sector)
{
    if (f->slot_sector == sector)
        return 0;
    int err = fat_flush_slots(f);
    if (err)
        return err;
    f->slot_sector = 0;
    err = f->disk.transfer(f->disk.arg, false, sector, 1, f->slots);
    if (!err)
        f->slot_sector = sector;
    return err;
}

// Moves to the cluster that has the sector of a directory. -ENOENT: it has
// none.
static int find_cluster(struct fat *f, struct fat_walk *w, u32 sector)
{
    u32 wanted = sector / f->cluster_sectors;
    if (!w->cluster || w->index > wanted) {
        w->index = 0;
        w->cluster = w->directory;
    }
    while (w->index < wanted) {
        u32 next;
        int err = fat_next(f, w->cluster, &next);
        if (err || next == FAT_END)
            return err ? err : -ENOENT;
        w->index++;
        w->cluster = next;
    }
    return fat_valid(f, w->cluster) ? 0 : -EIO;
}

// The entry at w->slot, in f->slots. -ENOENT: the directory ends before it.
static int load_slot(struct fat *f, struct fat_walk *w, u8 **slot)
{
    u32 sector = w->slot / SECTOR_SLOTS, at;
    if (w->slot >= SLOTS_MAX)
        return w->directory ? -EIO : -ENOENT; // or it comes to itself
    if (w->directory) {
        int err = find_cluster(f, w, sector);
        if (err)
            return err;
        at = fat_sector(f, w->cluster) + sector % f->cluster_sectors;
    } else if (sector < f->root_sectors) {
        at = f->root_start + sector;
    } else {
        return -ENOENT;
    }
    int err = load_slots(f, at);
    *slot = f->slots + w->slot % SECTOR_SLOTS * SLOT_BYTES;
    return err;
}

// --- reading

// A long name whose parts are being read.
struct parts {
    u32 missing; // parts; 0: none, or all are there
    u32 count;   // of units
    u32 first;   // slot
    u8 sum;
    bool begun;
    u16 units[PARTS_MAX * FAT_PART_UNITS];
};

static void take_part(struct parts *p, const u8 *slot, u32 at)
{
    u32 order = slot[AT_ORDER] & ORDER;
    bool last = slot[AT_ORDER] & IS_LAST;
    if (last && order && order <= PARTS_MAX) {
        p->begun = true;
        p->missing = order;
        p->count = order * FAT_PART_UNITS;
        p->first = at;
        p->sum = slot[AT_SUM];
    } else if (!p->begun || last || order != p->missing ||
               slot[AT_SUM] != p->sum) {
        p->begun = false;
        return;
    }
    p->missing--;
    for (u32 i = 0; i < FAT_PART_UNITS; i++) {
        u32 to = p->missing * FAT_PART_UNITS + i;
        p->units[to] = (u16)disk_word(slot + unit_at[i]);
        if (!p->units[to])
            p->count = MIN(p->count, to);
    }
}

static bool take_name(const struct parts *p, const u8 *slot,
                      struct fat_entry *out)
{
    if (!fat_decode_alias(slot, slot[AT_CASES], out->alias))
        return false;
    bool whole = p->begun && !p->missing && p->sum == fat_alias_sum(slot);
    if (whole && fat_decode_name(p->units, p->count, out->name)) {
        out->node.name_slot = p->first;
        return true;
    }
    memcpy(out->name, out->alias, sizeof(out->alias));
    return strcmp(out->name, ".") != 0 && strcmp(out->name, "..") != 0;
}

static void take_node(const struct fat *f, const u8 *slot,
                      const struct fat_walk *w, struct fat_node *n)
{
    *n = (struct fat_node){
        .first = disk_word(slot + AT_FIRST_LOW),
        .size = disk_long(slot + AT_SIZE),
        .attributes = slot[AT_ATTRIBUTES] & ATTRIBUTES,
        .written = { .date = (u16)disk_word(slot + AT_DATE),
                     .time = (u16)disk_word(slot + AT_TIME) },
        .directory = w->directory,
        .name_slot = w->slot,
        .slot = w->slot,
    };
    if (f->bits == 32)
        n->first |= disk_word(slot + AT_FIRST_HIGH) << 16;
    if (n->attributes & FAT_DIRECTORY)
        n->size = 0;
}

int fat_read_name(struct fat *f, struct fat_walk *w, struct fat_entry *out)
{
    struct parts p = { .begun = false };
    for (;; w->slot++) {
        u8 *slot;
        int err = load_slot(f, w, &slot);
        if (err)
            return err;
        if (slot[0] == END_SLOT)
            return -ENOENT;
        bool part = (slot[AT_ATTRIBUTES] & ATTRIBUTES) == LONG_NAME;
        if (slot[0] != UNUSED_SLOT && part) {
            take_part(&p, slot, w->slot);
            continue;
        }
        if (slot[0] != UNUSED_SLOT && !(slot[AT_ATTRIBUTES] & LABEL)) {
            take_node(f, slot, w, &out->node);
            if (take_name(&p, slot, out)) {
                w->slot++;
                return 0;
            }
        }
        p.begun = false;
    }
}

static struct fat_walk begin_of(const struct fat_node *directory)
{
    return (struct fat_walk){ .directory = directory->first };
}

int fat_find(struct fat *f, const struct fat_node *directory, const char *name,
             struct fat_entry *out)
{
    struct fat_walk w = begin_of(directory);
    int err;
    do {
        err = fat_read_name(f, &w, out);
    } while (!err && !fat_same_name(name, out->name) &&
             !fat_same_name(name, out->alias));
    return err;
}

int fat_empty(struct fat *f, const struct fat_node *directory)
{
    struct fat_entry e;
    struct fat_walk w = begin_of(directory);
    int err = fat_read_name(f, &w, &e);
    if (err == -ENOENT)
        return 0;
    return err ? err : -ENOTEMPTY;
}

// --- writing

static void fill_node(const struct fat *f, const struct fat_node *n, u8 *slot)
{
    fat_put_word(slot + AT_FIRST_LOW, n->first);
    if (f->bits == 32)
        fat_put_word(slot + AT_FIRST_HIGH, n->first >> 16);
    fat_put_long(slot + AT_SIZE, n->size);
    fat_put_word(slot + AT_DATE, n->written.date);
    fat_put_word(slot + AT_TIME, n->written.time);
}

int fat_update(struct fat *f, const struct fat_node *n)
{
    struct fat_walk w = { .directory = n->directory, .slot = n->slot };
    u8 *slot;
    int err = fat_flush_table(f);
    if (err || n->slot == FAT_NO_SLOT)
        return err;
    err = load_slot(f, &w, &slot);
    if (err)
        return err == -ENOENT ? -EIO : err;
    fill_node(f, n, slot);
    f->slot_dirty = true;
    return fat_flush(f);
}

static int clear_cluster(struct fat *f, u32 cluster)
{
    int err = fat_flush_slots(f);
    if (err)
        return err;
    f->slot_sector = 0;
    memset(f->slots, 0, FAT_SECTOR);
    for (u32 i = 0; i < f->cluster_sectors && !err; i++)
        err = f->disk.transfer(f->disk.arg, true, fat_sector(f, cluster) + i, 1,
                               f->slots);
    return err;
}

// Adds a cluster to a directory, whose last one is w->cluster.
static int grow(struct fat *f, struct fat_walk *w)
{
    u32 added;
    if (!w->directory || w->slot >= SLOTS_MAX)
        return -ENOSPC;
    int err = fat_append(f, 0, &added);
    if (!err)
        err = clear_cluster(f, added);
    return err ? err : fat_link(f, w->cluster, added);
}

// Moves `w` to the first of `count` slots in a row that are free, and tells
// whether the directory's end was among them.
static int find_room(struct fat *f, struct fat_walk *w, u32 count, bool *at_end)
{
    u32 free = 0;
    *at_end = false;
    for (; free < count; w->slot++) {
        u8 *slot;
        int err = load_slot(f, w, &slot);
        if (err == -ENOENT) {
            err = grow(f, w);
            if (!err)
                err = load_slot(f, w, &slot);
        }
        if (err)
            return err == -ENOENT ? -EIO : err;
        *at_end |= slot[0] == END_SLOT;
        free = *at_end || slot[0] == UNUSED_SLOT ? free + 1 : 0;
    }
    w->slot -= count;
    return 0;
}

static void fill_part(u8 *slot, const u16 *units, u32 count, u32 order,
                      bool last, u8 sum)
{
    memset(slot, 0, SLOT_BYTES);
    slot[AT_ORDER] = (u8)(order | (last ? IS_LAST : 0));
    slot[AT_ATTRIBUTES] = LONG_NAME;
    slot[AT_SUM] = sum;
    for (u32 i = 0; i < FAT_PART_UNITS; i++) {
        u32 at = (order - 1) * FAT_PART_UNITS + i;
        fat_put_word(slot + unit_at[i], at < count    ? units[at]
                                        : at == count ? 0
                                                      : 0xffff);
    }
}

// The end may be followed by what was never cleared.
static int write_end(struct fat *f, struct fat_walk *w)
{
    u8 *slot;
    int err = load_slot(f, w, &slot);
    if (err || slot[0] == END_SLOT)
        return err == -ENOENT || w->slot >= SLOTS_MAX ? 0 : err;
    slot[0] = END_SLOT;
    f->slot_dirty = true;
    return 0;
}

// An alias that the directory does not have. *whole: it says the whole name.
static int choose_alias(struct fat *f, const struct fat_node *directory,
                        const char *name, u8 alias[ALIAS], bool *whole)
{
    struct fat_entry e;
    char text[FAT_ALIAS_BYTES];
    int err = 0;
    for (u32 attempt = 1; attempt <= ATTEMPTS && !err; attempt++) {
        *whole = fat_make_alias(name, attempt, alias);
        if (!fat_decode_alias(alias, 0, text))
            return -EINVAL;
        err = fat_find(f, directory, text, &e);
    }
    return err == -ENOENT ? 0 : err ? err : -ENOSPC;
}

static u8 attributes_of(const struct fat_node *n)
{
    return n->attributes & FAT_DIRECTORY ? n->attributes
                                         : n->attributes | ARCHIVE;
}

// Writes a node's name into a directory.
static int enter(struct fat *f, const struct fat_node *directory,
                 const char *name, struct fat_node *n)
{
    u16 units[FAT_UNITS_MAX + 1];
    u8 alias[ALIAS], *slot;
    bool whole, at_end;
    u32 count = fat_encode_name(name, units);
    if (!count)
        return -EINVAL;
    int err = choose_alias(f, directory, name, alias, &whole);
    if (err)
        return err;
    u32 parts = whole ? 0 : (count + FAT_PART_UNITS - 1) / FAT_PART_UNITS;
    struct fat_walk w = begin_of(directory);
    err = find_room(f, &w, parts + 1, &at_end);
    u32 name_slot = w.slot;
    for (u32 order = parts; order && !err; order--, w.slot++) {
        err = load_slot(f, &w, &slot);
        if (err)
            break;
        fill_part(slot, units, count, order, order == parts,
                  fat_alias_sum(alias));
        f->slot_dirty = true;
    }
    if (!err)
        err = load_slot(f, &w, &slot);
    if (err)
        return err;
    memset(slot, 0, SLOT_BYTES);
    memcpy(slot, alias, ALIAS);
    slot[AT_ATTRIBUTES] = attributes_of(n);
    fat_put_word(slot + AT_CREATED_DATE, n->written.date);
    fat_put_word(slot + AT_CREATED_TIME, n->written.time);
    fat_put_word(slot + AT_READ_DATE, n->written.date);
    fill_node(f, n, slot);
    f->slot_dirty = true;
    n->directory = directory->first;
    n->name_slot = name_slot;
    n->slot = w.slot++;
    return at_end ? write_end(f, &w) : 0;
}

// The directory's own two entries. The root is 0 in "..", also with FAT32.
static int write_dots(struct fat *f, const struct fat_node *n, u32 parent)
{
    struct fat_node up = *n;
    int err = clear_cluster(f, n->first);
    if (!err)
        err = load_slots(f, fat_sector(f, n->first));
    if (err)
        return err;
    up.first = parent == f->root_cluster ? 0 : parent;
    memset(f->slots, ' ', ALIAS);
    memset(f->slots + SLOT_BYTES, ' ', ALIAS);
    f->slots[0] = f->slots[SLOT_BYTES] = f->slots[SLOT_BYTES + 1] = '.';
    f->slots[AT_ATTRIBUTES] = FAT_DIRECTORY;
    f->slots[SLOT_BYTES + AT_ATTRIBUTES] = FAT_DIRECTORY;
    fill_node(f, n, f->slots);
    fill_node(f, &up, f->slots + SLOT_BYTES);
    f->slot_dirty = true;
    return fat_flush(f);
}

int fat_create(struct fat *f, const struct fat_node *directory,
               const char *name, u8 attributes, struct fat_time now,
               struct fat_node *out)
{
    int err = 0;
    *out = (struct fat_node){ .attributes = attributes,
                              .written = now,
                              .slot = FAT_NO_SLOT };
    if (attributes & FAT_DIRECTORY) {
        err = fat_append(f, 0, &out->first);
        if (err)
            return err;
        err = write_dots(f, out, directory->first);
    }
    if (!err)
        err = enter(f, directory, name, out);
    if (!err)
        return fat_sync(f);
    out->slot = FAT_NO_SLOT;
    fat_discard(f, out);
    return err;
}

static int remove_slots(struct fat *f, u32 directory, u32 first, u32 last)
{
    struct fat_walk w = { .directory = directory, .slot = first };
    for (; w.slot <= last; w.slot++) {
        u8 *slot;
        int err = load_slot(f, &w, &slot);
        if (err)
            return err == -ENOENT ? -EIO : err;
        slot[0] = UNUSED_SLOT;
        f->slot_dirty = true;
    }
    return fat_flush(f);
}

int fat_remove(struct fat *f, struct fat_node *n)
{
    assert(n->slot != FAT_NO_SLOT);
    int err = n->attributes & FAT_DIRECTORY ? fat_empty(f, n) : 0;
    if (!err)
        err = remove_slots(f, n->directory, n->name_slot, n->slot);
    if (!err)
        n->slot = FAT_NO_SLOT;
    return err;
}

static int set_parent(struct fat *f, const struct fat_node *n, u32 parent)
{
    if (!fat_valid(f, n->first))
        return -EIO;
    int err = load_slots(f, fat_sector(f, n->first));
    if (err)
        return err;
    u8 *slot = f->slots + SLOT_BYTES;
    parent = parent == f->root_cluster ? 0 : parent;
    if (slot[0] != '.' || slot[1] != '.')
        return -EIO;
    fat_put_word(slot + AT_FIRST_LOW, parent);
    if (f->bits == 32)
        fat_put_word(slot + AT_FIRST_HIGH, parent >> 16);
    f->slot_dirty = true;
    return fat_flush(f);
}

// The new name is written first: the file is never without one.
int fat_rename(struct fat *f, struct fat_node *n,
               const struct fat_node *directory, const char *name)
{
    struct fat_node moved = *n;
    int err = enter(f, directory, name, &moved);
    if (!err)
        err = fat_flush(f);
    if (!err)
        err = remove_slots(f, n->directory, n->name_slot, n->slot);
    if (!err && n->attributes & FAT_DIRECTORY &&
        directory->first != n->directory)
        err = set_parent(f, n, directory->first);
    if (!err)
        *n = moved;
    return err;
}
