// A session that begins while its task exits: a client that connected in time
// gets a session and is notified of the end, at any stage of the exit.
#include "test.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include <strobe/kbox.h>

#include "user/libstrobe/strobe.h"

#define TRIES 100
#define STEP_NS 20000    // later each time
#define MEMORY (8 << 20) // takes a while to free
#define READS 3          // remaining data, the end, one spare

static int32_t command(int phone, uint32_t what, void *a, uint32_t b)
{
    struct ipc_call call = { .method = IPC_M_SPROFILE_ALL,
                             .arg = { what, (uintptr_t)a, b } };
    struct ipc_call answer;

    check(ipc_call(phone, &call) == 0);
    check(ipc_wait(phone, &answer, -1) == 0 && answer.id == call.id);
    return answer.retval;
}

// A child with much memory, that ends when *go is closed.
static pid_t start(int *go)
{
    int ready[2], end[2];
    char byte;

    check(pipe(ready) == 0 && pipe(end) == 0);
    pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        close(end[1]);
        char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(memory != MAP_FAILED);
        memset(memory, 1, MEMORY);
        check(write(ready[1], "", 1) == 1);
        check(read(end[0], &byte, 1) == 0);
        _exit(0);
    }
    check(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    close(end[0]);
    *go = end[1];
    return child;
}

static void notified_of_the_end(int phone)
{
    static _Alignas(8) char records[4096];
    int32_t got = 0;

    for (int i = 0; i < READS && got >= 0; i++)
        got = command(phone, SPROFILE_M_DATA_READ, records, sizeof(records));
    check(got == -ESHUTDOWN);
}

static void counted_to_the_end(int phone)
{
    static struct sprofile_counts counts;

    check(command(phone, SPROFILE_M_COUNT_READ, &counts, 0) == 0);
    check(counts.tasks == 0);
}

static void try(int n)
{
    struct sprofile_options sampled = { .size = sizeof(sampled),
                                        .flags = SPROFILE_O_CHILDREN };
    struct sprofile_count_options counted = { .size = sizeof(counted),
                                              .events = 1,
                                              .event = { "task-clock" } };
    int go;
    pid_t child = start(&go);
    int samples = kbox_connect(child), counts = kbox_connect(child);

    check(samples >= 0 && counts >= 0);
    uint64_t begin = now_ns() + (uint64_t)n * STEP_NS;
    close(go);
    while (now_ns() < begin)
        ;
    check(command(samples, SPROFILE_M_TASK_BEGIN, &sampled, 0) == 0);
    check(command(counts, SPROFILE_M_COUNT_BEGIN, &counted, 0) == 0);
    check(waitpid(child, NULL, 0) == child);
    notified_of_the_end(samples);
    counted_to_the_end(counts);
    close(samples);
    close(counts);
}

int main(void)
{
    alarm(TEST_SECONDS);
    if (kbox_connect(getpid()) < 0) {
        ok("nothing: this is not Strobe");
        return 0;
    }
    for (int n = 0; n < TRIES; n++)
        try(n);
    ok("a session that begins while its task ends is notified");
    return 0;
}
