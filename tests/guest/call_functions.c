// Only entries of functions that can be patched are traced, in ascending order:
// other lists are refused. Any function of the kernel has a name, at all of its
// addresses.
#include "test.h"

#include <sys/wait.h>

#include "user/libstrobe/sysinfo.h"
#include "user/libstrobe/tracing.h"

static int phone;

// 0, or the error.
static int begin(const uint32_t *functions, uint32_t count)
{
    struct calls_options o = { .mode = CALLS_ARCS,
                               .functions = (uint32_t)functions,
                               .function_count = count };

    if (tracing_begin(phone, &o) < 0)
        return errno;
    check(tracing_end(phone) == 0);
    return 0;
}

#define BEGIN(...)                     \
    begin((uint32_t[]){ __VA_ARGS__ }, \
          sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

// Twice, at the first and at the last byte; between them what is no function.
static void names(const struct sysinfo_function *f, uint32_t count)
{
    struct calls_name *n = calloc(2 * count + 1, sizeof(*n));

    check(n);
    for (uint32_t i = 0; i < count; i++) {
        n[i].address = f[i].address;
        n[count + 1 + i].address = f[i].address + f[i].size - 1;
        memset(n[i].name, '#', sizeof(n[i].name));
    }
    for (uint32_t i = 0; i < 2 * count + 1; i += 1000) {
        uint32_t some = 2 * count + 1 - i;
        check(tracing_names(phone, n + i, some < 1000 ? some : 1000) == 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct calls_name *last = &n[count + 1 + i];
        check(n[i].address == f[i].address);
        check(n[i].length == strlen(f[i].name) && n[i].length == last->length);
        check(memcmp(n[i].name, f[i].name, sizeof(f[i].name)) == 0);
        check(memcmp(last->name, f[i].name, sizeof(f[i].name)) == 0);
    }
    check(n[count].length == 0 && n[count].name[0] == '\0');
    ok("names of functions by address");
    check_error(tracing_names(phone, n, CALLS_NAMES_MAX + 1), EINVAL);
    check_error(tracing_names(phone, NULL, 1), EFAULT);
    check(tracing_names(phone, NULL, 0) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        check(setuid(1000) == 0);
        int own = tracing_phone();
        check(own >= 0);
        check_error(tracing_names(own, n, 1), EPERM);
        _exit(0);
    }
    int status;
    check(waitpid(pid, &status, 0) == pid && status == 0);
    ok("not for everybody, and not too many");
    free(n);
}

int main(void)
{
    size_t count;
    struct sysinfo_function *f =
        sysinfo_read_function("system.functions", &count);

    check(f && count > 1000);
    phone = tracing_phone();
    check(phone >= 0);
    uint32_t a = f[0].address, b = f[1].address, last = f[count - 1].address;
    check(BEGIN(a) == 0 && BEGIN(a, b, last) == 0);
    ok("entries of functions");
    check(BEGIN(a + 1) == EINVAL && BEGIN(0, a) == EINVAL);
    check(BEGIN(a, 0xffffffff) == EINVAL && BEGIN(a, last + 5) == EINVAL);
    check(BEGIN(b, a) == EINVAL && BEGIN(a, a) == EINVAL);
    check(begin(&a, 0) == EINVAL);
    check(begin((uint32_t *)4, 1) == EFAULT);
    ok("no other lists");
    names(f, (uint32_t)count);
    free(f);
    return 0;
}
