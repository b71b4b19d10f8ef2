#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/assert.h"

#define CREATED_MODE 0666

const char *output_open(struct output *o, const char *path)
{
    struct stat st;
    *o = (struct output){ .buffer = malloc(OUTPUT_BYTES) };
    if (!o->buffer)
        return "not enough memory";
    o->pipe = stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
    o->fd = o->pipe ? open(path, O_WRONLY | O_CLOEXEC)
                    : open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
                           CREATED_MODE);
    if (o->fd >= 0 && fstat(o->fd, &st) == 0 &&
        (S_ISREG(st.st_mode) || (o->pipe && S_ISFIFO(st.st_mode))))
        return NULL;
    const char *problem =
        o->fd < 0 ? strerror(errno)
                  : "it must be a file, for its beginning is written again at "
                    "the end, or a pipe";
    output_close(o);
    return problem;
}

void output_flush(struct output *o)
{
    uint32_t done = 0;
    while (done < o->used) {
        ssize_t n = write(o->fd, o->buffer + done, o->used - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += n;
    }
    o->failed |= done < o->used;
    o->used = 0;
}

void *output_room(struct output *o, uint32_t size)
{
    assert(size <= OUTPUT_BYTES);
    if (size > OUTPUT_BYTES - o->used)
        output_flush(o);
    return o->buffer + o->used;
}

void output_take(struct output *o, uint32_t size)
{
    assert(size <= OUTPUT_BYTES - o->used);
    o->used += size;
}

void output_add(struct output *o, const void *bytes, uint32_t size)
{
    if (size == 0)
        return;
    memcpy(output_room(o, size), bytes, size);
    output_take(o, size);
}

void output_close(struct output *o)
{
    if (o->fd >= 0)
        close(o->fd);
    free(o->buffer);
    *o = (struct output){ .fd = -1 };
}
