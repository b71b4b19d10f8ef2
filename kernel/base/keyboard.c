// From the codes of keyboards to the terminal's input; see keyboard.h.
#include "kernel/base/keyboard.h"
#include "kernel/base/cmdline.h"
#include "kernel/base/log.h"

KERNEL_ARG(keymap, "keymap=NAME: the layout of keyboards: us, de, pl, cz, fr");

static struct tty_driver *terminal; // set once
static const struct layout *layout = &layout_us;

const struct layout *keyboard_layout(void)
{
    return __atomic_load_n(&layout, __ATOMIC_RELAXED);
}

void keyboard_use(const struct layout *wanted)
{
    __atomic_store_n(&layout, wanted, __ATOMIC_RELAXED);
}

void keyboard_attach(struct tty_driver *screen)
{
    if (arg_keymap.value[0]) {
        const struct layout *wanted = layout_find(arg_keymap.value);
        if (wanted)
            keyboard_use(wanted);
        else
            log_printf("warning: keymap=%s: there are %s\n", arg_keymap.value,
                       layout_names);
    }
    __atomic_store_n(&terminal, screen, __ATOMIC_RELEASE);
}

void keyboard_code(struct keymap *k, u8 code)
{
    char text[KEY_TEXT_MAX];
    struct tty_driver *t = __atomic_load_n(&terminal, __ATOMIC_ACQUIRE);
    k->layout = keyboard_layout();
    size_t n = keymap_code(k, code, text);
    if (t && t->look && (n || k->look))
        t->look(t, k->look);
    k->look = 0;
    if (n && t)
        tty_input(t->tty, text, n);
    char request = k->request;
    k->request = 0;
    if (request)
        sysrq(request);
}
