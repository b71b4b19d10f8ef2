// Rings under storm: four tasks write, each into its own, with signal handlers
// that write in between; two are killed at random instructions, one's ring
// stops when it is full. A task that can only read takes each record once, in
// order, or counts it.
//
//     /test/sensor_ring_storm [SEED]
#include "sensors.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "user/libstrobe/sensor.h"
#include "user/libstrobe/sensor_print.h"

#define DIR "/sensors/ring_storm"
#define TASKS 4u
#define KILLED 2u // tasks; the others end by themselves
#define STOPS 1u  // the task whose ring stops; it is killed
#define RECORDS 3000u
#define SOURCES 2u // of a task: itself, and its handler

// What the writers say of themselves: begun and ended records.
static struct writer {
    uint32_t begun[SOURCES], ended[SOURCES];
} * writers;
static uint32_t *running;

struct payload {
    uint32_t source, count;
    uint8_t rest[64];
};

static struct sensor_records rings[TASKS] = { SENSOR_RECORDS_INIT(4096),
                                              SENSOR_STOPPING_INIT(16384),
                                              SENSOR_RECORDS_INIT(16384),
                                              SENSOR_RECORDS_INIT(65536) };

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16) % n;
}

static const char *path_of(uint32_t task)
{
    static char path[SENSOR_PATH_MAX];
    snprintf(path, sizeof(path), DIR "/%u", (unsigned)task);
    return path;
}

static uint32_t bytes_of(uint32_t count)
{
    return 8 + count * 5 % 64;
}

// --- writers

static uint32_t task; // of this process

static void write_one(uint32_t source)
{
    struct writer *w = &writers[task];
    struct payload p = { .source = source };
    p.count = __atomic_fetch_add(&w->begun[source], 1, __ATOMIC_SEQ_CST);
    memset(p.rest, (int)p.count, sizeof(p.rest));
    sensor_records_write(&rings[task], source, &p, bytes_of(p.count));
    __atomic_fetch_add(&w->ended[source], 1, __ATOMIC_SEQ_CST);
}

static void on_usr1(int signal)
{
    (void)signal;
    for (uint32_t i = 0; i < 5; i++)
        write_one(1);
}

static void run_task(void)
{
    check(sensor_records_open(&rings[task], path_of(task), "storm") == 0);
    on_signal(SIGUSR1, on_usr1, SA_RESTART);
    write_one(0); // one that is killed has written something, too
    __atomic_fetch_add(running, 1, __ATOMIC_SEQ_CST);
    for (uint32_t i = 1; task < KILLED || i < RECORDS; i++)
        write_one(0);
    signal(SIGUSR1, SIG_IGN);
    _exit(0);
}

// --- the reader

static struct reader {
    struct sensor_file file;
    struct sensor_ring_cursor cursor;
    uint32_t next[SOURCES]; // least count that may come
    uint64_t time;
} readers[TASKS];

static void take(struct reader *r, const struct sensor_record *record)
{
    struct payload p = { 0 };
    uint32_t bytes = record->size - (uint32_t)sizeof(*record);
    uint64_t time = sensor_wide_read(&record->time);
    check(bytes >= 8 && bytes <= sizeof(p));
    memcpy(&p, record->payload, bytes);
    check(p.source == record->type && p.source < SOURCES);
    check(bytes == bytes_of(p.count) && p.count >= r->next[p.source]);
    for (uint32_t i = 0; i < bytes - 8; i++)
        check(p.rest[i] == (uint8_t)p.count);
    check(time >= r->time);
    r->time = time;
    r->next[p.source] = p.count + 1;
}

static void drain(bool over)
{
    static union {
        struct sensor_record record;
        uint8_t bytes[SENSOR_RECORD_MAX];
    } got;
    for (uint32_t i = 0; i < TASKS; i++) {
        struct reader *r = &readers[i];
        // At most a ring of records: a writer may be faster.
        for (uint32_t n = 0; n < 1000 || over; n++) {
            if (!sensor_ring_cursor_next(&r->cursor, &r->file.view, over,
                                         &got.record))
                break;
            take(r, &got.record);
        }
    }
}

static void compare(void)
{
    uint64_t read = 0, lost = 0;
    for (uint32_t i = 0; i < TASKS; i++) {
        const struct sensor_ring *ring = readers[i].file.view.data;
        const struct sensor_ring_cursor *c = &readers[i].cursor;
        const struct writer *w = &writers[i];
        uint32_t begun = w->begun[0] + w->begun[1];
        uint32_t ended = w->ended[0] + w->ended[1];
        uint32_t taken = ring->taken.number;
        check(taken >= ended && taken <= begun);
        check(i < KILLED || (begun == ended && w->ended[0] == RECORDS));
        check(c->read + c->lost == taken && !c->spoilt && c->read);
        read += c->read;
        lost += c->lost;
    }
    dprintf(1, "%u records, %u lost\n", (unsigned)read, (unsigned)lost);
}

// Under -icount QEMU runs another CPU at a PAUSE.
static void give_way(void)
{
    __builtin_ia32_pause();
    sched_yield();
}

static void storm(void)
{
    pid_t pids[TASKS];
    for (task = 0; task < TASKS; task++) {
        pids[task] = fork();
        check(pids[task] >= 0);
        if (pids[task] == 0)
            run_task();
    }
    while (__atomic_load_n(running, __ATOMIC_SEQ_CST) < TASKS)
        give_way();
    for (uint32_t i = 0; i < TASKS; i++) {
        check(!sensor_file_open(&readers[i].file, path_of(i)));
        sensor_ring_cursor_begin(&readers[i].cursor, &readers[i].file.view);
        readers[i].cursor.begun = true; // from number 0 on
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        for (uint32_t j = random_below(20); j; j--) {
            kill(pids[random_below(TASKS - i) + i], SIGUSR1);
            drain(false);
        }
        for (volatile uint32_t j = random_below(20000); j; j--)
            ;
        if (i < KILLED)
            check(kill(pids[i], SIGKILL) == 0);
    }
    for (uint32_t i = 0; i < TASKS; i++) {
        int status;
        pid_t pid;
        while ((pid = waitpid(pids[i], &status, WNOHANG)) == 0) {
            drain(false);
            give_way();
        }
        check(pid == pids[i]);
        check(i < KILLED ? killed_by(status, SIGKILL) : exited_with(status, 0));
    }
    drain(true);
    compare();
    ok("each record is read once, in order, or counted as lost");
}

static void *shared_memory(void)
{
    void *m = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(m != MAP_FAILED);
    return m;
}

int main(int argc, char **argv)
{
    alarm(TEST_SECONDS);
    if (access("/sensors", F_OK) < 0)
        return 0; // Linux
    random_state =
        argc > 1 ? strtoull(argv[1], NULL, 0) | 1 : 88172645463325253;
    check(mkdir(DIR, 0777) == 0);
    writers = shared_memory();
    running = shared_memory();
    storm();
    return 0;
}
