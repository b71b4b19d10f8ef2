// Users: ids, modes, set-user-id programs, signals, and what only root may do.
// Started as root; each part runs as user 1000 or 2000.
#include "test.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <utime.h>

#define USER 1000u
#define OTHER 2000u
#define FURTHER_GROUP 300u

static const char *self;

static void become(uid_t id)
{
    gid_t further = FURTHER_GROUP;
    check(setgroups(id == USER, &further) == 0);
    check(setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0);
}

static void as_user(void (*fn)(void))
{
    int status;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        become(USER);
        fn();
        _exit(0);
    }
    check(waitpid(pid, &status, 0) == pid && exited_with(status, 0));
}

static void make_file(const char *path, mode_t mode, uid_t uid, gid_t gid)
{
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    check(fd >= 0 && write(fd, "text", 4) == 4);
    check(fchown(fd, uid, gid) == 0 && fchmod(fd, mode) == 0);
    close(fd);
}

static void make_directory(const char *path, mode_t mode, uid_t uid)
{
    check(mkdir(path, 0700) == 0);
    check(chown(path, uid, uid) == 0 && chmod(path, mode) == 0);
}

// --- ids --------------------------------------------------------------------

static bool users_are(uid_t real, uid_t effective, uid_t saved)
{
    uid_t r, e, s;
    check(getresuid(&r, &e, &s) == 0);
    return r == real && e == effective && s == saved;
}

static void no_way_back(void)
{
    check(users_are(USER, USER, USER));
    check_error(setuid(0), EPERM);
    check_error(setreuid(0, -1), EPERM);
    check_error(setreuid(-1, 0), EPERM);
    check_error(setresuid(-1, -1, 0), EPERM);
    check_error(setgid(0), EPERM);
    check_error(setregid(-1, 0), EPERM);
    check_error(setresgid(0, -1, -1), EPERM);
    check_error(setgroups(0, NULL), EPERM);
    check(setuid(USER) == 0 && setresuid(-1, USER, -1) == 0);
    gid_t groups[2];
    check(getgroups(0, NULL) == 1 && getgroups(2, groups) == 1);
    check(groups[0] == FURTHER_GROUP);
}

static void saved_id(void)
{
    check(setresuid(USER, OTHER, 0) == 0);
    check(setresuid(-1, 0, -1) == 0); // from the saved one
    check(users_are(USER, 0, 0));
    check(seteuid(OTHER) == 0 && users_are(USER, OTHER, 0));
    check(seteuid(0) == 0);
    check(setreuid(OTHER, USER) == 0); // the saved one follows
    check(users_are(OTHER, USER, USER));
    check_error(seteuid(0), EPERM);
    check(setreuid(USER, OTHER) == 0 && users_are(USER, OTHER, OTHER));
}

static void ids(void)
{
    as_user(no_way_back);
    check(exited_with(in_child(saved_id), 0));
    ok("real, effective and saved ids; no way back to root");
}

// --- modes ------------------------------------------------------------------

static void open_files(void)
{
    check_error(open("private", O_RDONLY), EACCES);
    check_error(open("readable", O_RDWR), EACCES);
    check_error(open("readable", O_RDONLY | O_TRUNC), EACCES);
    check(open("readable", O_RDONLY) >= 0);
    check(open("group", O_RDWR) >= 0);           // by a supplementary group
    check_error(open("mine", O_RDONLY), EACCES); // the owner's bits count
    check(access("readable", R_OK) == 0);
    check_error(access("readable", W_OK), EACCES);
    check_error(access("group", X_OK), EACCES);
    check_error(truncate("readable", 0), EACCES);
    check(truncate("group", 3) == 0);
    check(open("private", O_PATH) >= 0);
}

static void change_attributes(void)
{
    struct utimbuf then = { 1, 1 };
    check_error(chmod("readable", 0777), EPERM);
    check_error(chown("mine", OTHER, -1), EPERM);
    check_error(chown("mine", -1, OTHER), EPERM);
    check(chown("mine", -1, FURTHER_GROUP) == 0);
    check(chown("readable", -1, -1) == 0);
    check(chmod("mine", 0640) == 0 && utime("mine", &then) == 0);
    check_error(utime("group", &then), EPERM);
    check(utime("group", NULL) == 0); // writers may
    check_error(utime("readable", NULL), EACCES);
    check(chmod("mine", 02755) == 0); // in the owner's group
    struct stat s;
    check(stat("mine", &s) == 0 && s.st_mode & S_ISGID);
    check(chown("mine", -1, USER) == 0 && stat("mine", &s) == 0);
    check(!(s.st_mode & S_ISGID));
    check(chmod("foreign", 02755) == 0 && stat("foreign", &s) == 0);
    check((s.st_mode & 07777) == 0755); // the owner is not in its group
}

// access() uses the real ids.
static void ask_for_another(void)
{
    check(setresuid(USER, 0, 0) == 0);
    check(open("private", O_RDONLY) >= 0);
    check_error(access("private", R_OK), EACCES);
    check(access("mine", R_OK) == 0);
}

static void files(void)
{
    make_file("private", 0600, 0, 0);
    make_file("readable", 0644, 0, 0);
    make_file("group", 0060, 0, FURTHER_GROUP);
    make_file("mine", 0077, USER, USER);
    make_file("foreign", 0644, USER, OTHER);
    as_user(open_files);
    as_user(change_attributes);
    check(exited_with(in_child(ask_for_another), 0));
    ok("files: modes, owners, groups");
}

static void use_directories(void)
{
    struct stat s;
    check_error(stat("closed/x", &s), EACCES);
    check_error(chdir("closed"), EACCES);
    check_error(open("public/new", O_CREAT | O_WRONLY, 0644), EACCES);
    check_error(mkdir("public/new", 0755), EACCES);
    check_error(symlink("x", "public/new"), EACCES);
    check_error(link("public/x", "public/new"), EACCES);
    check_error(unlink("public/x"), EACCES);
    check_error(rename("public/x", "sticky/x"), EACCES);
    check_error(unlink("sticky/roots"), EPERM);
    check_error(rename("sticky/roots", "sticky/y"), EPERM);
    check_error(rmdir("sticky/dir"), EPERM);
    check(open("sticky/own", O_CREAT | O_WRONLY, 0600) >= 0);
    check(stat("sticky/own", &s) == 0 && s.st_uid == USER);
    check(s.st_gid == USER && rename("sticky/own", "sticky/o") == 0);
    check(unlink("sticky/o") == 0);
    check(mkdir("inherits/d", 0755) == 0 && stat("inherits/d", &s) == 0);
    check(s.st_gid == OTHER && s.st_mode & S_ISGID);
    check(open("inherits/f", O_CREAT | O_WRONLY, 02755) >= 0);
    check(stat("inherits/f", &s) == 0 && s.st_gid == OTHER);
    check(!(s.st_mode & S_ISGID));
    check(unlink("his/roots") == 0); // by the directory's owner
    check_error(mknod("sticky/null", S_IFCHR | 0666, 0x103), EPERM);
}

static void directories(void)
{
    make_directory("closed", 0700, 0);
    make_directory("public", 0755, 0);
    make_directory("sticky", 01777, 0);
    make_directory("sticky/dir", 0755, 0);
    make_directory("his", 01777, USER);
    make_directory("inherits", 0777, 0);
    check(chown("inherits", -1, OTHER) == 0 && chmod("inherits", 02777) == 0);
    make_file("closed/x", 0666, 0, 0);
    make_file("public/x", 0666, 0, 0);
    make_file("sticky/roots", 0666, 0, 0);
    make_file("his/roots", 0666, 0, 0);
    as_user(use_directories);
    ok("directories: search, write, sticky, set-group-id");
}

// --- links of others ---------------------------------------------------------

// Linux's protected_hardlinks and protected_symlinks, which are on there, too,
// unless sysctl says otherwise.

static void link_files(void)
{
    check_error(link("private", "open/new"), EPERM);
    check_error(link("readable", "open/new"), EPERM);
    check_error(link("set-id", "open/new"), EPERM);
    check_error(link("set-group", "open/new"), EPERM);
    check_error(link("fifo", "open/new"), EPERM);
    check(link("writable", "open/new") == 0 && unlink("open/new") == 0);
    check(link("own", "open/new") == 0 && unlink("open/new") == 0);
}

static void follow_links(void)
{
    char target[8];
    struct stat s;
    check_error(open("sticky/of-other", O_RDONLY), EACCES);
    check_error(open("sticky/of-other", O_WRONLY | O_CREAT, 0600), EACCES);
    check_error(stat("sticky/of-other", &s), EACCES);
    check_error(open("to-other", O_RDONLY), EACCES); // through another one
    check(lstat("sticky/of-other", &s) == 0);
    check(readlink("sticky/of-other", target, sizeof(target)) > 0);
    check(open("sticky/of-root", O_RDONLY) >= 0); // the directory's owner's
    check(symlink("../writable", "sticky/own") == 0);
    check(open("sticky/own", O_RDONLY) >= 0);
    check(open("open/of-other", O_RDONLY) >= 0);          // not sticky
    check(stat("sticky/dir-of-other/writable", &s) == 0); // not at the end
}

static void link_as_other(void)
{
    become(OTHER);
    check(symlink("../writable", "sticky/of-other") == 0);
    check(symlink("../writable", "open/of-other") == 0);
    check(symlink("..", "sticky/dir-of-other") == 0);
}

static void links(void)
{
    make_file("set-id", 04666, 0, 0);
    make_file("set-group", 02676, 0, 0);
    make_file("writable", 0666, 0, 0);
    make_file("own", 0400, USER, USER);
    check(mkfifo("fifo", 0666) == 0 && chmod("fifo", 0666) == 0);
    make_directory("open", 0777, 0);
    check(symlink("../writable", "sticky/of-root") == 0);
    check(symlink("sticky/of-other", "to-other") == 0);
    check(exited_with(in_child(link_as_other), 0));
    as_user(link_files);
    as_user(follow_links);
    check_error(open("sticky/of-other", O_RDONLY), EACCES); // root, too
    check(link("set-id", "open/new") == 0);
    ok("links of others: hard ones to their files, soft ones in /tmp");
}

// --- programs ---------------------------------------------------------------

static void copy_self(const char *to, mode_t mode, uid_t uid, gid_t gid)
{
    char buf[4096];
    int in = open(self, O_RDONLY), out = open(to, O_CREAT | O_WRONLY, 0700);
    check(in >= 0 && out >= 0);
    for (ssize_t n; (n = read(in, buf, sizeof(buf))) > 0;)
        check(write(out, buf, n) == n);
    close(in);
    close(out);
    check(chown(to, uid, gid) == 0 && chmod(to, mode) == 0);
}

// (The libc's getauxval computes AT_SECURE from the ids.)
static unsigned long from_kernel(unsigned long type)
{
    char **p = environ;
    while (*p++)
        ;
    unsigned long *pair = (unsigned long *)p;
    while (pair[0] != AT_NULL && pair[0] != type)
        pair += 2;
    return pair[0] == type ? pair[1] : ~0ul;
}

// The executed program: exits with 0 if its ids are as expected.
static int report(const char *ids)
{
    unsigned long want[5];
    uid_t r, e, s;
    check(sscanf(ids, "%lu,%lu,%lu,%lu,%lu", &want[0], &want[1], &want[2],
                 &want[3], &want[4]) == 5);
    check(getresuid(&r, &e, &s) == 0);
    check(r == want[0] && e == want[1] && s == want[2]);
    check(getegid() == want[3]);
    check(getauxval(AT_EUID) == want[1] && getauxval(AT_EGID) == want[3]);
    check(from_kernel(AT_SECURE) == want[4]);
    check(personality(0xffffffff) == (want[4] ? 0 : ADDR_NO_RANDOMIZE));
    return 0;
}

static void run(const char *program, const char *ids)
{
    int status;
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        personality(ADDR_NO_RANDOMIZE);
        execl(program, program, "report", ids, NULL);
        _exit(errno == EACCES ? 126 : 127);
    }
    check(waitpid(pid, &status, 0) == pid);
    check(exited_with(status, ids ? 0 : 126));
}

static void run_programs(void)
{
    run("./plain", "1000,1000,1000,1000,0");
    run("./setuid", "1000,2000,2000,1000,1");
    run("./setgid", "1000,1000,1000,2000,1");
    run("./groupbit", "1000,1000,1000,1000,0");
    run("./setroot", "1000,0,0,1000,1");
    run("./onlyroot", NULL);
    // A write takes its set-id bits away.
    int fd = open("./setuid", O_WRONLY);
    check(fd >= 0 && write(fd, "\177", 1) == 1);
    close(fd);
    run("./setuid", "1000,1000,1000,1000,0");
}

static void cannot_look_into(pid_t pid)
{
    static const char *const names[] = { "maps", "fd/0", "exe", "cwd" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[64], c;
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, names[i]);
        int fd = open(path, O_RDONLY);
        check((fd < 0 ? -1 : (int)read(fd, &c, 1)) == -1 && errno == EACCES);
        if (fd >= 0)
            close(fd);
    }
}

static void look_into_program(const char *program)
{
    int out[2];
    check(pipe(out) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], 1);
        execl(program, program, "wait", NULL);
        _exit(1);
    }
    char c;
    check(read(out[0], &c, 1) == 1);
    cannot_look_into(pid);
    check(kill(pid, SIGTERM) == 0); // its real user is this one
    check(waitpid(pid, NULL, 0) == pid);
}

static void look_into(void)
{
    look_into_program("./setroot");
    look_into_program("./unreadable");
}

static void run_without_rights(void)
{
    run("nosuid/setroot", "1000,1000,1000,1000,0");
}

static void programs(void)
{
    copy_self("plain", 0755, 0, 0);
    copy_self("setuid", 04777, OTHER, OTHER);
    copy_self("setgid", 02755, OTHER, OTHER);
    copy_self("groupbit", 02745, OTHER, OTHER); // set-gid without execute
    copy_self("setroot", 04755, 0, 0);
    copy_self("unreadable", 0711, 0, 0);
    copy_self("onlyroot", 0744, 0, 0);
    as_user(run_programs);
    as_user(look_into);
    check(mkdir("nosuid", 0755) == 0);
    check(mount("none", "nosuid", "tmpfs", MS_NOSUID, NULL) == 0);
    copy_self("nosuid/setroot", 04755, 0, 0);
    as_user(run_without_rights);
    check(umount("nosuid") == 0);
    ok("set-user-id and set-group-id programs");
}

// --- other tasks ------------------------------------------------------------

static pid_t sleeper(uid_t id)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        become(id);
        for (;;)
            pause();
    }
    char path[64];
    struct stat s;
    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    do
        sleep_ms(10);
    while (stat(path, &s) < 0 || access(path, 0) < 0 || setpgid(pid, pid) < 0);
    sleep_ms(50);
    return pid;
}

static pid_t theirs, roots, formerly_roots;

static void reach_others(void)
{
    cpu_set_t one = { 0 };
    uint64_t limit[2];
    union sigval value = { 0 };
    CPU_SET(0, &one);
    for (int i = 0; i < 2; i++) {
        pid_t pid = i ? roots : theirs;
        check_error(kill(pid, SIGKILL), EPERM);
        check_error(kill(pid, 0), EPERM);
        check_error(kill(-pid, SIGTERM), EPERM);
        check_error(syscall(SYS_tkill, pid, SIGTERM), EPERM);
        check_error(syscall(SYS_tgkill, pid, pid, SIGTERM), EPERM);
        check_error(sigqueue(pid, SIGTERM, value), EPERM);
        check_error(setpriority(PRIO_PROCESS, pid, 5), EPERM);
        check_error(sched_setaffinity(pid, sizeof(one), &one), EPERM);
        check_error(syscall(SYS_prlimit64, pid, RLIMIT_CORE, NULL, limit),
                    EPERM);
    }
    check(kill(theirs, SIGCONT) == 0); // of the same session
    cannot_look_into(formerly_roots);
    check(kill(formerly_roots, SIGKILL) == 0);
    check(setpriority(PRIO_PROCESS, 0, 5) == 0);
    check_error(setpriority(PRIO_PROCESS, 0, 4), EACCES);
    check_error(nice(-1), EPERM);
}

static void others(void)
{
    theirs = sleeper(OTHER);
    roots = sleeper(0);
    formerly_roots = sleeper(USER);
    as_user(reach_others);
    check(waitpid(formerly_roots, NULL, 0) == formerly_roots);
    for (int i = 0; i < 2; i++) {
        int status;
        pid_t pid = i ? roots : theirs;
        check(kill(pid, SIGKILL) == 0);
        check(waitpid(pid, &status, 0) == pid && killed_by(status, SIGKILL));
    }
    ok("signals and scheduling of other users' tasks");
}

static void try_as_user(void)
{
    struct timeval t = { 1, 0 };
    check_error(mount("none", "public", "tmpfs", 0, NULL), EPERM);
    check_error(umount("/proc"), EPERM);
    check_error(chroot("public"), EPERM);
    check_error(sethostname("x", 1), EPERM);
    check_error(reboot(RB_DISABLE_CAD), EPERM);
    check_error(settimeofday(&t, NULL), EPERM);
}

static void privileges(void)
{
    as_user(try_as_user);
    ok("what only root may do");
}

// A debugger changes the file's owner at the critical moment (test_users.py),
// while the old owner sets its mode or another user executes it. The file is
// the one written after the first `sync`; the call is the one after the second.
static void execute_given(void)
{
    become(OTHER);
    sync();
    run("./given", "2000,2000,2000,2000,0");
}

static void set_mode_of_given(void)
{
    become(USER);
    sync();
    check_error(syscall(SYS_chmod, "given", 04755), EPERM);
}

static void give(void (*use)(void))
{
    sync();
    copy_self("given", 04755, USER, USER);
    check(exited_with(in_child(use), 0));
    check(unlink("given") == 0);
}

int main(int argc, char **argv)
{
    alarm(TEST_SECONDS);
    if (argc == 3 && strcmp(argv[1], "report") == 0)
        return report(argv[2]);
    if (argc == 2 && strcmp(argv[1], "wait") == 0) {
        check(write(1, "x", 1) == 1);
        for (;;)
            pause();
    }
    char folder[] = "/tmp/users-XXXXXX";
    self = "/proc/self/exe";
    umask(022);
    check(mkdtemp(folder) && chmod(folder, 0777) == 0 && chdir(folder) == 0);
    if (argc == 2 && strcmp(argv[1], "give") == 0) {
        give(execute_given);
        give(set_mode_of_given);
        ok("mode and owner are of one instant");
        return 0;
    }
    ids();
    files();
    directories();
    links();
    programs();
    others();
    privileges();
    check(chdir("/") == 0);
    return 0;
}
