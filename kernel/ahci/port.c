// A port's registers: its memory, starting, stopping and resetting it.
#include "arch/clock.h"
#include "arch/mmu.h"
#include "kernel/ahci/ahci.h"
#include "kernel/debug/fault.h"
#include "kernel/mm/frame.h"
#include "lib/string.h"

#define STOP_MS 500u  // AHCI, 10.1.2
#define RESET_MS 2u   // the least is 1: 10.4.2
#define LINK_MS 1000u // until the link is up again
#define READY_MS 10000u

_Static_assert(sizeof(struct ahci_memory) <= PAGE_SIZE &&
                   offsetof(struct ahci_memory, received) % 256 == 0 &&
                   offsetof(struct ahci_memory, table) % 128 == 0,
               "a port's memory");

u32 port_read(const struct ahci_port *p, u32 reg)
{
    return hba_read(p->hba, HBA_PORTS + p->number * PORT_BYTES + reg);
}

void port_write(struct ahci_port *p, u32 reg, u32 value)
{
    hba_write(p->hba, HBA_PORTS + p->number * PORT_BYTES + reg, value);
}

u32 port_link(const struct ahci_port *p)
{
    if (fault_begun(FAULT_AHCI_GONE))
        return DET_NOTHING;
    return SSTS_DET(port_read(p, PORT_SSTS));
}

bool port_idle(const struct ahci_port *p)
{
    return !(port_read(p, PORT_TFD) & (TFD_BUSY | TFD_REQUEST));
}

// Waits until all bits are 0.
static bool wait_clear(const struct ahci_port *p, u32 reg, u32 bits, u32 ms)
{
    u64 limit = clock_now_ns() + ms * NSEC_PER_MSEC;
    while (port_read(p, reg) & bits) {
        if (clock_now_ns() >= limit)
            return false;
        hba_sleep(1);
    }
    return true;
}

static void clear_command(struct ahci_port *p, u32 bits)
{
    port_write(p, PORT_CMD, port_read(p, PORT_CMD) & ~bits);
}

static void set_command(struct ahci_port *p, u32 bits)
{
    port_write(p, PORT_CMD, port_read(p, PORT_CMD) | bits);
}

// AHCI, 10.3.1
bool port_stop_commands(struct ahci_port *p)
{
    clear_command(p, CMD_START);
    return wait_clear(p, PORT_CMD, CMD_RUNS, STOP_MS);
}

// AHCI, 10.3.2: commands are stopped first.
bool port_stop(struct ahci_port *p)
{
    port_write(p, PORT_IE, 0);
    if (!port_stop_commands(p))
        return false;
    clear_command(p, CMD_FIS);
    return wait_clear(p, PORT_CMD, CMD_FIS_RUNS, STOP_MS);
}

// AHCI, 10.1.2, steps 5 to 7, and 10.1.1 (power, spin-up).
bool port_prepare(struct ahci_port *p)
{
    p->memory = page_alloc(FRAME_BUFFER);
    if (!p->memory)
        return false;
    port_write(p, PORT_CLB, (u32)virt_to_phys(p->memory->list));
    port_write(p, PORT_CLBU, 0);
    port_write(p, PORT_FB, (u32)virt_to_phys(p->memory->received));
    port_write(p, PORT_FBU, 0);
    port_write(p, PORT_SCTL, SCTL_NO_POWER_STATES);
    port_write(p, PORT_SERR, ~0u);
    u32 command = port_read(p, PORT_CMD) & ~(CMD_ICC | CMD_ATAPI);
    if (command & CMD_POWER_KNOWN)
        command |= CMD_POWER;
    port_write(p, PORT_CMD, command | CMD_FIS | CMD_SPIN_UP | CMD_ACTIVE);
    port_write(p, PORT_IS, ~0u);
    port_write(p, PORT_IE,
               IS_FIS_REGISTER | IS_FIS_PIO | IS_CONNECT | IS_PHY_READY |
                   IS_ERRORS);
    return true;
}

// AHCI, 10.3.1: the link is up and the device is not busy.
void port_start_commands(struct ahci_port *p)
{
    port_write(p, PORT_SERR, ~0u);
    port_write(p, PORT_IS, ~0u);
    p->events = 0;
    set_command(p, CMD_START);
}

// AHCI, 10.4.2. Clearing all errors lets the port take the device's first FIS.
bool port_reset(struct ahci_port *p)
{
    u64 limit = clock_now_ns() + LINK_MS * NSEC_PER_MSEC;
    if (!port_stop_commands(p))
        return false;
    port_write(p, PORT_SCTL, SCTL_NO_POWER_STATES | SCTL_RESET);
    hba_sleep(RESET_MS);
    port_write(p, PORT_SCTL, SCTL_NO_POWER_STATES);
    while (port_link(p) != DET_READY) {
        if (clock_now_ns() >= limit)
            return false;
        hba_sleep(1);
    }
    port_write(p, PORT_SERR, ~0u);
    return wait_clear(p, PORT_TFD, TFD_BUSY | TFD_REQUEST, READY_MS);
}
