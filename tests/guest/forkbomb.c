// Forks until the kernel refuses, twice: fork must fail with an error, and
// everything must be freed when the children are gone.
#include "test.h"

#define CHILDREN_MAX 4000 // limit for machines with much memory

static int breed(void)
{
    int born = 0;

    while (born < CHILDREN_MAX) {
        pid_t pid = fork();
        if (pid == 0) {
            for (;;)
                pause();
        }
        if (pid < 0) {
            check(errno == EAGAIN || errno == ENOMEM);
            break;
        }
        born++;
    }
    return born;
}

static int round_of_bombing(void)
{
    int born = breed(), status;

    signal(SIGTERM, SIG_IGN);
    check(kill(0, SIGTERM) == 0); // only this program's group
    for (int i = 0; i < born; i++)
        check(wait(&status) > 0 && killed_by(status, SIGTERM));
    check_error(wait(&status), ECHILD);
    signal(SIGTERM, SIG_DFL);
    return born;
}

int main(void)
{
    alarm(TEST_SECONDS);
    check(setpgid(0, 0) == 0 || errno == EPERM);
    int first = round_of_bombing(), second = round_of_bombing();
    dprintf(1, "# %d children, then %d\n", first, second);
    check(first > 10);
    check(second > first - first / 10 - 10);
    ok("a fork bomb is refused and leaves nothing behind");
    return 0;
}
