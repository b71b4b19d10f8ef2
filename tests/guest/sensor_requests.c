// SENSOR_CREATE with bad and with random layouts: refused by the error that
// says why, and nothing is left.
//
//     /test/sensor_requests [SEED]
#include "sensors.h"

#include <sys/mman.h>
#include <sys/stat.h>

#define PATH "/sensors/requests"
#define ROUNDS 3000u

static uint64_t state;

static uint32_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static void refused(const struct sensor_layout *l, int error)
{
    int fd = open(PATH, O_CREAT | O_RDWR, 0644);
    check(fd >= 0);
    check_error(request(fd, l), error);
    check(close(fd) == 0 && access(PATH, F_OK) < 0);
}

#define HISTOGRAM(...)                                         \
    &(struct sensor_layout)                                    \
    {                                                          \
        .type = SENSOR_HISTOGRAM, .histogram = { __VA_ARGS__ } \
    }
#define LIST(...)                                    \
    &(struct sensor_layout)                          \
    {                                                \
        .type = SENSOR_LIST, .list = { __VA_ARGS__ } \
    }

static void bad_layouts(void)
{
    refused(&(struct sensor_layout){ .type = SENSOR_NONE }, EINVAL);
    refused(&(struct sensor_layout){ .type = SENSOR_TYPES }, EINVAL);
    refused(&(struct sensor_layout){ .type = ~0u }, EINVAL);
    refused(
        &(struct sensor_layout){ .type = SENSOR_SCALAR, .scalar = { 0, 16 } },
        EINVAL);
    refused(HISTOGRAM(.lanes = 1, .x = { SENSOR_LINEAR, 0, 1, 1u << 31 }),
            EINVAL);
    refused(HISTOGRAM(.lanes = 1, .x = { SENSOR_LINEAR, 0, 0, 10 }), EINVAL);
    refused(HISTOGRAM(.lanes = 1, .x = { SENSOR_LINEAR, 0, 1, 0 }), EINVAL);
    refused(HISTOGRAM(.lanes = 1, .x = { SENSOR_LINEAR, ~0u, 1, 10 }), EINVAL);
    refused(HISTOGRAM(.lanes = 1, .x = { SENSOR_SCALES, 0, 1, 10 }), EINVAL);
    refused(HISTOGRAM(.lanes = 1, .x = { SENSOR_LOG2, 0, 1, 10 }), EINVAL);
    refused(HISTOGRAM(.lanes = 1, .x = { SENSOR_LOG2, 4, 1, 57 }), EINVAL);
    refused(HISTOGRAM(.lanes = 0, .x = { SENSOR_LINEAR, 0, 1, 10 }), EINVAL);
    refused(
        HISTOGRAM(.lanes = 1, .layers = 1, .x = { SENSOR_LINEAR, 0, 1, 10 }),
        EINVAL);
    refused(HISTOGRAM(.lanes = 1, .x = { SENSOR_LINEAR, 0, 1, 1 << 16 },
                      .y = { SENSOR_LINEAR, 0, 1, 1 << 16 }),
            EINVAL);
    refused(HISTOGRAM(.lanes = 1, .x = { SENSOR_LINEAR, 0, 1, 10 },
                      .y = { SENSOR_LINEAR, 0, 1, 1u << 31 }),
            EINVAL);
    refused(LIST(5, 32), EINVAL);
    refused(LIST(1u << 31, 32), EINVAL);
    refused(LIST(0, 32), EINVAL);
    refused(LIST(64, 48), EINVAL);
    refused(&(struct sensor_layout){ .type = SENSOR_RING, .ring = { 100, 0 } },
            EINVAL);
    ok("bad layouts");
}

static void bad_arguments(void)
{
    static char text[SENSOR_TEXT_MAX];
    struct sensor_request r = { .layout = { .type = SENSOR_SCALAR,
                                            .scalar = { SENSOR_GAUGE, 32 } } };
    int fd = open(PATH, O_CREAT | O_RDWR, 0644);
    check(fd >= 0);
    check_error(ioctl(fd, SENSOR_CREATE, NULL), EFAULT);
    check_error(ioctl(fd, SENSOR_CREATE, (void *)0xc0100000), EFAULT);
    r.text_bytes = SENSOR_TEXT_MAX;
    check_error(ioctl(fd, SENSOR_CREATE, &r), E2BIG);
    r.text_bytes = 10;
    r.text = (const char *)0xc0100000;
    check_error(ioctl(fd, SENSOR_CREATE, &r), EFAULT);
    r.text = text; // it contains NULs
    check_error(ioctl(fd, SENSOR_CREATE, &r), EINVAL);
    check_error(ioctl(fd, 0x1234, &r), ENOTTY);
    memset(text, 'x', sizeof(text));
    r.text_bytes = SENSOR_TEXT_MAX - 1;
    check(ioctl(fd, SENSOR_CREATE, &r) == 0);
    check_error(ioctl(fd, SENSOR_CREATE, &r), EBUSY);
    check(unlink(PATH) == 0 && close(fd) == 0);
    ok("bad arguments");
}

static void long_paths(void)
{
    char path[SENSOR_PATH_MAX + 2];
    memset(path, 'a', sizeof(path));
    memcpy(path, "/sensors/", strlen("/sensors/"));
    path[SENSOR_PATH_MAX + 1] = '\0';
    int fd = open(path, O_CREAT | O_RDWR, 0644);
    check(fd >= 0);
    check_error(request_scalar(fd), ENAMETOOLONG);
    check(close(fd) == 0);
    path[SENSOR_PATH_MAX] = '\0';
    fd = create_scalar(path);
    check(unlink(path) == 0 && close(fd) == 0);
    ok("the longest path");
}

// Random layouts, near to valid ones: what is accepted can be mapped, and its
// last page be written and read as text. The ring of a trace is the kernel's.
static void random_layouts(void)
{
    static char text[1 << 12];
    uint32_t accepted = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct sensor_layout l = { .type = draw() % (SENSOR_TYPES + 1) };
        for (uint32_t j = 0; j < 10; j++)
            l.words[j] = draw() % 4 ? draw() % 3 : 1u << draw() % 32;
        if (l.type == SENSOR_LIST)
            l.list.slot_bytes = 16u << draw() % 4;
        int fd = open(PATH, O_CREAT | O_RDWR, 0644);
        check(fd >= 0);
        if (request(fd, &l)) {
            check(errno == EINVAL);
            check(!sensor_data_bytes(&l) ||
                  (l.type == SENSOR_RING && l.ring.trace));
            check(close(fd) == 0);
            continue;
        }
        struct stat s;
        check(fstat(fd, &s) == 0);
        uint32_t bytes = (uint32_t)s.st_size - SENSOR_DATA;
        check(bytes >= sensor_data_bytes(&l) && bytes % PAGE == 0);
        char *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                          SENSOR_DATA);
        check(data != MAP_FAILED);
        data[0] = data[bytes - 1] = 1;
        if (bytes < 16 * PAGE)
            check(pread(fd, text, sizeof(text), 0) > 0);
        check(munmap(data, bytes) == 0 && unlink(PATH) == 0 && close(fd) == 0);
        accepted++;
    }
    check(accepted > ROUNDS / 100);
    ok("random layouts");
}

int main(int argc, char **argv)
{
    alarm(TEST_SECONDS);
    if (access("/sensors", F_OK) < 0)
        return 0; // Linux
    state = argc > 1 ? strtoull(argv[1], NULL, 0) | 1 : 88172645463325253;
    bad_layouts();
    bad_arguments();
    long_paths();
    random_layouts();
    return 0;
}
