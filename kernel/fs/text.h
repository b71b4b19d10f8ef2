// Text that is made when it is asked for: a buffer that grows, and files that
// show one (/proc, /dev/kmsg).
#pragma once

#include "kernel/fs/vfs.h"

// Growing never fails visibly: `failed` is set, what did not fit is left out.
struct text {
    char *data; // kfree'd by text_clear
    size_t len, room;
    bool failed;
};

void text_append(struct text *t, const void *data, size_t n);
void text_printf(struct text *t, const char *fmt, ...) PRINTF(2, 3);
void text_clear(struct text *t);

// Makes the contents; 0 or -errno. May sleep.
typedef int (*text_maker)(struct text *t, void *arg);

// One open file's text: made at the first read and at each read from position
// 0, so that a reader who goes on sees one consistent text. `lock` guards it
// against readers that share the file.
struct text_file;
struct text_file *text_file_create(void); // NULL: no memory
void text_file_free(struct text_file *tf);
// A file's read operation; bytes or -errno.
int text_file_read(struct text_file *tf, struct io *io, u64 *pos,
                   text_maker make, void *arg);
