// FAT file systems (Microsoft, "FAT32 File System Specification", 1.03, 2000;
// below "FAT", with its section's name): FAT12, FAT16 and FAT32, with long
// names, on a disk of 512-byte sectors.
//
// Pure code over a disk's transfer function. What is on the disk is not
// trusted: clusters out of range, chains and directories without an end, sizes
// that their chains do not have give -EIO, and nothing is read or written
// outside the file system. Each change is on the disk when its function
// returns, data first, then the table, then the directory: a disk that vanishes
// at any moment leaves a file system that a checker mends, and files that have
// lost at most what the last call wrote.
//
// One caller at a time: the caller has a lock for each `struct fat`. An error
// is what the disk's function returned, or -EIO, -ENOSPC, -ENOENT, -EINVAL,
// -EFBIG, -ENOTEMPTY. After an error of a write the file is as it was before.
#pragma once

#include "kernel/block/partition.h"

#define FAT_SECTOR BLOCK_SECTOR
#define FAT_WINDOW 8u       // sectors of the table that are held
#define FAT_NAME_BYTES 256u // with the NUL
#define FAT_ALIAS_BYTES 13u
#define FAT_UNKNOWN (~0u)

struct fat_disk {
    int (*transfer)(void *arg, bool write, u32 sector, u32 count, void *data);
    void *arg;
    u32 sectors;
    u32 at_once; // most sectors of a transfer
};

struct fat {
    struct fat_disk disk;
    u32 bits; // of an entry of the table: 12, 16, 32
    u32 table_start, table_sectors, tables;
    u32 root_cluster;             // FAT32
    u32 root_start, root_sectors; // the others
    u32 data_start, cluster_sectors, clusters;
    u32 info_sector; // 0: none
    u32 free;        // clusters, or FAT_UNKNOWN: neither known nor told
    bool free_changed;
    u32 next; // where the search for a free cluster begins

    u32 held, held_sectors; // part of the table; held_sectors 0: none
    u32 dirty_from, dirty_to;
    u8 table[FAT_WINDOW * FAT_SECTOR];
    u32 slot_sector; // of a directory; 0: none
    bool slot_dirty;
    u8 slots[FAT_SECTOR];
    u8 part[FAT_SECTOR]; // of a file
};

struct fat_time {
    u16 date, time;
};

#define FAT_READ_ONLY 0x01
#define FAT_DIRECTORY 0x10
#define FAT_NO_SLOT (~0u)

// A file or directory. The caller keeps one copy of each.
struct fat_node {
    u32 first; // cluster; 0: none
    u32 size;  // of a file
    u8 attributes;
    struct fat_time written;
    u32 directory;       // where its name is: first cluster, as in fat_walk
    u32 name_slot, slot; // first and last entry; FAT_NO_SLOT: no name
    u32 index, cluster;  // of its chain, where the last access was; or 0
};

// A place in a directory. Only `directory` is set: its begin.
struct fat_walk {
    u32 directory; // first cluster; 0: the root of FAT12 and FAT16
    u32 slot;
    u32 index, cluster;
};

struct fat_entry {
    char name[FAT_NAME_BYTES]; // UTF-8
    char alias[FAT_ALIAS_BYTES];
    struct fat_node node;
};

// --- fat_volume.c

// The file system of a disk without partitions, or of one partition, whose
// sectors are then `disk`. NULL, or why there is none.
const char *fat_mount(struct fat *f, const struct fat_disk *disk);
void fat_root(const struct fat *f, struct fat_node *root);
// Writes what is changed but for the number of free clusters.
int fat_flush(struct fat *f);
// Writes that number, too (only FAT32 has it).
int fat_sync(struct fat *f);
// The number of free clusters. Reads the table if it is not known.
int fat_count_free(struct fat *f, u32 *free);

// Seconds since 1970, UTC, in steps of 2. What is no date is 1980, or 0.
struct fat_time fat_time_of(s64 seconds);
s64 fat_seconds(struct fat_time t);

// --- fat_table.c: for the other parts

#define FAT_END (~0u)
bool fat_valid(const struct fat *f, u32 cluster);
// The cluster's sector.
u32 fat_sector(const struct fat *f, u32 cluster);
// The next cluster of a chain, or FAT_END. -EIO: none that can be.
int fat_next(struct fat *f, u32 cluster, u32 *next);
// Adds a cluster behind `last` (0: to nothing).
int fat_append(struct fat *f, u32 last, u32 *added);
int fat_link(struct fat *f, u32 last, u32 next);
// Cuts a chain off behind `last`.
int fat_cut(struct fat *f, u32 last);
// Frees a chain as far as it is one.
int fat_free_chain(struct fat *f, u32 first);
int fat_load_table(struct fat *f, u32 sector); // of the table
int fat_flush_table(struct fat *f);
int fat_flush_slots(struct fat *f);
// What could not be written is forgotten: all that is held is as on the disk.
void fat_forget(struct fat *f);

// --- fat_file.c

// Whether the chain has an end, and suffices for the size; a directory has one.
// To be called before the node is used. fat_mount has done it for the root.
int fat_check(struct fat *f, const struct fat_node *n);
// Bytes done (0: at the end) or an error. A write grows the file, but leaves no
// hole: pos <= n->size. It may do less than all.
int fat_read(struct fat *f, struct fat_node *n, u32 pos, void *data, u32 bytes);
int fat_write(struct fat *f, struct fat_node *n, u32 pos, const void *data,
              u32 bytes, struct fat_time now);
// Makes a file shorter.
int fat_shrink(struct fat *f, struct fat_node *n, u32 size,
               struct fat_time now);
// Frees what a file without a name has.
int fat_discard(struct fat *f, struct fat_node *n);

// --- fat_dir.c

// The next name; -ENOENT: there is none.
int fat_read_name(struct fat *f, struct fat_walk *w, struct fat_entry *out);
// Names are compared without regard to the case of ASCII letters, also with
// the aliases (8.3).
int fat_find(struct fat *f, const struct fat_node *directory, const char *name,
             struct fat_entry *out);
// Writes size, first cluster and time into the directory.
int fat_update(struct fat *f, const struct fat_node *n);
// A new file, or directory (attributes). The name does not exist yet.
int fat_create(struct fat *f, const struct fat_node *directory,
               const char *name, u8 attributes, struct fat_time now,
               struct fat_node *out);
// Removes the name only: see fat_discard. A directory must be empty.
int fat_remove(struct fat *f, struct fat_node *n);
int fat_rename(struct fat *f, struct fat_node *n,
               const struct fat_node *directory, const char *name);
int fat_empty(struct fat *f, const struct fat_node *directory);

// --- fat_name.c

#define FAT_UNITS_MAX 255u // of UTF-16
#define FAT_PART_UNITS 13u // of a directory's entry
// UTF-16 of a name that may be written; 0: it may not. A NUL follows.
u32 fat_encode_name(const char *name, u16 units[FAT_UNITS_MAX + 1]);
// UTF-8 of a name as the disk has it; false: the name cannot be used.
bool fat_decode_name(const u16 *units, u32 count, char name[FAT_NAME_BYTES]);
// Of the 11 bytes of an alias, and the flags of its case. False: as above.
bool fat_decode_alias(const u8 *alias, u8 cases, char out[FAT_ALIAS_BYTES]);
// The alias of a name. True: it says the whole name. Else `attempt` (from 1)
// chooses one of many.
bool fat_make_alias(const char *name, u32 attempt, u8 alias[11]);
u8 fat_alias_sum(const u8 *alias);
bool fat_same_name(const char *a, const char *b);

static inline void fat_put_word(u8 *p, u32 v)
{
    p[0] = (u8)v;
    p[1] = (u8)(v >> 8);
}
static inline void fat_put_long(u8 *p, u32 v)
{
    fat_put_word(p, v);
    fat_put_word(p + 2, v >> 16);
}
