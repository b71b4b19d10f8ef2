// What an ordinary user can see: no address of the kernel in any node, file or
// sample; nothing of other users' tasks; sessions of its own tasks only.
//
//     privacy                      started as root
//     privacy run UID COMMAND...   as that user
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <strobe/kbox.h>
#include <strobe/profile.h>

#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#define USER 1000u
#define KERNEL_BASE 0xc0000000u
#define KERNEL_END 0xfffff000u // above are masks and errors
#define SAMPLES 200

static void become(uid_t id)
{
    check(setgroups(0, NULL) == 0);
    check(setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0);
}

static bool is_kernel(uint64_t value)
{
    return value > KERNEL_BASE && value < KERNEL_END;
}

// --- addresses in what can be read ------------------------------------------

static unsigned found; // kernel addresses
static char where[300];

static void note(const char *path, const char *what)
{
    if (found++ == 0)
        snprintf(where, sizeof(where), "%s: %s", path, what);
}

// Looks for words of eight hexadecimal digits, the form of addresses.
static void scan_text(const char *path, const char *text, size_t size)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    for (size_t at = 0; at < size;) {
        size_t n = 0;
        while (at + n < size && text[at + n] != '\0' &&
               strchr(digits, text[at + n]) != NULL)
            n++;
        char word[9] = "";
        if (n == 8)
            memcpy(word, text + at, 8);
        if (n == 8 && is_kernel(strtoul(word, NULL, 16)))
            note(path, word);
        at += n + 1;
    }
}

// Times and masks may have any value.
static bool may_be_address(const struct sysinfo_field *f)
{
    return f->unit != SYSINFO_CYCLES && f->unit != SYSINFO_NS &&
           f->unit != SYSINFO_TICKS && strcmp(f->name, "affinity") != 0;
}

static void scan_record(const char *path, const struct sysinfo_record_type *r,
                        const char *record)
{
    for (unsigned i = 0; i < r->field_count; i++) {
        const struct sysinfo_field *f = &r->fields[i];
        uint64_t value = 0;
        if (f->kind == SYSINFO_FIELD_TEXT) {
            scan_text(path, record + f->offset,
                      strnlen(record + f->offset, f->size));
        } else if (may_be_address(f)) {
            memcpy(&value, record + f->offset, f->size);
            if (is_kernel(value))
                note(path, f->name);
        }
    }
}

static unsigned nodes, refused;

static void scan_node(const char *path)
{
    int type = sysinfo_get_type(path);
    size_t size;
    char *keys = type < 0 ? NULL : sysinfo_read_keys(path);
    char *data = keys == NULL ? NULL : sysinfo_read(path, &size);

    nodes++;
    if (data == NULL && (errno == EPERM || errno == ENOENT))
        refused += errno == EPERM;
    else
        check(data != NULL);
    if (data != NULL && SYSINFO_KIND(type) == SYSINFO_TEXT)
        scan_text(path, data, size);
    if (data != NULL && SYSINFO_KIND(type) == SYSINFO_DATA) {
        const struct sysinfo_record_type *r =
            sysinfo_record_type(SYSINFO_WHAT(type));
        for (size_t at = 0; at < size; at += r->size)
            scan_record(path, r, data + at);
    }
    for (char *key = keys; key != NULL && *key != '\0';
         key += strlen(key) + 1) {
        char child[200];
        snprintf(child, sizeof(child), "%s%s%s", path, path[0] ? "." : "", key);
        scan_node(child);
    }
    free(keys);
    free(data);
}

static unsigned files;

static void scan_file(const char *path)
{
    static char text[1 << 16];
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    ssize_t n;
    if (fd < 0)
        return;
    files++;
    while ((n = read(fd, text, sizeof(text))) > 0)
        scan_text(path, text, n);
    close(fd);
}

static void scan_folder(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char path[300], target[300];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        ssize_t n = readlink(path, target, sizeof(target));
        if (n >= 0)
            scan_text(path, target, n);
        else if (e->d_type == DT_DIR)
            scan_folder(path);
        else
            scan_file(path);
    }
    if (d != NULL)
        closedir(d);
}

// Pipe numbers are not addresses: those of neighbouring pipes are not near.
static void pipe_numbers(void)
{
    int ends[2];
    unsigned near = 0;
    uint64_t before = 0;
    for (int i = 0; i < 5; i++) {
        char path[40], target[40] = "";
        struct stat s;
        check(pipe(ends) == 0 && fstat(ends[0], &s) == 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
        check(readlink(path, target, sizeof(target) - 1) > 0);
        check(strtoull(strchr(target, '[') + 1, NULL, 10) == s.st_ino);
        int64_t step = (int64_t)(s.st_ino - before);
        near += i > 0 && (step < 0 ? -step : step) < 1 << 16;
        before = s.st_ino;
    }
    check(near < 2);
}

static void scan_everything(void)
{
    scan_node("");
    scan_folder("/proc");
    if (found > 0)
        dprintf(1, "%s: one of %u addresses\n", where, found);
}

static void user_reads(void)
{
    become(USER);
    scan_everything();
    check(found == 0 && nodes > 60 && files > 30 && refused >= 2);
    pipe_numbers();
    check(open("/dev/kmsg", O_RDONLY) < 0 && errno == EACCES);
    check_error(syscall(SYS_syslog, 3, where, sizeof(where)), EPERM);
}

static void reading(void)
{
    check(exited_with(in_child(user_reads), 0));
    scan_node("kernel.symbols"); // as root, to show that a scan finds addresses
    check(found > 1000);
    ok("no address of the kernel in nodes and files");
}

// --- sessions ---------------------------------------------------------------

static struct {
    unsigned user, kernel, other;
} seen;
static uint32_t target;

static void take(void *arg, const void *bytes, size_t size)
{
    (void)arg;
    for (size_t at = 0; at < size;) {
        const struct sprofile_record *r = (const void *)((char *)bytes + at);
        const struct sprofile_sample *s = (const void *)r;
        at += r->size;
        if (r->type != SPROFILE_R_SAMPLE)
            continue;
        const uint32_t *user = s->pc + s->kernel_depth + s->stack_words;
        seen.other += s->task != target;
        seen.user += s->kernel_depth == 0;
        seen.kernel += s->kernel_depth > 0;
        check(s->kernel_depth <= 1);
        check(s->kernel_depth == 0 || s->pc[0] == 0);
        for (unsigned i = 0; i < s->user_depth; i++)
            check(user[i] <= KERNEL_BASE);
    }
}

static pid_t start(void (*fn)(void))
{
    pid_t pid = fork();
    check(pid >= 0);
    if (pid == 0) {
        fn();
        _exit(0);
    }
    return pid;
}

static void end_of(pid_t pid)
{
    kill(pid, SIGKILL);
    check(waitpid(pid, NULL, 0) == pid);
}

static void in_and_out(void)
{
    char page[4096];
    int fd = open("/dev/zero", O_RDONLY);
    for (;;)
        check(read(fd, page, sizeof(page)) == sizeof(page));
}

static void sample(uint32_t flags)
{
    struct profile_session s;
    struct sprofile_info info;
    struct sprofile_options o = { .rate_hz = 2000, .flags = flags };
    target = start(in_and_out);
    memset(&seen, 0, sizeof(seen));
    check(profile_begin(&s, target, &o) == 0);
    while (seen.user + seen.kernel < SAMPLES || seen.kernel == 0) {
        check(profile_request(&s) == 0);
        check(profile_answer(&s, -1, take, NULL) >= 0);
    }
    check(profile_info(&s, &info) == 0 && info.hides_kernel == 1);
    profile_end(&s);
    check(seen.other == 0);
    end_of(target);
}

static uint32_t roots, others;

static void refused_sessions(void)
{
    struct profile_session s;
    struct sprofile_options o = { .rate_hz = 1000 };
    struct sprofile_count_options c = { .events = 1 };
    strcpy(c.event[0], "task-clock");
    uint32_t tasks[] = { 1, roots, others };
    become(USER);
    for (unsigned i = 0; i < 3; i++) {
        check_error(kbox_connect(tasks[i]), EPERM);
        check_error(profile_begin(&s, tasks[i], &o), EPERM);
        check_error(profile_count_begin(&s, tasks[i], &c), EPERM);
        check_error(syscall(SYS_profile, tasks[i], 0, 0), EPERM);
    }
    check_error(profile_begin_system(&s, &o), EPERM);
    check(strstr(kbox_problem(EPERM), "profile_users=") != NULL);
    struct prof_data data;
    check_error(syscall(SYS_getprof, &data), EPERM); // root only
    check_error(syscall(SYS_profile, 0, 0, 0), EPERM);
}

static void sleep_on(void)
{
    for (;;)
        pause();
}

static void sleep_as_other(void)
{
    become(USER + 1);
    sleep_on();
}

static void refused_parts(void)
{
    roots = start(sleep_on);
    others = start(sleep_as_other);
    sleep_ms(50);
    check(syscall(SYS_profile, roots, 0, 0) == 0);
    check(exited_with(in_child(refused_sessions), 0));
    check(syscall(SYS_profile, 0, 0, 0) == 0);
    end_of(roots);
    end_of(others);
    ok("other users' tasks and the system are not profiled");
}

static void own_sessions(void)
{
    sample(0);
    sample(SPROFILE_O_STACKS);
    sample(SPROFILE_O_STACKS | SPROFILE_O_DEEP);
}

// --- programs with more rights ----------------------------------------------

static const char *privileged = "/tmp/privacy-setuid";

static void compute(void)
{
    for (volatile unsigned i = 0; i < 20000000; i++)
        ;
}

static void exec_privileged(void)
{
    sleep_ms(100);
    execl(privileged, "x", "compute", NULL);
}

static void follow_privileged(void)
{
    struct profile_session s, counting;
    struct sprofile_counts counts;
    struct sprofile_options o = { .rate_hz = 1000,
                                  .flags = SPROFILE_O_FROM_EXEC };
    struct sprofile_count_options c = { .events = 1 };
    strcpy(c.event[0], "user-time");
    target = start(exec_privileged);
    check(profile_begin(&s, target, &o) == 0);
    check(profile_count_begin(&counting, target, &c) == 0);
    for (int n = 0; n >= 0;) {
        check(profile_request(&s) == 0);
        n = profile_answer(&s, -1, take, NULL);
    }
    check(seen.user == 0 && seen.kernel == 0); // the program has no samples
    check_error(kbox_connect(target), EPERM);  // it still runs
    check(profile_count_read(&counting, &counts) == 0);
    check(counts.tasks == 0 && counts.count[0].value < 50000000);
    profile_end(&s);
    profile_end(&counting);
    check(waitpid(target, NULL, 0) == (pid_t)target);
}

// A task that has changed its user may not be profiled until it calls exec.
static void run_part(const char *part)
{
    become(USER);
    execl("/test/privacy", "privacy", part, NULL);
    _exit(127);
}

static void run_follow(void)
{
    run_part("follow");
}

static void run_own(void)
{
    run_part("own");
}

static void privileged_programs(void)
{
    char command[100];
    snprintf(command, sizeof(command), "cp /test/privacy %s && chmod 4755 %s",
             privileged, privileged);
    check(system(command) == 0);
    check(exited_with(in_child(run_follow), 0));
    unlink(privileged);
    ok("no session follows into a set-user-id program");
}

int main(int argc, char **argv)
{
    alarm(TEST_SECONDS);
    if (argc == 2 && strcmp(argv[1], "compute") == 0) {
        compute();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "own") == 0) {
        own_sessions();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "follow") == 0) {
        follow_privileged();
        return 0;
    }
    if (argc >= 4 && strcmp(argv[1], "run") == 0) {
        become(strtoul(argv[2], NULL, 10));
        alarm(0);
        execvp(argv[3], argv + 3);
        return 127;
    }
    if (syscall(SYS_sysinfo_get_type, "", 0) < 0) {
        ok("nothing: this is not Strobe");
        return 0;
    }
    reading();
    refused_parts();
    check(exited_with(in_child(run_own), 0));
    ok("own tasks are profiled, the kernel's part without addresses");
    privileged_programs();
    return 0;
}
