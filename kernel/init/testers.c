// The arguments for a kernel with tests. Every kernel accepts them: without
// tests it names the right kernel and powers off, so that a test run that waits
// for the power-off does not hang.
#include "kernel/init/testers.h"

#include "arch/cpu.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/log.h"
#include "kernel/base/tester.h"
#include "lib/string.h"

KERNEL_ARG(test, "test=all or test=NAME,NAME: runs in-kernel tests, powers off "
                 "(kernel-test.elf)");
KERNEL_ARG(plant, "plant=NAME: makes a mistake that a checker must report "
                  "(kernel-test.elf)");

static void obey(const struct kernel_arg *arg)
{
    if (!arg->present)
        return;
    LINKER_SET_FOR_EACH(const struct tester, t, testers) {
        if (!strcmp((*t)->argument, arg->name))
            (*t)->run(arg->value);
    }
    console_printf("%s=%s: this kernel is built without tests: boot "
                   "kernel-test.elf\n",
                   arg->name, arg->value);
    machine_power_off(true);
}

void testers_run(void)
{
    obey(&arg_test);
    obey(&arg_plant);
}
