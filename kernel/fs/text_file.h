// Files whose text is generated at each read (/proc, /dev/kmsg).
#pragma once

#include "kernel/fs/vfs.h"
#include "kernel/mm/chain.h"

#define TEXT_FILE_MAX MIB(1) // a longer text cannot be read: -ENOMEM

// Generates the contents, entries of 1 byte; 0 or -errno. May sleep.
typedef int (*text_maker)(struct chain *text, void *arg);

// One open file's text: generated at the first read and at each read from
// position 0, so that a sequential reader sees one consistent text. `lock`
// guards it against concurrent readers that share the file.
struct text_file;
struct text_file *text_file_create(void); // NULL: no memory
void text_file_free(struct text_file *tf);
// A file's read operation; bytes or -errno.
int text_file_read(struct text_file *tf, struct io *io, u64 *pos,
                   text_maker make, void *arg);
