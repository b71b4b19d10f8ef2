// Sensors, as the guest tests create them: by the request itself.
#pragma once

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <strobe/sensor.h>

#include "test.h"

#define PAGE 4096u

// Gives the new sensor of a descriptor a type; results as ioctl's.
static inline int request(int fd, const struct sensor_layout *layout)
{
    struct sensor_request r = { .layout = *layout,
                                .text = "of a test",
                                .text_bytes = strlen("of a test") };
    return ioctl(fd, SENSOR_CREATE, &r);
}

static inline int request_scalar(int fd)
{
    struct sensor_layout l = { .type = SENSOR_SCALAR,
                               .scalar = { SENSOR_COUNTER, 64 } };
    return request(fd, &l);
}

// With header and data.
static inline int request_megabyte(int fd)
{
    struct sensor_layout l = { .type = SENSOR_RING };
    l.type = SENSOR_HISTOGRAM;
    l.histogram.lanes = 1;
    l.histogram.x = (struct sensor_axis){ SENSOR_LINEAR, 0, 1, 1 << 10 };
    l.histogram.y = (struct sensor_axis){ SENSOR_LINEAR, 0, 1, 127 };
    return request(fd, &l);
}

// A new sensor, open for writing.
static inline int create_scalar(const char *path)
{
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    check(fd >= 0 && request_scalar(fd) == 0);
    return fd;
}
