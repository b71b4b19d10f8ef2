// A user attacks, root works: the worst latencies of root's under each attack
// (attack_kinds.h), and the part of a CPU that a loop of root's gets.
//
//     attacks [ROUNDS [NUMBER...]]     (1 of each eighth; all)
//
// No operation of root's may fail, and each attack ends when it is killed.
// tests/system/test_users.py compares the numbers with bounds, in virtual time;
// docs/reliability.md has those of a longer run.
#include "attack_kinds.h"

#include <grp.h>
#include <sys/utsname.h>

#define USER 1000u
#define SETTLE_MS 150
#define STARTS 4 // of programs, in a round
#define SLEEPS 20
#define WRITES 10
#define LOOP_MS 40
#define FOLDER "/tmp/attacks"

struct worst {
    uint64_t start, wake, write, gone; // ns
    double share;                      // of a CPU
};

static void keep(uint64_t *worst, uint64_t since)
{
    uint64_t took = now_ns() - since;
    if (took > *worst)
        *worst = took;
}

// --- root -------------------------------------------------------------------

static void start_program(struct worst *w)
{
    int status;
    uint64_t start = now_ns();
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        execl("/bin/true", "true", NULL);
        _exit(99);
    }
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    keep(&w->start, start);
}

static void sleep_and_wake(struct worst *w)
{
    uint64_t due = now_ns() + 1000000;
    sleep_ms(1);
    keep(&w->wake, due);
}

static void write_file(struct worst *w)
{
    uint64_t start = now_ns();
    int fd = open("/tmp/roots", O_CREAT | O_EXCL | O_WRONLY, 0600);
    check(fd >= 0 && write(fd, "ten bytes\n", 10) == 10 && close(fd) == 0);
    check(unlink("/tmp/roots") == 0);
    keep(&w->write, start);
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    check(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// In a task of its own: the one that is measured stays interactive, as a shell.
static void loop(struct worst *w, uint64_t ns)
{
    int ends[2], status;
    check(pipe(ends) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        uint64_t start = now_ns(), cpu = cpu_ns(), end;
        do
            end = now_ns();
        while (end - start < ns);
        double share = (double)(cpu_ns() - cpu) / (end - start);
        check(write(ends[1], &share, sizeof(share)) == sizeof(share));
        _exit(0);
    }
    check(read(ends[0], &w->share, sizeof(w->share)) == sizeof(w->share));
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
    close(ends[0]);
    close(ends[1]);
}

static void work(struct worst *w, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < STARTS; i++)
            start_program(w);
        for (int i = 0; i < SLEEPS; i++)
            sleep_and_wake(w);
        for (int i = 0; i < WRITES; i++)
            write_file(w);
    }
    loop(w, rounds * LOOP_MS * 1000000ull);
}

// --- the user ---------------------------------------------------------------

static pid_t begin(const struct attack *a)
{
    check(mkdir(FOLDER, 0700) == 0 && chown(FOLDER, USER, USER) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        check(setpgid(0, 0) == 0 && chdir(FOLDER) == 0);
        check(setgroups(0, NULL) == 0 && setgid(USER) == 0 &&
              setuid(USER) == 0);
        alarm(0);
        a->fn();
        wait_killed();
    }
    setpgid(pid, pid);
    return pid;
}

// Kills the group until none of it is left.
static void end(pid_t group, struct worst *w)
{
    uint64_t start = now_ns();
    check(kill(-group, SIGKILL) == 0);
    check(waitpid(group, NULL, 0) == group);
    while (kill(-group, SIGKILL) == 0)
        sleep_ms(1);
    keep(&w->gone, start);
    check(errno == ESRCH && system("rm -rf " FOLDER " /tmp/attack-*") == 0);
}

static void attack(const struct attack *a, int rounds)
{
    struct worst w = { 0 };
    pid_t group = begin(a);
    sleep_ms(SETTLE_MS);
    check(waitpid(group, NULL, WNOHANG) == 0);
    work(&w, rounds);
    check(waitpid(group, NULL, WNOHANG) == 0);
    end(group, &w);
    dprintf(1, "| %-32s | %7.2f | %7.2f | %7.2f | %5.1f | %7.2f |\n", a->name,
            w.start / 1e6, w.wake / 1e6, w.write / 1e6, 100 * w.share,
            w.gone / 1e6);
}

int main(int argc, char *argv[])
{
    struct utsname names;
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    check(uname(&names) == 0);
    if (strcmp(names.sysname, "Strobe") != 0) {
        ok("nothing: this is not Strobe");
        return 0;
    }
    dprintf(1, "| %-32s | %7s | %7s | %7s | %5s | %7s |\n", "attack", "exec ms",
            "wake ms", "file ms", "CPU %", "gone ms");
    for (int i = 2; i < argc; i++)
        attack(&attacks[(unsigned)atoi(argv[i]) % ATTACKS], rounds);
    for (unsigned i = 0; argc < 3 && i<ATTACKS; i += argc> 1 ? 1 : FEW)
        attack(&attacks[i], rounds);
    ok("root works under all attacks");
    return 0;
}
