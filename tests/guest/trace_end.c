// A trace that is over comes to an end for its reader, however many tasks are
// created afterwards: after a pause, and after the end of its task, no records
// of tasks are added. And its reader has the name of each thread that there was
// when the trace began, also of one that has left before it asks for them.
#include "test.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "user/libstrobe/strobe.h"
#include "user/libtrace/reader.h"

#define BUFFER_BYTES (256u << 10)
#define TASKS 20

static struct profile_session session;
static struct trace_reader reader;
static uint32_t late; // the first task that is created after the trace
static unsigned names, late_names;
static uint32_t leaving; // a thread
static unsigned leaving_names;

static void on_task(void *arg, const struct sprofile_task *t)
{
    (void)arg;
    names++;
    late_names += late && t->task >= late;
    leaving_names += t->kind == SPROFILE_T_NAMED && t->parent == leaving &&
                     strcmp(t->name, "leaving") == 0;
}

static void ignore_event(void *arg, const struct trace_event *e)
{
    (void)arg;
    (void)e;
}

static void begin(pid_t task)
{
    struct trace_options o = { .points = 1u << TRACE_sched_switch,
                               .task = (uint32_t)task };

    reader = (struct trace_reader){ .event = ignore_event, .task = on_task };
    names = late_names = late = 0;
    check(profile_trace_begin(&session, &o) == 0);
}

static void create_tasks(void)
{
    for (int i = 0; i < TASKS; i++) {
        pid_t pid = fork();
        check(pid >= 0);
        if (pid == 0)
            _exit(0);
        late = late ? late : (uint32_t)pid;
        check(waitpid(pid, NULL, 0) == pid);
    }
}

// Bytes; -1: ESHUTDOWN.
static int read_once(void)
{
    static char buffer[BUFFER_BYTES];

    check(profile_trace_request(&session, buffer, sizeof(buffer)) == 0);
    int n = profile_trace_answer(&session, -1);
    check(n >= 0 || errno == ESHUTDOWN);
    if (n > 0)
        check(!trace_reader_take(&reader, buffer, (size_t)n));
    return n;
}

static void end(void)
{
    trace_reader_finish(&reader);
    trace_reader_free(&reader);
    profile_end(&session);
}

static void test_pause(void)
{
    begin(0);
    create_tasks();
    check(profile_pause(&session, true) == 0);
    late = 0;
    create_tasks();
    read_once();
    create_tasks();
    while (read_once() > 0)
        ;
    check(names >= 2 * TASKS && !late_names); // each one's fork and end
    create_tasks();
    check(read_once() == 0);
    end();
    ok("no names of tasks that are created after the pause");
}

static void test_task_ended(void)
{
    int go[2];
    char c;

    check(pipe(go) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        close(go[1]);
        _exit(read(go[0], &c, 1) != 0);
    }
    close(go[0]);
    begin(pid);
    close(go[1]);
    check(waitpid(pid, NULL, 0) == pid);
    create_tasks();
    int n = read_once();
    create_tasks();
    while (n >= 0)
        n = read_once();
    check(names && !late_names);
    end();
    ok("no names of tasks that are created after the traced task's end");
}

static int here[2], go[2];

static void *wait_and_leave(void *arg)
{
    pid_t tid = (pid_t)syscall(SYS_gettid);
    char c;

    check(prctl(PR_SET_NAME, "leaving") == 0);
    check(write(here[1], &tid, sizeof(tid)) == sizeof(tid));
    check(read(go[0], &c, 1) == 0);
    return arg;
}

static void read_names_of(pid_t tid)
{
    leaving = (uint32_t)tid;
    leaving_names = 0;
    check(profile_pause(&session, true) == 0);
    while (read_once() > 0)
        ;
    check(leaving_names == 1);
    end();
}

static void test_task_leaves(void)
{
    pid_t tid;

    check(pipe(go) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        close(go[1]);
        wait_and_leave(NULL);
        _exit(0);
    }
    close(go[0]);
    check(read(here[0], &tid, sizeof(tid)) == sizeof(tid) && tid == pid);
    begin(0);
    close(go[1]);
    check(waitpid(pid, NULL, 0) == pid);
    read_names_of(pid);
    ok("the name of a task that has left since the trace began");
}

static void test_thread_leaves(void)
{
    pthread_t other;
    pid_t tid;

    check(pipe(go) == 0);
    check(pthread_create(&other, NULL, wait_and_leave, NULL) == 0);
    check(read(here[0], &tid, sizeof(tid)) == sizeof(tid));
    begin(0);
    close(go[1]);
    check(pthread_join(other, NULL) == 0);
    while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
        sched_yield();
    close(go[0]);
    read_names_of(tid);
    ok("the name of a thread that has left since the trace began");
}

int main(void)
{
    alarm(TEST_SECONDS);
    test_pause();
    test_task_ended();
    check(pipe(here) == 0);
    test_task_leaves();
    test_thread_leaves();
    return 0;
}
