// One user takes all it can get of tasks, sessions and their buffers, files,
// memory, pipes, phones, file locks and queued signals; concurrently root
// starts programs, profiles, writes files and kills. For a machine without high
// memory.
#include "memory.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <strobe/kbox.h>

#include "user/libstrobe/ipc.h"
#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#define USER 1000u
#define OTHER 2000u
#define TASKS_MAX 8000
#define SESSIONS_OF_USER 4
#define RING_BYTES (16u << 20)
#define ROOTS_PART 10 // kernel/mm/frame_init.c
#define HOGS 4
#define SET_USER_ID "/tmp/greedy-with-rights"

static void become(uid_t user)
{
    check(setgroups(0, NULL) == 0 && setgid(user) == 0 && setuid(user) == 0);
}

// Starts a task of the user in its own process group. end_group kills it with
// all that it has started.
static pid_t start(uid_t user, void (*fn)(int ready), int *ready)
{
    int pipes[2];
    check(pipe(pipes) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        setpgid(0, 0);
        close(pipes[0]);
        become(user);
        fn(pipes[1]);
        wait_killed();
    }
    setpgid(pid, pid);
    close(pipes[1]);
    *ready = pipes[0];
    return pid;
}

static pid_t start_and_wait(uid_t user, void (*fn)(int ready))
{
    int ready;
    char c;
    pid_t pid = start(user, fn, &ready);
    check(read(ready, &c, 1) == 1);
    close(ready);
    return pid;
}

static void say_ready(int ready)
{
    check(write(ready, "x", 1) == 1);
}

static size_t charged_to(uid_t user, size_t *share, size_t *tasks)
{
    size_t n, held = 0;
    struct sysinfo_user *users = sysinfo_read_user("system.users", &n);
    check(users);
    *tasks = 0;
    for (size_t i = 0; i < n; i++) {
        held += users[i].uid == user ? users[i].held : 0;
        *tasks += users[i].uid == user ? users[i].tasks : 0;
        *share = users[i].share;
    }
    free(users);
    return held;
}

// Files of earlier tests.
static size_t held_before[2];

static bool has_anything(uid_t user)
{
    size_t share, tasks, held = charged_to(user, &share, &tasks);
    return tasks || held > held_before[user == OTHER];
}

static void end_group(pid_t pid)
{
    check(kill(-pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    while (has_anything(USER) || has_anything(OTHER)) // a leak: for ever
        sleep_ms(1);
}

#define ROOTS_FILES 50

static void root_writes_files(void)
{
    char path[32];
    for (int i = 0; i < ROOTS_FILES; i++) {
        snprintf(path, sizeof(path), "/tmp/roots-%d", i);
        int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
        check(fd >= 0 && write(fd, "ten bytes\n", 10) == 10);
        close(fd);
    }
    for (int i = 0; i < ROOTS_FILES; i++) {
        snprintf(path, sizeof(path), "/tmp/roots-%d", i);
        check(unlink(path) == 0);
    }
}

static void root_works(void)
{
    int status;
    root_writes_files();
    check(system("profile tester 0 >/dev/null") == 0);
    check(system("sprofile tester 0 >/dev/null") == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0)
        wait_killed();
    check(kill(pid, SIGKILL) == 0);
    check(waitpid(pid, &status, 0) == pid && killed_by(status, SIGKILL));
}

// --- tasks, sessions, files -------------------------------------------------

static unsigned take_tasks(void)
{
    unsigned born = 0;
    for (; born < TASKS_MAX; born++) {
        pid_t pid = fork();
        if (pid == 0)
            wait_killed();
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
    check(errno == ENOSPC || errno == EDQUOT);
}

static void take_many(int ready)
{
    check(take_sessions() == SESSIONS_OF_USER);
    check(take_counts() == SESSIONS_OF_USER);
    ok("sessions of one user");
    check(take_tasks() > 10);
    take_files();
    ok("tasks and files are refused");
    say_ready(ready);
}

static void many_things(void)
{
    pid_t pid = start_and_wait(USER, take_many);
    root_works();
    check(unlink("/tmp/greedy") == 0);
    end_group(pid);
    ok("root starts programs, profiles and writes files");
}

// --- files ------------------------------------------------------------------

#define FOLDER "/tmp/greedy-files"

// Data, links, directories and names of every kind, each until it is refused;
// what was taken last is small.
static void take_share_of_files(int ready)
{
    static char part[1 << 16], target[1024], path[64];
    size_t share, before, tasks;
    unsigned n = 0;
    check(chdir(FOLDER) == 0);
    int fd = open("data", O_CREAT | O_WRONLY, 0600);
    check(fd >= 0);
    while (write(fd, part, sizeof(part)) > 0)
        ;
    check(errno == EDQUOT);
    before = charged_to(USER, &share, &tasks);
    check(before <= share && share - before < 2 * PAGE);
    check(ftruncate(fd, 0) == 0);
    check(charged_to(USER, &share, &tasks) <= before - share / 2);
    memset(target, 'x', sizeof(target) - 1);
    for (errno = 0; !errno; n++) {
        snprintf(path, sizeof(path), "name-%u", n);
        switch (n % 4) {
        case 0:
            mkdir(path, 0700);
            break;
        case 1:
            link("data", path);
            break;
        case 2:
            symlink(target, path);
            break;
        case 3:
            mkfifo(path, 0600);
            break;
        }
    }
    check(errno == EDQUOT && n > 1000);
    do
        snprintf(path, sizeof(path), "name-%u", n++);
    while (mkdir(path, 0700) == 0);
    check_error(open(path, O_CREAT | O_WRONLY, 0600), EDQUOT);
    check(share - charged_to(USER, &share, &tasks) < 2 * PAGE);
    say_ready(ready);
}

static void write_one_file(int ready)
{
    int fd = open(FOLDER "/other", O_CREAT | O_WRONLY, 0600);
    check(fd >= 0 && write(fd, "x", 1) == 1);
    say_ready(ready);
}

static void files_of_one_user(void)
{
    check(mkdir(FOLDER, 0700) == 0 && chmod(FOLDER, 0777) == 0);
    pid_t pid = start_and_wait(USER, take_share_of_files);
    root_works();
    pid_t other = start_and_wait(OTHER, write_one_file);
    check(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
    check(system("rm -r " FOLDER) == 0);
    end_group(pid);
    ok("files of one user take its share, and are given back");
}

// --- what the kernel holds --------------------------------------------------

// Takes until refused. When this task has no more descriptors, a child
// continues with all of its own closed.
static int take_descriptors(int (*take)(void))
{
    while (take() >= 0)
        ;
    if (errno != EMFILE)
        return errno;
    int result[2] = { 3, 4 }, error;
    close(result[0]);
    close(result[1]);
    check(pipe(result) == 0);
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        for (int fd = 5; fd < 1024; fd++)
            close(fd);
        error = take_descriptors(take);
        check(write(result[1], &error, sizeof(error)) == sizeof(error));
        wait_killed();
    }
    check(read(result[0], &error, sizeof(error)) == sizeof(error));
    return error;
}

static int take_pipe(void)
{
    int ends[2];
    return pipe(ends);
}

static int take_phone(void)
{
    return ipc_connect(getpid());
}

static int set_lock(int fd, unsigned at, unsigned bytes, short type)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = bytes
    };
    return fcntl(fd, F_SETLK, &lock);
}

// Locks every other byte, so that no two locks merge.
static void take_locks(int fd)
{
    unsigned n = 0;
    while (set_lock(fd, 2 * n, 1, F_WRLCK) == 0)
        n++;
    check(n > 0 && errno == ENOLCK);
    check(set_lock(fd, 0, 0, F_UNLCK) == 0); // allocates nothing, frees all
    for (unsigned i = 0; i < n; i++)
        check(set_lock(fd, 2 * i, 1, F_WRLCK) == 0);
    check_error(set_lock(fd, 2 * n, 1, F_WRLCK), ENOLCK);
}

static void take_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    check(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    union sigval value = { .sival_int = 1 };
    while (sigqueue(getpid(), SIGRTMIN, value) == 0)
        ;
    check(errno == EAGAIN);
    check_error(sigqueue(getpid(), SIGRTMIN, value), EAGAIN);
}

// All kinds count against one share: each takes what the previous ones leave.
static void take_held(int ready)
{
    int fd = open("/tmp/greedy", O_CREAT | O_RDWR | O_TRUNC, 0600);
    check(fd >= 0 && dup2(fd, 1000) == 1000);
    close(fd);
    for (int i = 3; i < 1000; i++) {
        if (i != ready)
            close(i);
    }
    check(dup2(ready, 1001) == 1001);
    check(close(ready) == 0);
    check(take_descriptors(take_pipe) == ENFILE);
    check_error(take_pipe(), ENFILE);
    ok("pipes are refused");
    check(take_descriptors(take_phone) == ENFILE);
    ok("phones are refused");
    take_locks(1000);
    ok("file locks are refused");
    take_signals();
    ok("queued signals are refused");
    say_ready(1001);
}

// Another user still gets pipes from its own share.
static void others_have_theirs(int ready)
{
    for (int i = 0; i < 100; i++)
        check(take_pipe() == 0);
    say_ready(ready);
}

// Less than a page of the user's share is unused.
static void check_held_is_all(void)
{
    size_t n;
    struct sysinfo_user *users = sysinfo_read_user("system.users", &n);
    check(users);
    for (size_t i = 0; i < n; i++) {
        if (users[i].uid == USER)
            check(users[i].share > MIB(1) &&
                  users[i].share - users[i].held < PAGE);
    }
    free(users);
}

static void held_by_the_kernel(void)
{
    pid_t pid = start_and_wait(USER, take_held);
    check_held_is_all();
    root_works();
    pid_t other = start_and_wait(OTHER, others_have_theirs);
    check(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
    check(unlink("/tmp/greedy") == 0);
    end_group(pid);
    ok("root works, another user has its own share, and all is given back");
}

// --- memory -----------------------------------------------------------------

static size_t roots;

static void fill(size_t left)
{
    while (free_memory() > left)
        touch(16 * PAGE);
}

static void fill_all(int ready)
{
    fill(roots / 4);
    say_ready(ready); // not reached on this kernel
}

// The same by a set-user-ID program, with root's rights but not root's share.
static void fill_with_rights(int ready)
{
    char fd[12];
    snprintf(fd, sizeof(fd), "%d", ready);
    execl(SET_USER_ID, "greedy", fd, NULL);
    check(!"exec");
}

static void take_most(int ready)
{
    touch((free_memory() - roots) / 5 * 3);
    say_ready(ready);
}

// One task wants all memory that root's task leaves: it is killed, although
// root's is larger, and root never waits.
static void one_wants_all(void (*how)(int ready), const char *what)
{
    int ready, status;
    pid_t large = start_and_wait(0, take_most);
    pid_t pid = start(USER, how, &ready);
    do
        root_works();
    while (waitpid(pid, &status, WNOHANG) == 0);
    check(killed_by(status, SIGKILL));
    close(ready);
    check(waitpid(large, NULL, WNOHANG) == 0);
    end_group(large);
    ok(what);
}

static void fill_share(int ready)
{
    fill(roots + MIB(2)); // not counting per-CPU caches
    say_ready(ready);
}

static void one_has_its_share(void)
{
    pid_t pid = start_and_wait(USER, fill_share);
    check(free_memory() < roots + MIB(3));
    root_works();
    end_group(pid);
    ok("root works while a user has all that it may have");
}

// All hogs start before any takes memory that the others need to report.
static int go[2];

static void hog(int ready)
{
    char c;
    say_ready(ready);
    check(read(go[0], &c, 1) == 1);
    for (;;) {
        pid_t pid = fork();
        if (pid == 0) {
            for (;;)
                touch(PAGE);
        }
        if (pid < 0)
            sleep_ms(1);
        else
            check(waitpid(pid, NULL, 0) == pid);
    }
}

static void many_want_all(void)
{
    pid_t pid[HOGS];
    check(pipe(go) == 0);
    for (int i = 0; i < HOGS; i++)
        pid[i] = start_and_wait(USER, hog);
    check(write(go[1], "xxxxxxxx", HOGS) == HOGS);
    for (int i = 0; i < 5; i++)
        root_works();
    for (int i = 0; i < HOGS; i++)
        check(kill(-pid[i], SIGKILL) == 0);
    for (int i = 0; i < HOGS; i++)
        check(waitpid(pid[i], NULL, 0) == pid[i]);
    while (has_anything(USER))
        sleep_ms(1);
    ok("root works while many tasks want all");
}

// OTHER's one task is larger than each of USER's tasks, but USER has more in
// total. When OTHER's task needs more, one of USER's is killed.
static size_t room;

static void take_a_fifth(int ready)
{
    touch(room / 5);
    say_ready(ready);
    touch(room / 6);
    say_ready(ready);
}

static void take_parts(int ready)
{
    for (int i = 0; i < 4; i++) {
        if (fork() == 0) {
            touch(room / 6);
            say_ready(ready);
            wait_killed();
        }
    }
}

static void the_right_one_ends(void)
{
    int parts, fifth;
    char c;
    room = free_memory() - roots;
    pid_t pid = start(USER, take_parts, &parts);
    for (int i = 0; i < 4; i++)
        check(read(parts, &c, 1) == 1);
    pid_t other = start(OTHER, take_a_fifth, &fifth);
    check(read(fifth, &c, 1) == 1 && read(fifth, &c, 1) == 1);
    check(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
    end_group(pid);
    close(parts);
    close(fifth);
    ok("a task of the user who has most ends for another user's");
}

int main(int argc, char *argv[])
{
    struct utsname names;
    struct sysinfo info;
    alarm(TEST_SECONDS);
    check(uname(&names) == 0);
    if (strcmp(names.sysname, "Strobe") != 0) {
        ok("nothing: this is not Strobe");
        return 0;
    }
    check(sysinfo(&info) == 0);
    roots = (size_t)info.totalram * info.mem_unit / ROOTS_PART;
    if (argc > 1) {
        check(geteuid() == 0 && getuid() == USER);
        fill_all(atoi(argv[1]));
        wait_killed();
    }
    size_t share, tasks;
    held_before[0] = charged_to(USER, &share, &tasks);
    held_before[1] = charged_to(OTHER, &share, &tasks);
    many_things();
    files_of_one_user();
    held_by_the_kernel();
    one_wants_all(fill_all, "who wants all memory ends, and root works");
    check(system("cp /test/greedy " SET_USER_ID
                 " && chmod 4755 " SET_USER_ID) == 0);
    one_wants_all(fill_with_rights, "the same of a set-user-id program");
    check(unlink(SET_USER_ID) == 0);
    one_has_its_share();
    many_want_all();
    the_right_one_ends();
    return 0;
}
