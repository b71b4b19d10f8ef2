// FAT: the table of clusters (FAT, "FAT Data Structure"); see fat.h. Eight
// sectors of it are held; what is changed there is written to each copy of the
// table by fat_flush_table, or before others are held.
#include "kernel/base/errno.h"
#include "kernel/fs/fat.h"
#include "lib/assert.h"
#include "lib/string.h"

#define FREE 0u
#define FIRST_CLUSTER 2u
#define VALUE_32 0x0fffffffu // the other bits are kept

bool fat_valid(const struct fat *f, u32 cluster)
{
    return cluster >= FIRST_CLUSTER && cluster - FIRST_CLUSTER < f->clusters;
}

u32 fat_sector(const struct fat *f, u32 cluster)
{
    assert(fat_valid(f, cluster));
    return f->data_start + (cluster - FIRST_CLUSTER) * f->cluster_sectors;
}

int fat_flush_table(struct fat *f)
{
    int err = 0;
    if (f->dirty_from == f->dirty_to)
        return 0;
    assert(f->dirty_from < f->dirty_to && f->dirty_to <= f->held_sectors);
    u32 first = f->table_start + f->held + f->dirty_from;
    u32 count = f->dirty_to - f->dirty_from;
    u8 *data = f->table + f->dirty_from * FAT_SECTOR;
    for (u32 i = 0; i < f->tables && !err; i++)
        err = f->disk.transfer(f->disk.arg, true, first + i * f->table_sectors,
                               count, data);
    f->dirty_from = f->dirty_to = 0;
    if (err)
        fat_forget(f);
    return err;
}

int fat_load_table(struct fat *f, u32 sector)
{
    assert(sector < f->table_sectors);
    if (f->held_sectors && sector - f->held < f->held_sectors)
        return 0;
    int err = fat_flush_table(f);
    if (err)
        return err;
    f->held_sectors = 0;
    f->held = sector / FAT_WINDOW * FAT_WINDOW;
    u32 count = MIN(FAT_WINDOW, f->table_sectors - f->held);
    err = f->disk.transfer(f->disk.arg, false, f->table_start + f->held, count,
                           f->table);
    if (!err)
        f->held_sectors = count;
    return err;
}

static u8 *held_byte(struct fat *f, u32 at)
{
    return &f->table[at - f->held * FAT_SECTOR];
}

static void mark_dirty(struct fat *f, u32 at)
{
    u32 sector = at / FAT_SECTOR - f->held;
    bool clean = f->dirty_from == f->dirty_to;
    f->dirty_from = clean ? sector : MIN(f->dirty_from, sector);
    f->dirty_to = clean ? sector + 1 : MAX(f->dirty_to, sector + 1);
}

// The entry's bytes. One of FAT12 shares a byte with its neighbour, and may be
// in two sectors.
static u32 entry_at(const struct fat *f, u32 cluster)
{
    return f->bits == 12 ? cluster + cluster / 2 : cluster * (f->bits / 8);
}

static u32 entry_bytes(const struct fat *f)
{
    return f->bits == 32 ? 4 : 2;
}

static int read_raw(struct fat *f, u32 cluster, u32 *value)
{
    u32 at = entry_at(f, cluster);
    assert(fat_valid(f, cluster));
    *value = 0;
    for (u32 i = 0; i < entry_bytes(f); i++) {
        int err = fat_load_table(f, (at + i) / FAT_SECTOR);
        if (err)
            return err;
        *value |= (u32)*held_byte(f, at + i) << 8 * i;
    }
    return 0;
}

static int get(struct fat *f, u32 cluster, u32 *value)
{
    int err = read_raw(f, cluster, value);
    if (f->bits == 12)
        *value = cluster & 1 ? *value >> 4 : *value & 0xfff;
    if (f->bits == 32)
        *value &= VALUE_32;
    return err;
}

static int set(struct fat *f, u32 cluster, u32 value)
{
    u32 raw, at = entry_at(f, cluster);
    int err = read_raw(f, cluster, &raw);
    if (f->bits == 12)
        raw = cluster & 1 ? (raw & 0xf) | value << 4
                          : (raw & 0xf000) | (value & 0xfff);
    else if (f->bits == 32)
        raw = (raw & ~VALUE_32) | (value & VALUE_32);
    else
        raw = value;
    for (u32 i = 0; i < entry_bytes(f) && !err; i++) {
        err = fat_load_table(f, (at + i) / FAT_SECTOR);
        if (err)
            break;
        *held_byte(f, at + i) = (u8)(raw >> 8 * i);
        mark_dirty(f, at + i);
    }
    return err;
}

// The values from here on end a chain.
static u32 end_from(const struct fat *f)
{
    return f->bits == 12 ? 0xff8 : f->bits == 16 ? 0xfff8 : 0x0ffffff8;
}

int fat_next(struct fat *f, u32 cluster, u32 *next)
{
    u32 value;
    if (!fat_valid(f, cluster))
        return -EIO;
    int err = get(f, cluster, &value);
    if (err)
        return err;
    *next = value >= end_from(f) ? FAT_END : value;
    return *next == FAT_END || fat_valid(f, value) ? 0 : -EIO;
}

static void count_free(struct fat *f, bool freed)
{
    f->free_changed = true;
    if (f->free == FAT_UNKNOWN || (freed ? f->free == f->clusters : !f->free))
        f->free = FAT_UNKNOWN; // it was wrong
    else
        f->free += freed ? 1 : -1u;
}

static int find_free(struct fat *f, u32 *found)
{
    for (u32 i = 0; i < f->clusters; i++) {
        u32 value, cluster = f->next;
        f->next = fat_valid(f, cluster + 1) ? cluster + 1 : FIRST_CLUSTER;
        int err = get(f, cluster, &value);
        if (err)
            return err;
        if (value == FREE) {
            *found = cluster;
            return 0;
        }
    }
    return -ENOSPC;
}

int fat_link(struct fat *f, u32 last, u32 next)
{
    return set(f, last, next);
}

int fat_append(struct fat *f, u32 last, u32 *added)
{
    int err = find_free(f, added);
    if (!err)
        err = set(f, *added, end_from(f) | 7);
    if (!err)
        count_free(f, false);
    return !err && last ? set(f, last, *added) : err;
}

int fat_free_chain(struct fat *f, u32 first)
{
    u32 next;
    for (u32 cluster = first; fat_valid(f, cluster); cluster = next) {
        int err = get(f, cluster, &next);
        if (err || next == FREE) // the chain has come to itself, or is broken
            return err;
        err = set(f, cluster, FREE);
        if (err)
            return err;
        count_free(f, true);
    }
    return 0;
}

int fat_cut(struct fat *f, u32 last)
{
    u32 next;
    int err = fat_next(f, last, &next);
    if (err || next == FAT_END)
        return err;
    err = set(f, last, end_from(f) | 7);
    return err ? err : fat_free_chain(f, next);
}

int fat_count_free(struct fat *f, u32 *free)
{
    if (f->free != FAT_UNKNOWN) {
        *free = f->free;
        return 0;
    }
    *free = 0;
    for (u32 i = 0; i < f->clusters; i++) {
        u32 value;
        int err = get(f, FIRST_CLUSTER + i, &value);
        if (err)
            return err;
        *free += value == FREE;
    }
    f->free = *free;
    return 0;
}
