// Tick accounting of a session that is paused and resumed repeatedly, with more
// runnable threads than CPUs: each tick is counted on the side of the pause on
// which it was due, even if the pausing thread is preempted.
//
//     profile_books [ROUNDS [EDGE [random]]]
//                        (100, on several CPUs 40 / CPUs; any; fixed distances)
//
// EDGE is how many ticks of each CPU may be on the wrong side of a pause: any
// number where the host schedules the CPUs. (A slice of the scheduler's has
// 40.)
#include "test.h"

#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

#include "user/libstrobe/strobe.h"

#define RATE_HZ 4000
#define SPINNERS_MAX 64

static int64_t missing(struct profile_session *s)
{
    struct sprofile_info i;

    check(profile_info(s, &i) == 0);
    return (int64_t)(i.expected - i.taken - i.missed - i.throttled -
                     i.in_sampling - i.others);
}

int main(int argc, char *argv[])
{
    int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int rounds = argc > 1 ? atoi(argv[1]) : cpus > 1 ? 40 / cpus : 100;
    int edge = argc > 2 ? atoi(argv[2]) : INT_MAX;
    pid_t spinners[SPINNERS_MAX];
    bool random = argc > 3 && strcmp(argv[3], "random") == 0;
    struct sprofile_options o = { .rate_hz = RATE_HZ,
                                  .flags = random ? SPROFILE_O_RANDOM : 0 };
    struct profile_session s = { 0 };
    int64_t before = 0, most = 0;

    for (int i = 0; i < 2 * cpus; i++) {
        spinners[i] = fork();
        check(spinners[i] >= 0);
        while (spinners[i] == 0)
            __builtin_ia32_pause();
    }
    check(profile_begin_system(&s, &o) == 0);
    for (int i = 0; i < rounds; i++) {
        for (volatile int k = 0; k < 20000; k++)
            __builtin_ia32_pause();
        check(profile_pause(&s, true) == 0);
        int64_t now = missing(&s), more = llabs(now - before);
        if (more > most)
            most = more;
        before = now;
        check(profile_pause(&s, false) == 0);
    }
    profile_end(&s);
    printf("at most %d ticks at an edge, %d in all\n", (int)most, (int)before);
    for (int i = 0; i < 2 * cpus; i++) {
        kill(spinners[i], SIGKILL);
        check(waitpid(spinners[i], NULL, 0) == spinners[i]);
    }
    check(most <= (int64_t)edge * cpus);
    ok("ticks are reported on their side of a pause");
    return 0;
}
