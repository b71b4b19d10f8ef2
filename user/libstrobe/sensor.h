// Sensors for programs, in a header alone: C11 and C++17, GCC and clang.
//
//     static struct sensor_scalar frames = SENSOR_COUNTER_INIT;
//     static struct sensor_histogram cost = SENSOR_LINEAR_INIT(0, 100, 64);
//     #define FRAME(F) F(u32, number) F(u64, cycles)
//     #define TYPES(T) T(frame, 10, FRAME)
//     SENSOR_TYPES_OF(TYPES)    // struct sensor_of_frame, sensor_type_frame
//     static struct sensor_events list = SENSOR_EVENTS_INIT(1024, 64);
//
//     sensor_scalar_open(&frames, "/sensors/app/frames", "frames decoded");
//     sensor_hist_open(&cost, "/sensors/app/cost", "cycles of a frame");
//     sensor_events_open(&list, "/sensors/app/list", SENSOR_TEXT(TYPES));
//
//     static struct sensor_records trace = SENSOR_RECORDS_INIT(65536);
//     sensor_records_open(&trace, "/sensors/app/trace", SENSOR_TEXT(TYPES));
//
//     sensor_add(&frames, 1);
//     sensor_hist_add(&cost, cycles);
//     struct sensor_of_frame f = { 1, cycles };
//     sensor_post(&list, sensor_type_frame, &f);
//     sensor_write(&trace, sensor_type_frame, &f);
//
// Posting before opening does nothing. All posting functions may run in any
// thread and signal handler and, after fork, in the child too, which posts into
// the same sensor. But records of a ring (sensor_write) are one thread's, and
// of its signal handlers, which must return: no other thread, no child. The
// opening functions return 0, or -1 with errno: EEXIST: an open sensor has this
// path (one whose owner has ended is replaced); EINVAL: the layout or the path;
// EDQUOT or ENOMEM: there is no room.
//
// Where there is no /sensors (on Linux), "/sensors/..." is the file
// /dev/shm/sensors/..., with the same content, for the same tools.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <strobe/sensor_post.h>

// --- declarations

struct sensor_scalar {
    struct sensor_count *data; // NULL: not open
    struct sensor_scalar_layout layout;
};

#define SENSOR_LANES 8u // of a histogram; a power of two
struct sensor_histogram {
    struct sensor_lane *lanes[SENSOR_LANES]; // NULL: not open
    // Values whose bins exist, and whose extremes are in the sensor, by this
    // program: `seen` from seen_first on. Log2: none.
    uint32_t seen, seen_first, widening;
    // Linear: ceil(2^31 / width), to multiply instead of dividing, and
    // -2 * first.
    uint32_t inverse, origin;
    struct sensor_histogram_layout layout;
};

struct sensor_events {
    void *data; // NULL: not open
    struct sensor_list_layout layout;
};

struct sensor_records { // a ring
    void *data;         // NULL: not open
    struct sensor_ring_layout layout;
};

// clang-format off
#define SENSOR_COUNTER_INIT { NULL, { SENSOR_COUNTER, 64 } }
#define SENSOR_GAUGE_INIT { NULL, { SENSOR_GAUGE, 64 } }
#define SENSOR_EVENTS_INIT(slots, slot_bytes)                                  \
    { NULL, { slots, slot_bytes, SENSOR_CLOCK_TSC } }
// The time of its events is their number.
#define SENSOR_LOGICAL_EVENTS_INIT(slots, slot_bytes)                          \
    { NULL, { slots, slot_bytes, SENSOR_CLOCK_LOGICAL } }
// A ring that overwrites what is old, or stops when it is full.
#define SENSOR_RECORDS_INIT(bytes) { NULL, { bytes, 0, 0 } }
#define SENSOR_STOPPING_INIT(bytes) { NULL, { bytes, 1, 0 } }
// Bins of `width`, from `first` on.
#define SENSOR_LINEAR_INIT(first, width, bins)                     \
    { { NULL }, 0, 0, 0, 0, 0, { SENSOR_LANES, 0,                              \
        { SENSOR_LINEAR, first, width, bins }, { 0, 0, 0, 0 } } }
// 2^sub bins for each power of two, from 2^first on.
#define SENSOR_LOG2_INIT(first, sub, bins)                         \
    { { NULL }, 0, 0, 0, 0, 0, { SENSOR_LANES, 0,                              \
        { SENSOR_LOG2, first, sub, bins }, { 0, 0, 0, 0 } } }
// Linear in x and y. Such a histogram has one lane: it is large.
#define SENSOR_LINEAR_2D_INIT(first, width, bins, y_first, y_width, y_bins) \
    { { NULL }, 0, 0, 0, 0, 0, { 1, 0,                                         \
        { SENSOR_LINEAR, first, width, bins },                     \
        { SENSOR_LINEAR, y_first, y_width, y_bins } } }
// With `layers` planes (at least 2), each with a count and a cost for a cell.
#define SENSOR_LAYERS_INIT(layers, first, width, bins, y_first, y_width, y_bins) \
    { { NULL }, 0, 0, 0, 0, 0, { 1, layers,                                    \
        { SENSOR_LINEAR, first, width, bins },                     \
        { SENSOR_LINEAR, y_first, y_width, y_bins } } }
// clang-format on

// A table of event types gives, for each T(name, number, FIELDS), struct
// sensor_of_NAME and sensor_type_NAME, and the text that describes them.
#define SENSOR_C_u8 uint8_t
#define SENSOR_C_u16 uint16_t
#define SENSOR_C_u32 uint32_t
#define SENSOR_C_u64 uint64_t
#define SENSOR_C_s32 int32_t
#define SENSOR_C_s64 int64_t
#define SENSOR_MEMBER_(kind, name) SENSOR_C_##kind name;
#define SENSOR_LINE_(kind, name) #name ", " #kind "\n"
#define SENSOR_STRUCT_(name, number, fields)          \
    enum { sensor_type_##name = number };             \
    struct __attribute__((packed)) sensor_of_##name { \
        fields(SENSOR_MEMBER_)                        \
    };
#define SENSOR_LINES_(name, number, fields) \
    "#type " #name " " #number "\n" fields(SENSOR_LINE_)
#define SENSOR_TYPES_OF(table) table(SENSOR_STRUCT_)
#define SENSOR_TEXT(table) table(SENSOR_LINES_)

// --- this thread

// A segment whose limit is the CPU's number, as on Linux. A hint: the thread
// may move to another CPU at once, and without the segment it is any number.
static inline uint32_t sensor_cpu(void)
{
#if defined(__i386__) || defined(__x86_64__)
#ifdef __x86_64__
    static const uint16_t selector = 0x7b;
#else
    static const uint16_t selector = 0xe3;
#endif
    uint32_t number;
    __asm__ volatile("lsl %1, %0" : "=r"(number) : "m"(selector) : "cc");
    return number;
#else
    return 0;
#endif
}

// Of the thread, and the process in which it was found out: a fork's child has
// another one.
static __thread uint32_t sensor_thread_id __attribute__((unused));

static __attribute__((noinline, unused)) uint32_t sensor_find_thread(void)
{
    return sensor_thread_id = (uint32_t)syscall(SYS_gettid);
}

// For a fork's child, before it posts events; otherwise they have its parent's
// number.
static inline void sensor_forked(void)
{
    sensor_thread_id = 0;
}

// Whether a thread that has begun an event will never end it. Asked of one that
// has not ended it after two rounds through a list: the only system call of a
// writer. All writers of a list are in one name space of threads.
static __attribute__((noinline, unused)) bool sensor_is_dead_(uint32_t thread)
{
    int error = errno;
    bool dead = syscall(SYS_tkill, thread, 0) < 0 && errno == ESRCH;
    errno = error;
    return dead;
}

// --- posting

#define SENSOR_LIKELY(x) __builtin_expect(!!(x), 1)

static inline void sensor_add(struct sensor_scalar *s, uint32_t n)
{
    if (SENSOR_LIKELY(s->data))
        sensor_scalar_add(s->data, n);
}

// One writer at a time.
static inline void sensor_set(struct sensor_scalar *s, uint64_t value)
{
    if (SENSOR_LIKELY(s->data))
        sensor_scalar_set(s->data, value);
}

static inline void sensor_max(struct sensor_scalar *s, uint32_t value)
{
    if (SENSOR_LIKELY(s->data))
        sensor_scalar_max(s->data, value);
}

// Makes `value` one of the values seen. The range only grows, and its first
// value is written before its size: so a thread that reads the size first gets
// a part of it at least.
static inline void sensor_widen_(struct sensor_histogram *h, uint32_t value)
{
    if (__atomic_exchange_n(&h->widening, 1, __ATOMIC_ACQUIRE))
        return; // another thread does, or this one below a signal handler
    uint32_t first = h->seen ? h->seen_first : value;
    uint32_t last = h->seen ? first + h->seen - 1 : value;
    first = value < first ? value : first;
    last = value > last ? value : last;
    __atomic_store_n(&h->seen_first, first, __ATOMIC_RELAXED);
    __atomic_store_n(&h->seen, last - first + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&h->widening, 0, __ATOMIC_RELEASE);
}

// Whether the usual path counts it right: the sum in one step (sensor_count.h);
// and (value - first) * inverse / 2^31 is the bin as long as what the inverse
// has too much, less than one, makes less than one in all.
static inline bool sensor_usual_(const struct sensor_histogram *h,
                                 uint32_t value)
{
    const struct sensor_axis *x = &h->layout.x;
    uint32_t too_much = h->inverse * x->width - SENSOR_CARRY;
    return x->scale == SENSOR_LINEAR && value < SENSOR_STEP &&
           sensor_bin(x, value) < x->bins &&
           (uint64_t)(value - x->first) * too_much < SENSOR_CARRY;
}

// Not in line, so that the rest needs few registers.
static __attribute__((noinline, unused)) void
sensor_hist_any_(struct sensor_histogram *h, uint32_t value)
{
    sensor_histogram_row(h->lanes[sensor_cpu() % SENSOR_LANES], &h->layout, 0,
                         value);
    if (sensor_usual_(h, value))
        sensor_widen_(h, value);
}

static __attribute__((noinline, unused)) void
sensor_hist_carry_(struct sensor_lane *lane, uint32_t bin)
{
    sensor_count_add_large(&lane->cells[bin], 0);
    sensor_count_add_large(&lane->sum, 0);
}

static inline void sensor_hist_add(struct sensor_histogram *h, uint32_t value)
{
    if (!SENSOR_LIKELY(h->lanes[0]))
        return;
    uint32_t seen = __atomic_load_n(&h->seen, __ATOMIC_ACQUIRE);
    uint32_t first = __atomic_load_n(&h->seen_first, __ATOMIC_RELAXED);
    if (!SENSOR_LIKELY(value - first < seen)) {
        sensor_hist_any_(h, value);
        return;
    }
    struct sensor_lane *lane = h->lanes[sensor_cpu() % SENSOR_LANES];
    uint32_t twice = 2 * value + h->origin;
    uint32_t bin = (uint32_t)((uint64_t)twice * h->inverse >> 32);
    if (sensor_count_step(&lane->cells[bin], 1))
        sensor_hist_carry_(lane, bin);
    if (sensor_count_step(&lane->sum, value))
        sensor_hist_carry_(lane, bin);
}

static inline void sensor_hist_add_2d(struct sensor_histogram *h, uint32_t x,
                                      uint32_t y)
{
    if (SENSOR_LIKELY(h->lanes[0]))
        sensor_histogram_add_2d(h->lanes[0], &h->layout, sensor_cpu(), x, y);
}

static inline void sensor_layers_add(struct sensor_histogram *h, uint32_t layer,
                                     uint32_t x, uint32_t y, uint32_t cost)
{
    if (SENSOR_LIKELY(h->lanes[0]))
        sensor_layer_add(h->lanes[0], &h->layout, sensor_cpu(), layer, x, y,
                         cost);
}

// `bytes` is at most what a slot has behind the header, 20 bytes; larger events
// are not posted.
static inline void sensor_events_post(struct sensor_events *l, uint32_t type,
                                      const void *event, uint32_t bytes)
{
    if (!SENSOR_LIKELY(l->data))
        return;
    uint32_t thread = sensor_thread_id;
    if (!SENSOR_LIKELY(thread))
        thread = sensor_find_thread();
    if (SENSOR_LIKELY(bytes <=
                      l->layout.slot_bytes - sizeof(struct sensor_event)))
        sensor_post_unless(l->data, &l->layout, type, sensor_cpu(), thread,
                           event, bytes, sensor_is_dead_);
}
// sensor_post(list, type, pointer to the event's structure)
#define sensor_post(list, type, event) \
    sensor_events_post(list, type, event, sizeof(*(event)))

static inline void sensor_records_write(struct sensor_records *r, uint32_t type,
                                        const void *record, uint32_t bytes)
{
    if (SENSOR_LIKELY(r->data))
        sensor_ring_write(r->data, &r->layout, type, record, bytes);
}
// sensor_write(ring, type, pointer to the record's structure)
#define sensor_write(ring, type, record) \
    sensor_records_write(ring, type, record, sizeof(*(record)))

// --- opening

#define SENSOR_REAL_PATH 256

static inline int sensor_make_folders_(char *path)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        int failed = mkdir(path, 0777) < 0 && errno != EEXIST;
        *at = '/';
        if (failed && access(path, F_OK) < 0 && errno != ENOENT)
            return -1;
    }
    return 0;
}

// Removes a sensor whose owner has ended. False: it has not.
static inline bool sensor_remove_closed_(const char *path)
{
    bool closed = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *m = fd < 0 ? MAP_FAILED
                     : mmap(NULL, SENSOR_DATA, PROT_READ, MAP_SHARED, fd, 0);
    if (m != MAP_FAILED) {
        const struct sensor_header *h = (const struct sensor_header *)m;
        closed = h->closed_ns.low || h->closed_ns.high;
        munmap(m, SENSOR_DATA);
    }
    // Before it is closed: then its name would go by itself.
    bool removed = closed && unlink(path) == 0;
    if (fd >= 0)
        close(fd);
    return removed;
}

// Without a kernel that knows sensors: what it would write. Such a file says
// from the start that it is closed, as nobody will say so later.
static inline int sensor_make_plain_(int fd, const struct sensor_layout *l,
                                     const char *text, uint32_t bytes)
{
    struct timespec now;
    struct sensor_header h;
    memset(&h, 0, sizeof(h));
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    h.magic = SENSOR_MAGIC;
    h.version = SENSOR_VERSION;
    h.header_bytes = sizeof(h);
    h.data_bytes = bytes;
    h.layout = *l;
    h.owner = (uint32_t)getpid();
    h.created_ns.low = h.closed_ns.low = (uint32_t)ns;
    h.created_ns.high = h.closed_ns.high = (uint32_t)(ns >> 32);
    memcpy(h.text, text, strlen(text) + 1);
    if (ftruncate(fd, (off_t)(SENSOR_DATA + bytes)) < 0)
        return -1;
    return pwrite(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) ? 0 : -1;
}

static inline int sensor_make_(int fd, const struct sensor_layout *l,
                               const char *text, uint32_t bytes)
{
    struct sensor_request r;
    memset(&r, 0, sizeof(r));
    r.layout = *l;
    r.text = text;
    r.text_bytes = (uint32_t)strlen(text);
    if (ioctl(fd, (int)SENSOR_CREATE, &r) == 0)
        return 0;
    return errno == ENOTTY ? sensor_make_plain_(fd, l, text, bytes) : -1;
}

// Returns the data, or NULL.
static inline void *
sensor_open_(const char *path, const struct sensor_layout *l, const char *text)
{
    const int flags = O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC;
    char real[SENSOR_REAL_PATH];
    bool elsewhere = !strncmp(path, "/sensors/", 9) && access("/sensors", F_OK);
    uint32_t bytes = sensor_data_bytes(l);
    int n =
        snprintf(real, sizeof(real), "%s%s", elsewhere ? "/dev/shm" : "", path);
    if (!bytes || n <= 0 || n >= SENSOR_REAL_PATH ||
        strlen(text) >= SENSOR_TEXT_MAX) {
        errno = EINVAL;
        return NULL;
    }
    if (sensor_make_folders_(real) < 0)
        return NULL;
    int fd = open(real, flags, 0644);
    if (fd < 0 && errno == EEXIST && sensor_remove_closed_(real))
        fd = open(real, flags, 0644);
    if (fd < 0)
        return NULL;
    void *data = MAP_FAILED;
    if (sensor_make_(fd, l, text, bytes) == 0)
        data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                    SENSOR_DATA);
    int error = errno;
    close(fd);
    if (data != MAP_FAILED)
        return data;
    unlink(real);
    errno = error;
    return NULL;
}

// `layout`: the part of struct sensor_layout for the type.
static inline void *sensor_open_as_(const char *path, uint32_t type,
                                    const void *layout, size_t bytes,
                                    const char *text)
{
    struct sensor_layout l;
    memset(&l, 0, sizeof(l));
    l.type = type;
    memcpy(l.words, layout, bytes);
    return sensor_open_(path, &l, text);
}

static inline int sensor_scalar_open(struct sensor_scalar *s, const char *path,
                                     const char *text)
{
    s->data = (struct sensor_count *)sensor_open_as_(
        path, SENSOR_SCALAR, &s->layout, sizeof(s->layout), text);
    return s->data ? 0 : -1;
}

static inline int sensor_hist_open(struct sensor_histogram *h, const char *path,
                                   const char *text)
{
    void *data = sensor_open_as_(path, SENSOR_HISTOGRAM, &h->layout,
                                 sizeof(h->layout), text);
    if (!data)
        return -1;
    if (h->layout.x.scale == SENSOR_LINEAR) {
        h->inverse = (SENSOR_CARRY - 1) / h->layout.x.width + 1;
        h->origin = 0 - 2 * h->layout.x.first;
    }
    // Lane 0 last: it says that the histogram is open.
    for (uint32_t i = SENSOR_LANES; i--;)
        h->lanes[i] = sensor_lane_of(data, &h->layout, i);
    return 0;
}

static inline int sensor_events_open(struct sensor_events *e, const char *path,
                                     const char *text)
{
    e->data =
        sensor_open_as_(path, SENSOR_LIST, &e->layout, sizeof(e->layout), text);
    return e->data ? 0 : -1;
}

static inline int sensor_records_open(struct sensor_records *r,
                                      const char *path, const char *text)
{
    r->data =
        sensor_open_as_(path, SENSOR_RING, &r->layout, sizeof(r->layout), text);
    return r->data ? 0 : -1;
}
