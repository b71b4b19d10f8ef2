// Reading the sysinfo tree: see sysinfo.h.
#include "sysinfo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_SIZE 4096 // enough for most nodes
#define LARGE_SIZE (512 << 10)

int sysinfo_get_data(const char *path, void *buf, size_t size)
{
    return syscall(SYS_sysinfo_get_data, path, strlen(path), buf, size);
}

int sysinfo_get_keys(const char *path, char *buf, size_t size)
{
    return syscall(SYS_sysinfo_get_keys, path, strlen(path), buf, size);
}

int sysinfo_get_type(const char *path)
{
    return syscall(SYS_sysinfo_get_type, path, strlen(path));
}

typedef int (*getter)(const char *path, void *buf, size_t size);

static int get_keys(const char *path, void *buf, size_t size)
{
    return sysinfo_get_keys(path, buf, size);
}

// Retries with larger buffers until everything fits, since the node may grow
// between the calls. Appends `tail` zero bytes.
static void *read_all(getter get, const char *path, size_t room, size_t tail,
                      size_t *size)
{
    for (;;) {
        char *buf = malloc(room + tail);
        int n = buf != NULL ? get(path, buf, room) : -1;
        if (n >= 0 && (size_t)n <= room) {
            memset(buf + n, 0, tail);
            *size = n;
            return buf;
        }
        free(buf);
        if (n < 0)
            return NULL;
        room = n + n / 8;
    }
}

void *sysinfo_read(const char *path, size_t *size)
{
    return read_all(sysinfo_get_data, path, FIRST_SIZE, 1, size);
}

void *sysinfo_read_large(const char *path, size_t *size)
{
    return read_all(sysinfo_get_data, path, LARGE_SIZE, 1, size);
}

char *sysinfo_read_keys(const char *path)
{
    size_t size;

    return read_all(get_keys, path, FIRST_SIZE, 1, &size);
}

int sysinfo_read_value(const char *path, uint64_t *value)
{
    int type = sysinfo_get_type(path);

    if (type < 0)
        return -1;
    if (SYSINFO_KIND(type) == SYSINFO_VALUE) {
        int n = sysinfo_get_data(path, value, sizeof(*value));
        if (n < 0)
            return -1;
        if (n == sizeof(*value))
            return 0;
    }
    errno = EPROTO;
    return -1;
}

// Whether the node holds records of this type.
static int check_type(const char *path, uint32_t record)
{
    int type = sysinfo_get_type(path);

    if (type >= 0 && type != (int)SYSINFO_TYPE(SYSINFO_DATA, record)) {
        errno = EPROTO;
        return -1;
    }
    return type;
}

void *sysinfo_read_records(const char *path, uint32_t record, size_t *count)
{
    size_t size, each = sysinfo_record_type(record)->size;
    void *records = NULL;

    *count = 0;
    if (check_type(path, record) >= 0)
        records = sysinfo_read(path, &size);
    if (records && size % each != 0) {
        free(records);
        errno = EPROTO;
        return NULL;
    }
    if (records)
        *count = size / each;
    return records;
}

int sysinfo_get_record(const char *path, uint32_t record, void *out)
{
    size_t each = sysinfo_record_type(record)->size;
    int n;

    if (check_type(path, record) < 0)
        return -1;
    n = sysinfo_get_data(path, out, each);
    if (n >= 0 && (size_t)n >= each)
        return 0;
    if (n >= 0)
        errno = ENOENT;
    return -1;
}
