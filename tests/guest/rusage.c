// getrusage and wait4, besides times: context switches, page faults, maximum
// memory; of the process, a thread and ended children.
#include "test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "user/libstrobe/sysinfo.h"

#define PAGES 1024l
#define PAGE 4096l
#define BYTES (PAGES * PAGE)
#define TOTAL_KIB (BYTES / 1024)
#define SLEEPS 30

#ifndef RUSAGE_THREAD
#define RUSAGE_THREAD 1
#endif

static struct rusage usage(int who)
{
    struct rusage r;

    check(getrusage(who, &r) == 0);
    return r;
}

static void touch_and_unmap(void)
{
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    check(memory != MAP_FAILED);
    check(madvise(memory, BYTES, MADV_NOHUGEPAGE) == 0 || errno == EINVAL);
    for (long i = 0; i < PAGES; i++)
        memory[i * PAGE] = 1;
    check(munmap(memory, BYTES) == 0);
}

// Sleeps SLEEPS times. Counts only sleeps that blocked: on a busy host the time
// may be over before one begins.
static void nap(void)
{
    long before = usage(RUSAGE_THREAD).ru_nvcsw;

    while (usage(RUSAGE_THREAD).ru_nvcsw - before < SLEEPS)
        usleep(1000);
}

static long status_kib(const char *name)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[200];
    long kib = 0;

    check(file != NULL);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0)
            check(sscanf(line + strlen(name), ": %ld kB", &kib) == 1);
    }
    fclose(file);
    return kib;
}

static void memory(void)
{
    struct rusage before = usage(RUSAGE_SELF);

    touch_and_unmap();
    struct rusage after = usage(RUSAGE_SELF);
    check(after.ru_minflt - before.ru_minflt >= PAGES);
    check(after.ru_maxrss >= TOTAL_KIB);
    check(after.ru_maxrss < 4 * TOTAL_KIB);
    check(status_kib("VmHWM") >= TOTAL_KIB);
    check(status_kib("VmPeak") >= TOTAL_KIB);
    check(status_kib("VmRSS") < TOTAL_KIB);
    check(status_kib("VmSize") < status_kib("VmPeak"));
    ok("page faults, and the most memory there was");
}

static void *napping_thread(void *arg)
{
    struct rusage own = usage(RUSAGE_THREAD);

    check(own.ru_nvcsw < SLEEPS && own.ru_maxrss >= TOTAL_KIB);
    nap();
    own = usage(RUSAGE_THREAD);
    check(own.ru_nvcsw >= SLEEPS);
    return arg;
}

static void switches(void)
{
    struct rusage before = usage(RUSAGE_SELF);
    pthread_t thread;

    nap();
    struct rusage after = usage(RUSAGE_SELF);
    check(after.ru_nvcsw - before.ru_nvcsw >= SLEEPS);
    check(pthread_create(&thread, NULL, napping_thread, NULL) == 0);
    check(pthread_join(thread, NULL) == 0);
    after = usage(RUSAGE_SELF);
    check(after.ru_nvcsw - before.ru_nvcsw >= 2 * SLEEPS);
    ok("switches of threads, living and ended");
}

static void child(void)
{
    pid_t pid = fork();

    check(pid >= 0);
    if (pid == 0) {
        touch_and_unmap();
        nap();
        _exit(0);
    }
    check(waitpid(pid, NULL, 0) == pid);
    nap();
}

// Runs in a process that has little memory itself.
static void children(void)
{
    struct rusage before = usage(RUSAGE_CHILDREN), used;
    int status;
    pid_t pid = fork();

    check(pid >= 0);
    if (pid == 0) {
        child();
        _exit(0);
    }
    check(wait4(pid, &status, 0, &used) == pid && exited_with(status, 0));
    struct rusage after = usage(RUSAGE_CHILDREN);
    check(used.ru_nvcsw >= 2 * SLEEPS);
    check(used.ru_minflt >= PAGES);
    check(used.ru_maxrss >= TOTAL_KIB);
    check(after.ru_nvcsw - before.ru_nvcsw == used.ru_nvcsw);
    check(after.ru_nivcsw - before.ru_nivcsw == used.ru_nivcsw);
    check(after.ru_minflt - before.ru_minflt == used.ru_minflt);
    check(after.ru_maxrss >= used.ru_maxrss);
    check(before.ru_maxrss < TOTAL_KIB);
    ok("children, and theirs");
}

// Continues in after_exec.
static void exec_again(void)
{
    char faults[20];

    touch_and_unmap();
    snprintf(faults, sizeof(faults), "%ld", usage(RUSAGE_SELF).ru_minflt);
    execl("/proc/self/exe", "rusage", faults, NULL);
}

static void after_exec(const char *faults)
{
    struct rusage now = usage(RUSAGE_SELF);

    check(now.ru_minflt >= atol(faults) && now.ru_maxrss >= TOTAL_KIB);
}

static void program_after_program(void)
{
    check(exited_with(in_child(exec_again), 0));
    ok("what a task has used stays when it runs another program");
}

static void in_the_tree(void)
{
    char path[SYSINFO_PATH_MAX];
    struct sysinfo_task task;

    if (sysinfo_get_type("system.tasks") < 0)
        return;
    snprintf(path, sizeof(path), "system.tasks.%d", (int)getpid());
    struct rusage before = usage(RUSAGE_SELF);
    check(sysinfo_get_task(path, &task) == 0);
    struct rusage after = usage(RUSAGE_SELF);
    check((long)task.faults >= before.ru_minflt);
    check((long)task.faults <= after.ru_minflt);
    ok("sysinfo says the same");
}

int main(int argc, char **argv)
{
    alarm(TEST_SECONDS);
    if (argc > 1) {
        after_exec(argv[1]);
        return 0;
    }
    children();
    memory();
    switches();
    program_after_program();
    in_the_tree();
    return 0;
}
