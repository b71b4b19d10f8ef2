// The names of serial ports in console=.
// link: arch/i386/dev/serial_name.c
#include "test.h"

#include "arch/i386/dev/serial_name.h"

static void is(const char *text, u32 port, u32 irq, u32 rate, u32 divisor)
{
    struct spcr_port p;
    assert_true(serial_name_parse(text, &p));
    assert_int_equal(p.port, port);
    assert_int_equal(p.irq, irq);
    assert_int_equal(p.rate, rate);
    assert_int_equal(p.divisor, divisor);
}

static void is_none(const char *text)
{
    struct spcr_port p, before;
    memset(&p, 0x5a, sizeof(p));
    memset(&before, 0x5a, sizeof(before));
    if (serial_name_parse(text, &p))
        fail_msg("taken for a port: %s", text);
    assert_memory_equal(&p, &before, sizeof(p));
}

static void usual_ports_have_their_interrupts(void **state UNUSED)
{
    is("ttyS0", 0x3f8, 4, 115200, 1);
    is("ttyS1", 0x2f8, 3, 115200, 1);
    is("ttyS2", 0x3e8, 4, 115200, 1);
    is("ttyS3,9600", 0x2e8, 3, 9600, 12);
    is("0x2f8,19200", 0x2f8, 3, 19200, 6);
}

static void other_ports_have_none(void **state UNUSED)
{
    is("0xe000", 0xe000, 0, 115200, 1);
    is("0xfff8,2", 0xfff8, 0, 2, 57600);
}

static void nothing_else_is_a_port(void **state UNUSED)
{
    static const char *const texts[] = {
        "",        "tty",          "ttyS",          "ttyS4",
        "ttyS-1",  "ttyS0x",       "ttyS0,",        "ttyS0,0",
        "0x",      "0x0",          "0xfff9",        "0x3e8,1",
        "ttyS1,a", "0x3e8,115201", "0x3e8 9600",    "0x3E8",
        "3f8",     "tty0",         "0x100000003f8", "0x3e8,4294967297",
    };
    for (u32 i = 0; i < ARRAY_SIZE(texts); i++)
        is_none(texts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_ports_have_their_interrupts),
        cmocka_unit_test(other_ports_have_none),
        cmocka_unit_test(nothing_else_is_a_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
