// ACPI's table SPCR: which ports are used, and what is said of others.
// link: arch/i386/acpi/spcr.c
#include "test.h"

#include "arch/i386/acpi/spcr.h"

#define REVISION 8
#define KIND 36
#define BASE 40 // the address structure
#define IRQ_KINDS 52
#define IRQ 53
#define RATE 58
#define CLOCK 76
#define EXACT_RATE 80

static u8 table[88];
static struct spcr_port port;

static void put(u32 at, u64 value, u32 bytes)
{
    memcpy(table + at, &value, bytes);
}

// COM2 at 57600 baud.
static void begin(void)
{
    memset(table, 0, sizeof(table));
    memcpy(table, "SPCR", 4);
    put(4, 80, 4);
    put(REVISION, 2, 1);
    put(BASE, ACPI_SPACE_IO | 8 << 8, 4);
    put(BASE + 4, 0x2f8, 8);
    put(IRQ_KINDS, 3, 1);
    put(IRQ, 3, 1);
    put(RATE, 6, 1);
}

static const char *parse(void)
{
    return spcr_parse((const void *)table, &port);
}

static void assert_port(u32 at, u32 irq, u32 rate, u32 divisor)
{
    assert_null(parse());
    assert_int_equal(port.port, at);
    assert_int_equal(port.irq, irq);
    assert_int_equal(port.rate, rate);
    assert_int_equal(port.divisor, divisor);
}

static void a_port(void **state UNUSED)
{
    begin();
    assert_port(0x2f8, 3, 57600, 2);
    put(KIND, 0x12, 1);
    put(RATE, 0, 1);
    assert_port(0x2f8, 3, 0, 0);
    put(IRQ_KINDS, 2, 1); // of the I/O APIC only
    put(RATE, 3, 1);
    assert_port(0x2f8, 0, 9600, 12);
}

static void rates(void **state UNUSED)
{
    begin();
    put(CLOCK, 48000000, 4);
    put(EXACT_RATE, 1500000, 4);
    assert_port(0x2f8, 3, 57600, 2); // revision 2 has no such fields
    put(4, 88, 4);
    assert_port(0x2f8, 3, 57600, 2);
    put(REVISION, 4, 1);
    assert_port(0x2f8, 3, 1500000, 2);
    put(EXACT_RATE, 0, 4);
    assert_port(0x2f8, 3, 57600, 52);
    put(EXACT_RATE, 4000000, 4);
    assert_string_equal(parse(), "its rate is impossible");
    put(EXACT_RATE, 1, 4);
    assert_string_equal(parse(), "its rate is impossible");
    put(EXACT_RATE, 0, 4);
    put(RATE, 5, 1);
    assert_string_equal(parse(), "its rate is unknown");
}

static void others(void **state UNUSED)
{
    begin();
    put(4, 75, 4);
    assert_string_equal(parse(), "it is too short");
    begin();
    put(KIND, 3, 1);
    assert_string_equal(parse(), "its port is no 16550");
    begin();
    put(BASE, ACPI_SPACE_MEMORY | 8 << 8, 4);
    assert_string_equal(parse(), "its port is not in the I/O space");
    begin();
    put(BASE, ACPI_SPACE_IO | 32 << 8, 4);
    assert_string_equal(parse(),
                        "its port's registers are no bytes at I/O ports");
    begin();
    put(BASE + 4, 0xfff9, 8);
    assert_string_equal(parse(),
                        "its port's registers are no bytes at I/O ports");
    begin();
    put(BASE + 4, 0, 8);
    assert_string_equal(parse(),
                        "it says that the firmware uses no serial port");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port),
        cmocka_unit_test(rates),
        cmocka_unit_test(others),
    };
    return cmocka_run_group_tests_name("spcr", tests, NULL, NULL);
}
