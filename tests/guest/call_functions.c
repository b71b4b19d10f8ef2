// Only entries of functions that can be patched are traced, in ascending order:
// other lists are refused.
#include "test.h"

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
    free(f);
    return 0;
}
