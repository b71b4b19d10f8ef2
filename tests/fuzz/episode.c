// Episodes: one to four concurrent workers make an episode's operations in its
// jail. Their shape (threads, tasks that share descriptors, forked tasks; the
// user) is drawn at random. A worker that blocks for long gets a signal, then
// is killed.
#include "fuzz.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <strobe/kbox.h>

#define STACK_BYTES 32768
#define CHILD_OPS 4 // that a forked child makes before it ends
#define POLL_NS 1000000
#define SIGNAL_POLLS 2 // without an operation done: a signal
#define KILL_POLLS 4   // and then SIGKILL
#define USER 1000
#define TASKS_MAX 64 * LANES
#define FILE_BYTES (1 << 20)
#define SPACE_BYTES (64 << 20)

enum worker_kind { THREAD, SHARES_FILES, FORKED, KINDS };

static struct worker workers[WORKERS];
static int descriptors[SLOTS];
static char stacks[WORKERS][STACK_BYTES] __attribute__((aligned(16)));
static const struct operation *ops; // of the episode that this task runs
static uint32_t op_count, worker_count;

const struct operation *episode_ops(const struct episode *e)
{
    static struct operation made[EPISODE_OPS];
    if (e->ops != NULL)
        return e->ops;
    for (uint32_t i = 0; i < e->count; i++)
        grammar_make(e->seed, e->first + i, &made[i]);
    return made;
}

// --- a worker

static void work(struct worker *w)
{
    struct progress *p = &own_lane->progress[w->number];
    uint32_t left = CHILD_OPS;

    for (uint32_t i = 0; i < op_count; i++) {
        if (ops[i].worker % worker_count != w->number)
            continue;
        operation_run(w, &ops[i]);
        if (!w->is_child)
            __atomic_fetch_add(&p->done, 1, __ATOMIC_RELAXED);
        else if (left-- == 0)
            break;
    }
    if (w->is_child)
        raw_call(SYS_exit_group, 0, 0, 0, 0);
    __atomic_store_n(&p->ended, 1, __ATOMIC_RELEASE);
    // Ends this thread only, so that the task's other threads continue.
    raw_call(SYS_exit, 0, 0, 0, 0);
    __builtin_trap();
}

static void begin_work(uint32_t number)
{
    own_lane->progress[number].tid = (uint32_t)raw_call(SYS_gettid, 0, 0, 0, 0);
    work(&workers[number]);
}

// Its number is on its stack, as begin_work's argument.
static long start_thread(uint32_t number, uint32_t flags)
{
    uint32_t *top = (uint32_t *)(stacks[number] + STACK_BYTES) - 4;
    long r;
    top[0] = number;
    __asm__ volatile("int $0x80; test %%eax, %%eax; jnz 1f;"
                     "xor %%ebp, %%ebp; push $0; jmp %c[begin]; 1:"
                     : "=a"(r)
                     : "0"(SYS_clone), "b"(flags), "c"(top), "d"(0), "S"(0),
                       "D"(0), [begin] "i"(begin_work)
                     : "memory");
    return r;
}

static void start_task(uint32_t number, uint32_t flags)
{
    if (raw_call(SYS_clone, flags, 0, 0, 0) == 0)
        begin_work(number);
}

// --- the leader, which becomes worker 0

static void on_signal(int signal)
{
    (void)signal;
}

static const char *sensor_path(uint32_t lane)
{
    static char path[32];
    snprintf(path, sizeof(path), "/sensors/fuzz%u", lane);
    return path;
}

// A new sensor: its type is up to the operations. One that has got a type
// stays when the episode ends, until round_run removes it.
static int new_sensor(uint32_t lane)
{
    return open(sensor_path(lane), O_CREAT | O_RDWR, 0666);
}

// What is opened outside of the jail, because it has none of it.
struct outside {
    int sensor, kernel[2];
};

static struct outside open_outside(uint32_t lane, struct draw *d)
{
    struct outside o = { .sensor = new_sensor(lane) };
    for (uint32_t i = 0; i < 2; i++)
        o.kernel[i] = open_some_sensor(d);
    return o;
}

// Only one lane's can be bound to a port at a time.
static int new_socket(uint32_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    (void)!bind(fd, (struct sockaddr *)&address, sizeof(address));
    return fd;
}

static void open_descriptors(struct outside o)
{
    int pipes[4] = { -1, -1, -1, -1 };
    (void)!pipe2(pipes, O_NONBLOCK);
    (void)!pipe2(pipes + 2, 0);
    const int fds[SLOTS] = {
        pipes[0],
        pipes[1],
        pipes[2],
        pipes[3],
        open("/a", O_RDWR),
        open("/d", O_RDONLY | O_DIRECTORY),
        open("/dev/zero", O_RDWR),
        open("/dev/null", O_RDWR),
        (int)syscall(SYS_kbox_connect, getpid()),
        (int)syscall(SYS_ipc_box, 0),
        (int)syscall(SYS_ipc_connect, getpid()),
        open("/proc/self/maps", O_RDONLY),
        open("/dev/tty0", O_RDWR | O_NOCTTY | O_NONBLOCK),
        open("/dev/statclock", O_RDONLY | O_NONBLOCK),
        open("/d/b", O_RDWR | O_APPEND),
        -100, // AT_FDCWD
        o.sensor,
        o.kernel[0],
        o.kernel[1],
        new_socket(PORT),
        new_socket(PORT + 1),
    };
    memcpy(descriptors, fds, sizeof(fds));
}

static void limit(int what, rlim_t most)
{
    setrlimit(what, &(struct rlimit){ most, most });
}

static void map_memory(void)
{
    char *arena = (char *)ARENA;
    size_t half = ARENA_PAGES * PAGE;
    mmap(arena, half, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    mmap(arena + half, half, PROT_READ | PROT_WRITE,
         MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    for (uint32_t i = 0; i < WORKERS; i++) {
        char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(two + PAGE, PAGE);
        workers[i] =
            (struct worker){ .number = i, .fds = descriptors, .page = two };
    }
}

static void enter_jail(uint32_t lane)
{
    char path[16];
    jail_path(lane, path);
    if (chroot(path) < 0 || chdir("/") < 0)
        _exit(1);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    close(null);
}

static void leave_other_lanes(uint32_t lane)
{
    void *at =
        mremap(&shared->lanes[lane], sizeof(struct lane), sizeof(struct lane),
               MREMAP_MAYMOVE | MREMAP_FIXED, own_lane);
    if (at != own_lane || munmap(shared->lanes, sizeof(shared->lanes)) < 0)
        _exit(1);
}

static void lead(const struct episode *e, uint32_t lane)
{
    struct draw d = draw_of(e->shape, 0);
    enum worker_kind kinds[WORKERS];

    worker_count = 1 + draw_below(&d, WORKERS);
    for (uint32_t i = 0; i < WORKERS; i++)
        kinds[i] = draw_below(&d, KINDS);
    bool is_root = draw_below(&d, 2);

    setsid();
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGUSR1, &action, NULL);
    leave_other_lanes(lane);
    ops = episode_ops(e);
    op_count = e->count;
    struct outside outside = open_outside(lane, &d);
    enter_jail(lane);
    open_descriptors(outside);
    map_memory();
    limit(RLIMIT_NPROC, TASKS_MAX);
    limit(RLIMIT_FSIZE, FILE_BYTES);
    limit(RLIMIT_AS, SPACE_BYTES);
    if (!is_root && setuid(USER) < 0)
        _exit(1);
    for (uint32_t i = 1; i < worker_count; i++) {
        if (kinds[i] == THREAD)
            start_thread(i, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                CLONE_THREAD | CLONE_SYSVSEM);
        else
            start_task(i, SIGCHLD | CLONE_PARENT |
                              (kinds[i] == SHARES_FILES ? CLONE_FILES : 0));
    }
    begin_work(0);
}

// --- the supervisor

static void reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

// A worker as the supervisor knows it. The tid is kept as first read: a call
// may overwrite the one in `shared`, and the supervisor must not kill itself.
struct known {
    uint32_t tid, done, still;
};

// Whether it still works. Signals a worker that makes no call for long.
static bool look_at(struct known *k, const struct progress *p)
{
    if (k->tid == 0 && p->tid != (uint32_t)getpid())
        k->tid = p->tid;
    if (p->ended != 0 || k->tid == 0)
        return false;
    if (p->done != k->done) {
        k->done = p->done;
        k->still = 0;
        return true;
    }
    int number = ++k->still > KILL_POLLS    ? SIGKILL
                 : k->still >= SIGNAL_POLLS ? SIGUSR1
                                            : 0;
    return syscall(SYS_tkill, k->tid, number) == 0 || errno != ESRCH;
}

// Waits until all episodes are over. A leader that has not begun may still
// start workers.
static void watch(const pid_t *leaders, uint32_t lanes)
{
    struct known workers[LANES][WORKERS] = { 0 };
    for (bool alive = true; alive;) {
        nanosleep(&(struct timespec){ 0, POLL_NS }, NULL);
        reap();
        alive = false;
        for (uint32_t l = 0; l < lanes; l++) {
            const struct progress *p = shared->lanes[l].progress;
            alive |= p[0].tid == 0 && kill(leaders[l], 0) == 0;
            for (uint32_t i = 0; i < WORKERS; i++)
                alive |= look_at(&workers[l][i], &p[i]);
        }
    }
}

bool round_run(const struct episode *e, uint32_t lanes)
{
    pid_t leaders[LANES] = { 0 };
    memset(shared->lanes, 0, sizeof(shared->lanes));
    for (uint32_t i = 0; i < lanes; i++) {
        if (!jail_make(i))
            return false;
        leaders[i] = fork();
        if (leaders[i] == 0)
            lead(&e[i], i);
        if (leaders[i] < 0) {
            printf("FAILED fork: %s\n", strerror(errno));
            return false;
        }
    }
    watch(leaders, lanes);
    bool good = end_all_tasks();
    for (uint32_t i = 0; i < lanes; i++)
        unlink(sensor_path(i));
    return jails_remove() && good;
}
