// Sensors under concurrent writers: 16 threads in 4 tasks, two of which are
// killed at random instructions, with signal handlers that post in between.
// Sums are exact; each event is read once, or counted as lost; a cause is
// before its effect.
//
//     /test/sensor_storm [SEED]
#include "sensors.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <strobe/sensor_post.h>

#define DIR "/sensors/storm"
#define TASKS 4u
#define THREADS 4u // of a task
#define KILLED 2u  // tasks; the others end by themselves
// Writers of a task: its threads and the handler. The handler runs on any
// thread, also on several at once.
#define WRITERS_EACH (THREADS + 1)
#define WRITERS (TASKS * WRITERS_EACH)
#define POSTS 1500u
#define PAIRS 300u

// What the writers say of themselves: begun and ended posts.
static struct writer {
    uint32_t begun, ended;
} * writers;
static uint32_t *running; // threads that have begun

static void *scalar, *histogram, *list;
static const struct sensor_layout scalar_layout = {
    .type = SENSOR_SCALAR, .scalar = { SENSOR_COUNTER, 64 }
};
static const struct sensor_layout histogram_layout = {
    .type = SENSOR_HISTOGRAM,
    .histogram = { .lanes = 4, .x = { SENSOR_LINEAR, 0, 1, WRITERS } }
};
static const struct sensor_layout list_layout = { .type = SENSOR_LIST,
                                                  .list = { 4096, 64 } };

struct payload {
    uint32_t writer, count;
};

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16) % n;
}

static void *create(const char *path, const struct sensor_layout *layout)
{
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    check(fd >= 0 && request(fd, layout) == 0);
    uint32_t bytes = sensor_data_bytes(layout);
    void *m =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, SENSOR_DATA);
    check(m != MAP_FAILED && close(fd) == 0);
    return m;
}

static void *shared_memory(uint32_t bytes)
{
    void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(m != MAP_FAILED);
    return m;
}

// Under -icount QEMU runs another CPU at a PAUSE.
static void give_way(void)
{
    __builtin_ia32_pause();
    sched_yield();
}

// --- writers

static void post(uint32_t writer)
{
    struct writer *w = &writers[writer];
    struct payload p = { writer,
                         __atomic_fetch_add(&w->begun, 1, __ATOMIC_SEQ_CST) };
    sensor_scalar_add(scalar, 3);
    sensor_histogram_add(histogram, &histogram_layout.histogram, writer,
                         writer);
    sensor_post(list, &list_layout.list, 7, writer % 4, writer, &p, sizeof(p));
    __atomic_fetch_add(&w->ended, 1, __ATOMIC_SEQ_CST);
}

static uint32_t task; // of this process
static bool endless;

static void on_usr1(int signal)
{
    (void)signal;
    post(task * WRITERS_EACH + THREADS);
}

static void *write_posts(void *thread)
{
    uint32_t writer = task * WRITERS_EACH + (uint32_t)(uintptr_t)thread;
    __atomic_fetch_add(running, 1, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; endless || i < POSTS; i++)
        post(writer);
    return NULL;
}

static void run_task(void)
{
    pthread_t threads[THREADS];
    on_signal(SIGUSR1, on_usr1, SA_RESTART);
    for (uint32_t i = 0; i < THREADS; i++)
        check(pthread_create(&threads[i], NULL, write_posts,
                             (void *)(uintptr_t)i) == 0);
    for (uint32_t i = 0; i < THREADS; i++)
        check(pthread_join(threads[i], NULL) == 0);
    signal(SIGUSR1, SIG_IGN);
    _exit(0);
}

// --- the reader

static struct {
    uint32_t cursor;
    uint64_t lost;
    uint32_t events[WRITERS], last[WRITERS];
} reader;

static void take(const struct sensor_event *e)
{
    struct payload p;
    memcpy(&p, e->payload, sizeof(p));
    check(e->type == 7 && e->bytes == sizeof(p) && p.writer < WRITERS);
    check(e->thread == p.writer);
    // One thread's posts are in order. A handler may interrupt another one
    // between its count and its number.
    bool handler = p.writer % WRITERS_EACH == THREADS;
    check(handler || !reader.events[p.writer] ||
          p.count > reader.last[p.writer]);
    reader.last[p.writer] = p.count;
    reader.events[p.writer]++;
}

// Reads what there is. `over`: all writers have ended, and what is not there
// will never be.
static void drain(bool over)
{
    uint32_t event[16];
    const struct sensor_list *l = list;
    // Writers may be faster than the reader: it reads what there is now, and
    // leaves out what they have overtaken already.
    uint32_t end = __atomic_load_n(&l->next, __ATOMIC_ACQUIRE);
    if (end - reader.cursor > list_layout.list.slots) {
        reader.lost += end - reader.cursor - list_layout.list.slots;
        reader.cursor = end - list_layout.list.slots;
    }
    while (reader.cursor != end) {
        switch (sensor_see(list, &list_layout.list, reader.cursor, event)) {
        case SENSOR_SEEN_EVENT:
            take((const struct sensor_event *)event);
            break;
        case SENSOR_SEEN_PENDING:
            if (!over)
                return;
            reader.lost++;
            break;
        case SENSOR_SEEN_LOST:
            reader.lost++;
            break;
        }
        reader.cursor++;
    }
}

static uint64_t cell(uint32_t bin)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < histogram_layout.histogram.lanes; i++) {
        struct sensor_lane *lane =
            sensor_lane_of(histogram, &histogram_layout.histogram, i);
        sum += sensor_count_read(&lane->cells[bin]);
    }
    return sum;
}

static void compare(void)
{
    uint64_t begun = 0, ended = 0, events = 0;
    for (uint32_t i = 0; i < WRITERS; i++) {
        const struct writer *w = &writers[i];
        bool ends_itself = i / WRITERS_EACH >= KILLED;
        check(cell(i) >= w->ended && cell(i) <= w->begun);
        check(reader.events[i] <= w->begun);
        check(!ends_itself || w->begun == w->ended);
        check(!ends_itself || i % WRITERS_EACH == THREADS || w->ended == POSTS);
        begun += w->begun;
        ended += w->ended;
        events += reader.events[i];
    }
    uint64_t sum = sensor_count_read(scalar);
    check(sum % 3 == 0 && sum >= 3 * ended && sum <= 3 * begun);
    uint32_t numbers = ((const struct sensor_list *)list)->next;
    check(numbers >= ended && numbers <= begun);
    check(events + reader.lost == numbers);
    dprintf(1, "%u events, %u lost, %u posts cut off\n", (unsigned)events,
            (unsigned)reader.lost, (unsigned)(begun - ended));
}

static void storm(void)
{
    pid_t pids[TASKS];
    for (uint32_t i = 0; i < TASKS; i++) {
        pids[i] = fork();
        check(pids[i] >= 0);
        if (pids[i] == 0) {
            task = i;
            endless = i < KILLED;
            run_task();
        }
    }
    while (__atomic_load_n(running, __ATOMIC_SEQ_CST) < TASKS * THREADS) {
        drain(false);
        give_way();
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
    ok("sums are exact, each event is read once or counted as lost");
}

// --- cause and effect

// Two tasks pass a word to and fro; each posts before it sends and after it
// has received.
static volatile uint32_t *word;

static void pass(uint32_t side)
{
    for (uint32_t i = 0; i < PAIRS; i++) {
        while (*word != 2 * i + side)
            give_way();
        struct payload p = { side, 2 * i + side };
        sensor_post(list, &list_layout.list, 1, side, side, &p, sizeof(p));
        *word = 2 * i + side + 1;
    }
}

static void causes_come_first(void)
{
    uint32_t event[16];
    const struct sensor_event *e = (const void *)event;
    struct payload p;
    uint64_t before = 0;
    list = create(DIR "/pairs", &list_layout);
    word = shared_memory(PAGE);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        pass(1);
        _exit(0);
    }
    pass(0);
    int status;
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    for (uint32_t i = 0; i < 2 * PAIRS; i++) {
        check(sensor_see(list, &list_layout.list, i, event) ==
              SENSOR_SEEN_EVENT);
        memcpy(&p, e->payload, sizeof(p));
        uint64_t time = sensor_wide_read(&e->time);
        check(p.count == i && p.writer == i % 2 && time >= before);
        before = time;
    }
    ok("each cause is before its effect, in the numbers and in time");
}

// --- an owner that spoils its sensors

static void spoil(void)
{
    uint32_t bytes = sensor_data_bytes(&list_layout);
    for (;;) {
        uint32_t *words = random_below(2) ? list : histogram;
        if (words == list && random_below(2))
            words[random_below(32)] = random_below(1u << 31);
        else
            words[random_below(
                (words == list ? bytes : sensor_data_bytes(&histogram_layout)) /
                4)] = random_below(1u << 31) * 2;
    }
}

static void survives_spoiling(void)
{
    static char text[1 << 16];
    histogram = create(DIR "/spoilt_histogram", &histogram_layout);
    list = create(DIR "/spoilt_list", &list_layout);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        spoil();
    for (uint32_t i = 0; i < 200; i++) {
        int fd = open(i % 2 ? DIR "/spoilt_list" : DIR "/spoilt_histogram",
                      O_RDONLY);
        check(fd >= 0 && read(fd, text, sizeof(text)) > 0 && close(fd) == 0);
    }
    int status;
    check(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
    // A length that no event has.
    struct sensor_event *e = sensor_slot(list, &list_layout.list, 0);
    ((struct sensor_list *)list)->next = 1;
    e->state = SENSOR_EVENT_THERE(0);
    e->bytes = 255;
    int fd = open(DIR "/spoilt_list", O_RDONLY);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    check(n > 0);
    text[n] = '\0';
    check(strstr(text, "0: spoilt\n"));
    ok("reading what the owner spoils");
}

int main(int argc, char **argv)
{
    alarm(TEST_SECONDS);
    if (access("/sensors", F_OK) < 0)
        return 0; // Linux
    random_state =
        argc > 1 ? strtoull(argv[1], NULL, 0) | 1 : 88172645463325253;
    check(mkdir(DIR, 0777) == 0);
    writers = shared_memory(PAGE);
    running = shared_memory(PAGE);
    scalar = create(DIR "/sum", &scalar_layout);
    histogram = create(DIR "/histogram", &histogram_layout);
    list = create(DIR "/list", &list_layout);
    storm();
    causes_come_first();
    survives_spoiling();
    return 0;
}
