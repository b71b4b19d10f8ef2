// From the codes of keyboards to the terminal's input; see keyboard.h.
#include "kernel/base/keyboard.h"

static struct tty_driver *terminal; // set once, before it is used

void keyboard_attach(struct tty_driver *screen)
{
    __atomic_store_n(&terminal, screen, __ATOMIC_RELEASE);
}

void keyboard_code(struct keymap *k, u8 code)
{
    char text[KEY_TEXT_MAX];
    size_t n = keymap_code(k, code, text);
    const struct tty_driver *t = __atomic_load_n(&terminal, __ATOMIC_ACQUIRE);
    if (n && t)
        tty_input(t->tty, text, n);
    char request = k->request;
    k->request = 0;
    if (request)
        sysrq(request);
}
