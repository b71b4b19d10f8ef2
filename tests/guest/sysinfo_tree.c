// The sysinfo tree by its system calls: every node, sizes and buffers, hostile
// arguments, and agreement with /proc.
#include "test.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "user/libstrobe/sysinfo.h"

static long get(const char *path, size_t len, void *buf, size_t size)
{
    return syscall(SYS_sysinfo_get_data, path, len, buf, size);
}

// ---- every node

static int nodes;

static void visit(const char *path)
{
    int type = sysinfo_get_type(path);
    size_t size;
    char *keys = type < 0 ? NULL : sysinfo_read_keys(path);
    char *data = keys == NULL ? NULL : sysinfo_read(path, &size);

    if (data == NULL) { // the task has ended
        check(errno == ENOENT && strchr(path, '.') != NULL);
        free(keys);
        return;
    }
    nodes++;
    if (SYSINFO_KIND(type) == SYSINFO_DATA) {
        const struct sysinfo_record_type *r =
            sysinfo_record_type(SYSINFO_WHAT(type));
        check(r != NULL && size % r->size == 0);
    } else if (SYSINFO_KIND(type) == SYSINFO_VALUE) {
        check(size == 8 && SYSINFO_WHAT(type) < SYSINFO_UNITS);
    } else if (SYSINFO_KIND(type) == SYSINFO_TEXT) {
        check(memchr(data, '\0', size) == NULL);
    } else {
        check(SYSINFO_KIND(type) == SYSINFO_SUBTREE && size == 0);
        check(keys[0] != '\0');
    }
    for (char *key = keys; *key != '\0'; key += strlen(key) + 1) {
        char child[200];
        snprintf(child, sizeof(child), "%s%s%s", path, path[0] ? "." : "", key);
        visit(child);
    }
    free(keys);
    free(data);
}

static void every_node(void)
{
    static const char *const wanted[] = {
        "system.uptime",
        "system.cpus",
        "system.physmem",
        "system.load",
        "system.tasks",
        "system.threads",
        "system.exceptions",
        "system.clock",
        "system.errors",
        "system.slabs",
        "kernel.version",
        "kernel.cmdline",
        "kernel.symbols",
        "system.cpus.0",
        "system.functions",
        "system.tasks.1",
        "system.threads.1",
        "system.audit",
        "system.exceptions.14",
        "system.profile.sources",
        "system.profile.counters",
        "system.profile.events",
        "system.profile.sessions",
        "system.profile.totals",
        "system.text",
    };

    visit("");
    check(nodes > 30);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        check(sysinfo_get_type(wanted[i]) > 0);
    ok("every node can be read");
}

// ---- sizes

// For any buffer size: stores what fits, nothing behind it, and returns the
// full length.
static void sizes(void)
{
    static const char path[] = "kernel.records";
    static char whole[65536], part[65536];
    long n = get(path, strlen(path), whole, sizeof(whole));

    check(n > 4096 && n < (long)sizeof(whole));
    check(get(path, strlen(path), NULL, 0) == n);
    for (long size = 0; size <= n + 1;
         size += size < 8 || size > n - 3 ? 1 : 61) {
        memset(part, 'X', sizeof(part));
        check(get(path, strlen(path), part, size) == n);
        long stored = size < n ? size : n;
        check(memcmp(part, whole, stored) == 0);
        check(part[stored] == 'X' && part[stored + 100] == 'X');
    }
    // A buffer that ends where mapped memory does.
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(page != MAP_FAILED && mprotect(page + 4096, 4096, PROT_NONE) == 0);
    check(get(path, strlen(path), page + 4096 - 10, 10) == n);
    check(memcmp(page + 4096 - 10, whole, 10) == 0);
    check_error(get(path, strlen(path), page + 4096 - 10, 11), EFAULT);
    check(mprotect(page, 4096, PROT_READ) == 0);
    check_error(get(path, strlen(path), page, 10), EFAULT);
    munmap(page, 8192);
    ok("buffers of every size");
}

static void hostile(void)
{
    static char long_path[70000], buf[64];
    char *kernel = (char *)0xc0100000;

    memset(long_path, 'a', sizeof(long_path));
    check_error(get(long_path, 128, buf, 64), ENOENT);
    check_error(get(long_path, 129, buf, 64), ENOENT);
    check_error(get(long_path, 70000, buf, 64), ENOENT);
    check_error(get(long_path, 0xffffffff, buf, 64), ENOENT);
    memset(long_path, '.', sizeof(long_path));
    check_error(get(long_path, 128, buf, 64), ENOENT);
    memset(long_path, 0, sizeof(long_path));
    check_error(get(long_path, 13, buf, 64), ENOENT);
    check_error(get("system.uptime\0", 14, buf, 64), ENOENT);
    check_error(get("system\0uptime", 13, buf, 64), ENOENT);
    check_error(get(kernel, 13, buf, 64), EFAULT);
    check_error(get(NULL, 13, buf, 64), EFAULT);
    check_error(get((char *)0xfffffff0, 100, buf, 64), EFAULT);
    check(get(NULL, 0, NULL, 0) == 0); // the root has no data
    check_error(get("system.uptime", 13, kernel, 64), EFAULT);
    check_error(get("system.uptime", 13, (void *)0xfffffff0, 64), EFAULT);
    check(get("system.uptime", 13, kernel, 0) == 12);
    // A size larger than memory is only an upper bound.
    check(get("system.uptime", 13, buf, 0xffffffff) == 12);
    check(get("system", 6, kernel, 64) == 0);
    check_error(syscall(SYS_sysinfo_get_keys, "system", 6, kernel, 64), EFAULT);
    check_error(syscall(SYS_sysinfo_get_keys, "x", 1, buf, 64), ENOENT);
    check_error(syscall(SYS_sysinfo_get_type, "x", 1), ENOENT);
    check_error(syscall(SYS_sysinfo_get_type, kernel, 1), EFAULT);
    check(syscall(SYS_sysinfo_get_keys, "kernel.version", 14, buf, 64) == 0);
    ok("hostile arguments");
}

// ---- the client's errors

static void client(void)
{
    struct sysinfo_load load;
    struct sysinfo_task task;
    uint64_t value;
    size_t n;

    check(sysinfo_get_load("system.load", &load) == 0);
    check_error(sysinfo_get_load("system.uptime", &load), EPROTO);
    check_error(sysinfo_get_load("system", &load), EPROTO);
    check_error(sysinfo_get_load("system.nothing", &load), ENOENT);
    check_error(sysinfo_get_task("system.tasks.4194304", &task), ENOENT);
    check_error(sysinfo_read_value("system.load", &value), EPROTO);
    check(sysinfo_read_value("system.snapshots.taken", &value) == 0);
    errno = 0;
    check(sysinfo_read_cpu("system.tasks", &n) == NULL && errno == EPROTO);
    ok("what the client refuses");
}

// ---- the same values elsewhere

static unsigned long long in_proc(const char *file, const char *name)
{
    char text[4096];
    FILE *f = fopen(file, "r");
    unsigned long long value;

    check(f != NULL);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    char *at = strstr(text, name);
    check(at != NULL);
    check(sscanf(at + strlen(name), "%llu", &value) == 1);
    return value;
}

static void same_as_proc(void)
{
    struct sysinfo_physmem m;
    struct sysinfo_uptime up, later;
    struct sysinfo_totals totals;
    struct sysinfo libc_info;
    size_t cpus;
    struct sysinfo_cpu *cpu = sysinfo_read_cpu("system.cpus", &cpus);

    check(cpu != NULL && (long)cpus == sysconf(_SC_NPROCESSORS_ONLN));
    for (size_t i = 0; i < cpus; i++) {
        const struct sysinfo_cpu *c = &cpu[i];
        check(c->user + c->kernel + c->irq + c->idle + c->start_up ==
              c->elapsed);
        check(c->id == i && c->active && c->frequency > 1000000);
    }
    free(cpu);
    check(sysinfo_get_physmem("system.physmem", &m) == 0);
    check(m.total / 1024 == in_proc("/proc/meminfo", "MemTotal:"));
    check(m.used + m.free == m.total);
    check(sysinfo(&libc_info) == 0);
    check(m.total == (uint64_t)libc_info.totalram * libc_info.mem_unit);
    check(sysinfo_get_totals("system.totals", &totals) == 0);
    check(in_proc("/proc/stat", "processes ") >= totals.tasks_created);
    check(in_proc("/proc/stat", "ctxt ") >= totals.switches);
    check(totals.tasks_created >= totals.tasks && totals.threads > 0);

    check(sysinfo_get_uptime("system.uptime", &up) == 0);
    uint64_t proc = in_proc("/proc/uptime", "");
    check(sysinfo_get_uptime("system.uptime", &later) == 0);
    check(up.seconds <= proc && proc <= later.seconds);
    check(up.nanoseconds < 1000000000);
    ok("the same as /proc and sysinfo(2)");
}

static void audit(void)
{
    size_t n;
    struct sysinfo_audit *a = sysinfo_read_audit("system.audit", &n);

    check(a != NULL && (long)n == sysconf(_SC_NPROCESSORS_ONLN) + 2);
    for (size_t i = 0; i < n; i++)
        check(a[i].difference == 0 && a[i].sum == a[i].elapsed);
    free(a);
    ok("the books balance");
}

int main(void)
{
    alarm(TEST_SECONDS);
    if (sysinfo_get_type("") < 0 && errno == ENOSYS) {
        ok("sysinfo tree: skipped, it is Strobe's");
        return 0;
    }
    every_node();
    sizes();
    hostile();
    client();
    same_as_proc();
    audit();
    return 0;
}
