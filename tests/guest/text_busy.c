// ETXTBSY: a running program's file cannot be opened for writing, and a file
// open for writing cannot be executed. Its names may change.
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PROGRAM "/tmp/text_busy.program"
#define OTHER "/tmp/text_busy.other"
#define SCRIPT "/tmp/text_busy.script"

// Makes a copy of this program, which waits for the end of its input.
static void make_program(const char *to)
{
    static char buffer[65536];
    int from = open("/proc/self/exe", O_RDONLY);
    int fd = open(to, O_CREAT | O_WRONLY | O_EXCL, 0755);
    check(from >= 0 && fd >= 0);
    for (ssize_t n; (n = read(from, buffer, sizeof(buffer))) != 0;)
        check(n > 0 && write(fd, buffer, n) == n);
    close(from);
    close(fd);
}

struct running {
    pid_t pid;
    int input;
};

// `how` is "wait", or "fork": then a child waits and the program itself ends.
static struct running run(const char *file, const char *how)
{
    struct running r;
    int in[2], out[2];
    char c;
    check(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    r.pid = fork();
    check(r.pid >= 0);
    if (r.pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execl(file, file, how, NULL);
        _exit(errno);
    }
    close(in[0]);
    close(out[1]);
    check(read(out[0], &c, 1) == 1); // it runs
    close(out[0]);
    r.input = in[1];
    return r;
}

static void end(struct running r)
{
    int status;
    close(r.input);
    check(waitpid(r.pid, &status, 0) == r.pid && exited_with(status, 0));
}

static int waiting(bool in_child)
{
    char c = 0;
    if (in_child && fork() != 0)
        return 0;
    if (write(1, &c, 1) != 1 || read(0, &c, 1) != 0)
        return 1;
    return 0;
}

static void refuses_writers(const char *file)
{
    check_error(open(file, O_WRONLY), ETXTBSY);
    check_error(open(file, O_RDWR), ETXTBSY);
    check_error(open(file, O_WRONLY | O_TRUNC), ETXTBSY);
    check_error(open(file, O_RDONLY | O_TRUNC), ETXTBSY);
    check_error(open(file, O_WRONLY | O_CREAT, 0755), ETXTBSY);
    check_error(truncate(file, 0), ETXTBSY);
    int fd = open(file, O_RDONLY);
    check(fd >= 0);
    close(fd);
}

static void accepts_writers(const char *file)
{
    int fd = open(file, O_WRONLY);
    check(fd >= 0);
    close(fd);
}

static void running_is_not_written(void)
{
    struct stat st;
    make_program(PROGRAM);
    accepts_writers(PROGRAM);
    struct running r = run(PROGRAM, "wait"), second = run(PROGRAM, "wait");
    refuses_writers(PROGRAM);
    check(link(PROGRAM, OTHER) == 0);
    refuses_writers(OTHER);
    end(r);
    refuses_writers(OTHER); // the second one still runs
    end(second);
    accepts_writers(OTHER);
    check(stat(OTHER, &st) == 0 && st.st_size > 0);
    check(unlink(OTHER) == 0);
    ok("what runs is not written to");

    r = run(PROGRAM, "wait");
    make_program(OTHER);
    check(rename(OTHER, PROGRAM) == 0);
    accepts_writers(PROGRAM); // the name is now another file's
    end(r);
    ok("a new program takes the name of one that runs");
}

static int wait_status(pid_t pid)
{
    int status;
    check(waitpid(pid, &status, 0) == pid);
    return status;
}

static void children_run_it_too(void)
{
    struct running r = run(PROGRAM, "fork");
    check(exited_with(wait_status(r.pid), 0)); // its child goes on
    refuses_writers(PROGRAM);
    close(r.input);
    int fd;
    while ((fd = open(PROGRAM, O_WRONLY)) < 0) {
        check(errno == ETXTBSY); // until it has ended
        sleep_ms(1);
    }
    close(fd);
    ok("a child runs its parent's program");
}

// The error of exec for a file, in a child.
static int exec_error(const char *file)
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        close(0);
        open("/dev/null", O_RDONLY);
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        execl(file, file, "wait", NULL);
        _exit(errno);
    }
    int status = wait_status(pid);
    check(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void written_is_not_run(void)
{
    int fd = open(PROGRAM, O_RDWR);
    check(fd >= 0);
    check(exec_error(PROGRAM) == ETXTBSY);
    void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    check(p != MAP_FAILED);
    close(fd);
    check(exec_error(PROGRAM) == ETXTBSY); // mprotect could make it writable
    check(munmap(p, 4096) == 0);
    check(exec_error(PROGRAM) == 0);
    ok("what is written to is not run");
}

static void write_file(const char *file, const char *text)
{
    int fd = open(file, O_CREAT | O_TRUNC | O_WRONLY, 0755);
    check(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void failed_exec_leaves_no_trace(void)
{
    write_file(SCRIPT, "no program at all\n");
    check(exec_error(SCRIPT) == ENOEXEC);
    accepts_writers(SCRIPT);
    write_file(SCRIPT, "#!/no/such/file\n");
    check(exec_error(SCRIPT) == ENOENT);
    accepts_writers(SCRIPT);
    write_file(SCRIPT, "#!" PROGRAM "\n");
    check(exec_error(SCRIPT) == 0);
    int fd = open(PROGRAM, O_WRONLY);
    check(exec_error(SCRIPT) == ETXTBSY);
    close(fd);
    accepts_writers(SCRIPT);
    accepts_writers(PROGRAM);
    ok("an exec that fails leaves the file as it was");
}

int main(int argc, char *argv[])
{
    if (argc > 1)
        return waiting(strcmp(argv[1], "fork") == 0);
    alarm(TEST_SECONDS);
    unlink(PROGRAM);
    unlink(OTHER);
    running_is_not_written();
    children_run_it_too();
    written_is_not_run();
    failed_exec_leaves_no_trace();
    unlink(PROGRAM);
    unlink(SCRIPT);
    return 0;
}
