// Names of tasks and threads: prctl, and comm of /proc, by Linux's rules.
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define LONGEST "fifteen letters"

static char text[64];

static const char *slurp(const char *path)
{
    int fd = open(path, O_RDONLY);
    check(fd >= 0);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    check(n >= 0);
    text[n] = '\0';
    check(close(fd) == 0);
    return text;
}

static bool comm_is(int task, int thread, const char *name)
{
    char path[64], line[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", task, thread);
    snprintf(line, sizeof(line), "%s\n", name);
    return strcmp(slurp(path), line) == 0;
}

static int write_comm(const char *path, const char *name)
{
    int fd = open(path, O_WRONLY | O_TRUNC);
    check(fd >= 0);
    int n = write(fd, name, strlen(name)), error = errno;
    check(close(fd) == 0);
    errno = error;
    return n;
}

static void by_prctl(void)
{
    char name[17] = "";
    int self = getpid();

    check(prctl(PR_SET_NAME, "short") == 0 && comm_is(self, self, "short"));
    check(prctl(PR_GET_NAME, name) == 0 && strcmp(name, "short") == 0);
    check(strcmp(slurp("/proc/self/comm"), "short\n") == 0);
    check(prctl(PR_SET_NAME, LONGEST " and more") == 0);
    memset(name, 'x', 16);
    check(prctl(PR_GET_NAME, name) == 0 && strcmp(name, LONGEST) == 0);
    check(prctl(PR_SET_NAME, LONGEST) == 0 && comm_is(self, self, LONGEST));
    check(prctl(PR_SET_NAME, "") == 0 && comm_is(self, self, ""));
    check_error(prctl(PR_SET_NAME, (void *)8), EFAULT);
    check_error(prctl(PR_GET_NAME, (void *)8), EFAULT);
    check_error(prctl(-1), EINVAL);
    ok("prctl names the thread");
}

// 15 bytes are read, and not the sixteenth.
static void at_the_end_of_memory(void)
{
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
    memset(page + 4096 - 15, 'e', 15);
    check(prctl(PR_SET_NAME, page + 4096 - 15) == 0);
    check(comm_is(getpid(), getpid(), "eeeeeeeeeeeeeee"));
    check_error(prctl(PR_SET_NAME, page + 4096 - 14), EFAULT);
    check(munmap(page, 4096) == 0);
    ok("no more is read of a name than is taken");
}

static void *sleeper(void *pipe)
{
    char byte;
    check(read(*(int *)pipe, &byte, 1) == 0);
    return NULL;
}

static void by_proc(void)
{
    char path[64];
    int ends[2], self = getpid(), tid = 0;
    pthread_t thread;

    check(write_comm("/proc/self/comm", "written") == 7);
    check(comm_is(self, self, "written"));
    check(write_comm("/proc/self/comm", LONGEST " and more") == 24);
    check(comm_is(self, self, LONGEST));
    check(write_comm("/proc/self/comm", "first") == 5 && pipe(ends) == 0);
    check(pthread_create(&thread, NULL, sleeper, ends) == 0);
    for (int n = self + 1; !tid; n++) { // the only other one
        snprintf(path, sizeof(path), "/proc/self/task/%d/comm", n);
        tid = access(path, F_OK) == 0 ? n : 0;
    }
    check(comm_is(self, tid, "first")); // its creator's
    check(write_comm(path, "second") == 6);
    check(comm_is(self, tid, "second") && comm_is(self, self, "first"));
    check(strcmp(slurp("/proc/self/comm"), "first\n") == 0);
    check(close(ends[1]) == 0 && pthread_join(thread, NULL) == 0);
    ok("a thread of the own task is named by its file");
}

static void of_others(void)
{
    char path[64];
    int status, ends[2], self = getpid();

    check(pipe(ends) == 0 && prctl(PR_SET_NAME, "parent") == 0);
    pid_t child = fork();
    check(child >= 0);
    if (!child) {
        check(comm_is(getpid(), getpid(), "parent"));
        check(prctl(PR_SET_NAME, "child") == 0);
        check(comm_is(self, self, "parent"));
        snprintf(path, sizeof(path), "/proc/%d/comm", self);
        check(write_comm(path, "other") == -1 && errno == EINVAL);
        _exit(0);
    }
    check(wait(&status) == child && status == 0);
    check(comm_is(self, self, "parent"));
    ok("a child has its creator's name, and cannot change that one's");
}

int main(void)
{
    by_prctl();
    at_the_end_of_memory();
    by_proc();
    of_others();
    return 0;
}
