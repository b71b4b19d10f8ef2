// One user takes all it can have of tasks, sessions and their buffers, and
// files; root can start programs and profile.
#include "test.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/utsname.h>

#include <strobe/kbox.h>

#include "user/libstrobe/strobe.h"

#define USER 1000u
#define TASKS_MAX 8000
#define SESSIONS_OF_USER 4
#define RING_BYTES (16u << 20)

static unsigned take_tasks(void)
{
    unsigned born = 0;
    for (; born < TASKS_MAX; born++) {
        pid_t pid = fork();
        if (pid == 0) {
            for (;;)
                pause();
        }
        if (pid < 0)
            break;
    }
    check(errno == EAGAIN || errno == ENOMEM);
    return born;
}

static unsigned take_sessions(void)
{
    struct sprofile_options o = { .rate_hz = 100, .ring_bytes = RING_BYTES };
    struct profile_session s; // stays open
    unsigned begun = 0;
    while (profile_begin(&s, getpid(), &o) == 0)
        begun++;
    check(errno == EUSERS);
    return begun;
}

static unsigned take_counts(void)
{
    struct sprofile_count_options c = { .events = 1 };
    struct profile_session s;
    unsigned begun = 0;
    strcpy(c.event[0], "task-clock");
    while (profile_count_begin(&s, getpid(), &c) == 0)
        begun++;
    check(errno == EUSERS);
    return begun;
}

static void take_files(void)
{
    static char part[1 << 20];
    int fd = open("/tmp/greedy", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    check(fd >= 0);
    while (write(fd, part, sizeof(part)) > 0)
        ;
    check(errno == ENOSPC);
}

static void take_all(int ready)
{
    check(setgroups(0, NULL) == 0 && setgid(USER) == 0 && setuid(USER) == 0);
    check(take_sessions() == SESSIONS_OF_USER);
    check(take_counts() == SESSIONS_OF_USER);
    ok("sessions of one user");
    check(take_tasks() > 10);
    take_files();
    ok("tasks and files are refused");
    check(write(ready, "x", 1) == 1);
    for (;;)
        pause();
}

int main(void)
{
    struct utsname names;
    int ready[2];
    char c;
    alarm(TEST_SECONDS);
    check(uname(&names) == 0);
    if (strcmp(names.sysname, "Strobe") != 0) {
        ok("nothing: this is not Strobe");
        return 0;
    }
    check(pipe(ready) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        take_all(ready[1]);
    }
    close(ready[1]);
    check(read(ready[0], &c, 1) == 1);
    check(system("profile tester 0 >/dev/null") == 0);
    check(system("sprofile tester 0 >/dev/null") == 0);
    check(kill(-pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    unlink("/tmp/greedy");
    ok("root starts programs and profiles");
    return 0;
}
