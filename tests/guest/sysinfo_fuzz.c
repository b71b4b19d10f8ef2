// The sysinfo calls with random paths, sizes and buffers, while tasks come and
// go and memory is unmapped: each returns an answer or an error and never
// writes outside the buffer.
//
//     sysinfo_fuzz [SEED]
#include "test.h"

#include "user/libstrobe/sysinfo.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE 4096u
#define BUFFER (4 * PAGE)
#define PATHS_MAX 600
#define ROUNDS 600
#define MOVING_ROUNDS 100
#define CANARY 0x5a

static uint32_t state;

static uint32_t random_below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state ^ state >> 15) * n >> 32);
}

// ---- valid paths

static char paths[PATHS_MAX][SYSINFO_PATH_MAX];
static unsigned path_count;

static void collect(const char *path)
{
    char *keys = sysinfo_read_keys(path);

    if (path_count < PATHS_MAX)
        strcpy(paths[path_count++], path);
    for (char *key = keys; key != NULL && *key; key += strlen(key) + 1) {
        char child[SYSINFO_PATH_MAX];
        snprintf(child, sizeof(child), "%s%s%s", path, *path ? "." : "", key);
        collect(child);
    }
    free(keys);
}

// ---- invalid ones

static const char *const pieces[] = {
    "",           ".",          "..",         "0",
    "00",         "01",         "-1",         "+1",
    " 1",         "1 ",         "0x1",        "1e1",
    "4294967295", "4294967296", "4294967297", "18446744073709551616",
    "#",          "*",          "%s%n",       "\xff\xfe",
    "system",     "tasks",      "cpus",       "threads",
    "syscalls"
};

// Changes bytes, or inserts a piece. Returns the new length.
static size_t mutate(char *path, size_t size, size_t room)
{
    for (uint32_t n = random_below(4); n > 0; n--) {
        const char *piece =
            pieces[random_below(sizeof(pieces) / sizeof(pieces[0]))];
        size_t add = strlen(piece), at = random_below(size + 1);
        switch (random_below(4)) {
        case 0: // a byte
            if (at < size)
                path[at] = (char)random_below(256);
            break;
        case 1: // the end
            size = at;
            break;
        case 2: // in place of the last component
            while (at > 0 && path[at - 1] != '.')
                at--;
            size = at;
            // fall through
        default:
            if (size + add > room)
                break;
            memmove(path + at + add, path + at, size - at);
            memcpy(path + at, piece, add);
            size += add;
        }
    }
    return size;
}

// ---- the calls

static void check_result(long result)
{
    check(result >= 0 || errno == ENOENT || errno == EFAULT);
}

static void canary_lives(const unsigned char *buffer, size_t from)
{
    static unsigned char canary[BUFFER];

    if (canary[0] == 0)
        memset(canary, CANARY, BUFFER);
    check(memcmp(buffer + from, canary, BUFFER - from) == 0);
}

static void one_round(unsigned char *buffer, char *path_page)
{
    char path[SYSINFO_PATH_MAX * 2];
    size_t size = strlen(paths[0]);
    unsigned which = random_below(path_count);

    size = strlen(paths[which]);
    memcpy(path, paths[which], size);
    size = mutate(path, size, sizeof(path));
    // It ends where mapped memory does, or a few bytes before.
    char *placed = path_page + PAGE - size - random_below(3);
    memcpy(placed, path, size);
    size_t length = random_below(20) == 0 ? random_below(~0u) : size;

    size_t room = random_below(4) == 0 ? 0 : random_below(BUFFER);
    long call = random_below(2) ? SYS_sysinfo_get_data : SYS_sysinfo_get_keys;
    memset(buffer, CANARY, BUFFER);
    errno = 0;
    long result = syscall(call, placed, length, buffer, room);
    check_result(result);
    canary_lives(buffer, result < 0              ? 0
                         : (size_t)result < room ? (size_t)result
                                                 : room);
    errno = 0;
    check_result(syscall(SYS_sysinfo_get_type, placed, length));
}

static void fuzz(void)
{
    unsigned char *buffer = malloc(BUFFER);
    char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    check(buffer != NULL && page != MAP_FAILED);
    check(munmap(page + PAGE, PAGE) == 0);
    for (int i = 0; i < ROUNDS; i++)
        one_round(buffer, page);
    free(buffer);
    munmap(page, PAGE);
    ok("paths and sizes at random");
}

// ---- a buffer that comes and goes while it is written

static char *volatile moving;
static volatile bool stop;

static void *take_away(void *unused)
{
    (void)unused;
    while (!stop) {
        mprotect(moving + PAGE, PAGE, PROT_READ);
        mprotect(moving + PAGE, PAGE, PROT_NONE);
        mprotect(moving + PAGE, PAGE, PROT_READ | PROT_WRITE);
        madvise(moving, 4 * PAGE, MADV_DONTNEED);
    }
    return NULL;
}

static void moving_buffer(void)
{
    static const char *const big[] = { "kernel.symbols", "kernel.records",
                                       "system.syscalls", "system.threads" };
    pthread_t thread;
    unsigned good = 0, bad = 0;

    moving = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(moving != MAP_FAILED);
    check(pthread_create(&thread, NULL, take_away, NULL) == 0);
    for (int i = 0; i < MOVING_ROUNDS; i++) {
        const char *path = big[random_below(4)];
        errno = 0;
        long n =
            syscall(SYS_sysinfo_get_data, path, strlen(path), moving, 4 * PAGE);
        check_result(n);
        good += n >= 0;
        bad += n < 0;
    }
    stop = true;
    check(pthread_join(thread, NULL) == 0);
    munmap(moving, 4 * PAGE);
    dprintf(1, "# %u answered, %u faulted\n", good, bad);
    ok("a buffer that goes away meanwhile");
}

// Tasks that begin and end while their nodes are read.
static pid_t start_coming_and_going(void)
{
    pid_t pid = fork();

    check(pid >= 0);
    if (pid > 0)
        return pid;
    for (;;) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child > 0)
            waitpid(child, NULL, 0);
    }
}

int main(int argc, char *argv[])
{
    alarm(TEST_SECONDS);
    if (sysinfo_get_type("") < 0 && errno == ENOSYS) {
        ok("sysinfo: skipped, it is Strobe's");
        return 0;
    }
    state = argc > 1 ? (uint32_t)atoi(argv[1]) : (uint32_t)now_ns();
    dprintf(1, "# seed %u\n", state);
    pid_t others = start_coming_and_going();
    collect("");
    check(path_count > 40);
    fuzz();
    moving_buffer();
    check(kill(others, SIGKILL) == 0);
    check(waitpid(others, NULL, 0) == others);
    return 0;
}
