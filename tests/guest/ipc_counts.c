// The six message counters of each task in system.tasks (HelenOS's table 4.3),
// and the list of connections.
#include "ipc.h"

#include "user/libstrobe/sysinfo.h"

#define CALLS 37
#define FORWARDS 11
#define NOTIFICATIONS 5
#define TIMER_VECTOR 0xe0

#define COUNTERS 6 // in the order of struct sysinfo_task
enum { SENT, RECEIVED, ANSWERED, GOT_ANSWER, IRQS, FORWARDED };

struct counts {
    uint64_t of[COUNTERS];
};

static struct counts counts(pid_t pid)
{
    char path[SYSINFO_PATH_MAX];
    struct sysinfo_task t;

    snprintf(path, sizeof(path), "system.tasks.%d", (int)pid);
    check(sysinfo_get_task(path, &t) == 0);
    return (struct counts){ { t.call_sent, t.call_received, t.answer_sent,
                              t.answer_received, t.irq_notif_received,
                              t.forwarded } };
}

static bool grown_by(pid_t pid, const struct counts *before,
                     const struct counts *grown)
{
    struct counts now = counts(pid);

    for (int i = 0; i < COUNTERS; i++) {
        if (now.of[i] - before->of[i] != grown->of[i])
            return false;
    }
    return true;
}

// Waits until a server has answered or forwarded all that it received: a
// forward is counted after its receiver may have answered.
static struct counts settled(pid_t pid)
{
    struct counts c = counts(pid);

    for (int i = 0; i < 1000; i++) {
        if (c.of[RECEIVED] == c.of[ANSWERED] + c.of[FORWARDED])
            return c;
        sleep_ms(10);
        c = counts(pid);
    }
    check(!"it settles");
    return c;
}

// Checks the growth since `before`; all other counters must be unchanged.
static void check_grown(pid_t pid, const struct counts *before,
                        const struct counts *grown)
{
    for (int i = 0; pid != getpid() && i < 1000; i++) {
        if (grown_by(pid, before, grown))
            break;
        sleep_ms(10);
    }
    check(grown_by(pid, before, grown));
}

static bool connected(pid_t caller, pid_t callee)
{
    size_t n;
    bool found = false;
    struct sysinfo_ipcc *list = sysinfo_read_ipcc("system.ipccs", &n);

    check(list != NULL);
    for (size_t i = 0; i < n; i++)
        found |= list[i].caller == (uint32_t)caller &&
                 list[i].callee == (uint32_t)callee;
    free(list);
    return found;
}

static void calls(void)
{
    pid_t server = start_server();
    int phone = ipc_connect(server);

    check(phone >= 0 && connected(getpid(), server));
    check(echo(phone, 1) == 1); // the server runs
    struct counts own = counts(getpid()), theirs = settled(server);
    for (int i = 0; i < CALLS; i++)
        check(echo(phone, i) == i);
    struct ipc_call call = { .method = M_HOLD };
    check(ipc_call(phone, &call) == 0); // sent, received, never answered
    check(ask(phone, M_HANGUPS) == 0);
    const struct counts mine = {
        { [SENT] = CALLS + 2, [GOT_ANSWER] = CALLS + 1 }
    };
    const struct counts its = {
        { [RECEIVED] = CALLS + 2, [ANSWERED] = CALLS + 1 }
    };
    check_grown(getpid(), &own, &mine);
    check_grown(server, &theirs, &its);
    close(phone);
    check(!connected(getpid(), server));
    end_server(server);
    ok("calls and answers are counted");
}

static void forwards(void)
{
    pid_t server = start_server();
    int to_server = ipc_connect(server);
    pid_t relay = fork();

    check(to_server >= 0 && relay >= 0);
    if (relay == 0) {
        int box = ipc_box();
        struct ipc_call call;
        check(box >= 0);
        for (;;) {
            check(ipc_wait(box, &call, -1) == 0);
            if (call.id != 0)
                check(ipc_forward(box, call.id, to_server, NULL) == 0);
        }
    }
    int phone = ipc_connect(relay);
    check(phone >= 0 && echo(phone, 5) == 5);
    struct counts own = counts(getpid()), middle = settled(relay),
                  theirs = settled(server);
    for (int i = 0; i < FORWARDS; i++)
        check(echo(phone, i) == i);
    const struct counts mine = {
        { [SENT] = FORWARDS, [GOT_ANSWER] = FORWARDS }
    };
    const struct counts its = {
        { [RECEIVED] = FORWARDS, [FORWARDED] = FORWARDS }
    };
    const struct counts last = {
        { [RECEIVED] = FORWARDS, [ANSWERED] = FORWARDS }
    };
    check_grown(getpid(), &own, &mine);
    check_grown(relay, &middle, &its);
    check_grown(server, &theirs, &last);
    close(phone);
    close(to_server);
    end_server(relay);
    end_server(server);
    ok("forwards are counted");
}

static void notifications(void)
{
    int box = ipc_box();
    struct ipc_call call;

    check(box >= 0);
    if (ipc_irq(box, TIMER_VECTOR, true) < 0) {
        check(errno == ENXIO); // another timer is in use
        ok("(no interrupt to be notified of)");
        return;
    }
    struct counts own = counts(getpid());
    for (int i = 0; i < NOTIFICATIONS; i++) {
        sleep_ms(5);
        check(ipc_wait(box, &call, 5000) == 0 && call.method == IPC_M_IRQ);
    }
    check(ipc_irq(box, TIMER_VECTOR, false) == 0);
    const struct counts mine = { { [IRQS] = NOTIFICATIONS } };
    check_grown(getpid(), &own, &mine);
    close(box);
    ok("notifications are counted");
}

int main(void)
{
    alarm(TEST_SECONDS);
    skip_elsewhere();
    calls();
    forwards();
    notifications();
    return 0;
}
