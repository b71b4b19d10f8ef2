// cpio archives in the "new ASCII" format (magic 070701, and 070702 with a
// checksum that is ignored), as `cpio -H newc` writes them.
//
// Pure: the archive is in memory, nothing is allocated or copied. Archives may
// follow each other, with zeros between them.
#pragma once

#include "lib/types.h"

struct cpio_entry {
    const char *name; // NUL-terminated, inside the archive
    const u8 *data;   // `size` bytes, inside the archive
    u32 size;
    u32 ino, mode, uid, gid, nlink, mtime;
    u32 dev_major, dev_minor;   // the device it was archived from
    u32 rdev_major, rdev_minor; // for a device node
};

enum cpio_result {
    CPIO_ENTRY,     // *e is filled, *pos is after it
    CPIO_END,       // only padding was left after a trailer
    CPIO_TRUNCATED, // the archive ends in or before the entry at *pos
    CPIO_CORRUPT,   // there is no valid entry at *pos
};

// Reads the entry at *pos. Trailers are skipped.
enum cpio_result cpio_next(const u8 *archive, size_t size, size_t *pos,
                           struct cpio_entry *e);
