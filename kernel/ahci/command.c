// Commands of a port, in slot 0, and what is done when one fails (AHCI,
// 6.2.2.1).
#include "arch/clock.h"
#include "arch/mmu.h"
#include "kernel/ahci/ahci.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/debug/fault.h"
#include "lib/string.h"

#define DATA_MS 10000u // a disk that spins up, or repeats a bad sector
#define FLUSH_MS 60000u
#define SLOT 1u // bit of slot 0
#define ATTEMPTS 3u
#define RESETS_MAX 3u

enum outcome {
    DONE,
    REFUSED, // by the disk: it has answered with an error
    LOST,    // on the way, or within the controller: may be repeated
    SILENT,  // no answer
    GONE,
};

// Header and table first, then PxCI.
static void issue(struct ahci_port *p, const struct ata_command *c)
{
    struct ahci_table *t = &p->memory->table;
    struct ahci_header *h = &p->memory->list[0];
    memset(t, 0, sizeof(*t));
    ata_fis(t->fis, c);
    t->region = (u32)virt_to_phys(p->data);
    t->region_bytes = c->bytes - 1;
    *h = (struct ahci_header){
        .flags = HEADER_FIS_WORDS | (c->write ? HEADER_WRITE : 0) |
                 (c->bytes ? HEADER_ONE_REGION : 0),
        .table = (u32)virt_to_phys(t),
    };
    p->events = 0;
    barrier();
    if (!fault_due(FAULT_AHCI_LOST))
        port_write(p, PORT_CI, SLOT);
}

static bool gone(const struct ahci_port *p)
{
    return p->events & IS_PHY_READY || port_link(p) != DET_READY ||
           p->hba->dead;
}

static enum outcome failed(const struct ahci_port *p)
{
    u32 tfd = port_read(p, PORT_TFD);
    bool refused = p->events & IS_TASK_FILE && tfd & TFD_ERROR &&
                   !(TFD_CODE(tfd) & CODE_CRC);
    return refused ? REFUSED : LOST;
}

static enum outcome run_once(struct ahci_port *p, const struct ata_command *c)
{
    u32 ms = c->bytes ? DATA_MS : FLUSH_MS;
    u64 limit = clock_now_ns() + ms * NSEC_PER_MSEC;
    bool fatal = fault_due(FAULT_AHCI_FATAL);
    issue(p, c);
    for (;;) {
        u32 active = port_read(p, PORT_CI) & SLOT;
        if (gone(p))
            return GONE;
        if (fatal && !active)
            p->events |= IS_INTERFACE_FATAL;
        if (p->events & IS_ERRORS)
            return failed(p);
        // A command without data that was never issued is not active either.
        if (!active && p->events & (IS_FIS_REGISTER | IS_FIS_PIO))
            break;
        if (clock_now_ns() >= limit)
            return SILENT;
        hba_wait(p->hba, limit);
    }
    // Some controllers do not count (Marvell's 88SE61xx).
    u32 moved = p->memory->list[0].moved;
    if (moved && moved != c->bytes)
        return LOST;
    // A device fault alone raises no IS_TASK_FILE: 3.3.5, TFES.
    return port_read(p, PORT_TFD) & (TFD_ERROR | TFD_FAULT) ? REFUSED : DONE;
}

// Whether the device is the same one.
static bool same_device(struct ahci_port *p)
{
    struct ata_command c = ata_identify();
    struct ata_disk now;
    if (run_once(p, &c) != DONE || ata_parse_identify(p->data, &now))
        return false;
    return !p->device || memcmp(&now, &p->facts, sizeof(now)) == 0;
}

// 6.2.2.1: stops, clears the errors, and starts again; with a reset if the
// device is busy, or the port does not stop. The buffer is lost.
static int recover(struct ahci_port *p, enum outcome why)
{
    bool stopped = port_stop_commands(p);
    if (why != SILENT && stopped && port_idle(p)) {
        port_start_commands(p);
        return 0;
    }
    if (++p->resets > RESETS_MAX || !port_reset(p))
        return -ETIMEDOUT;
    port_start_commands(p);
    return same_device(p) ? 0 : -ENODEV;
}

static const char *const texts[] = {
    [REFUSED] = "it reports an error",
    [LOST] = "the transfer has failed",
    [SILENT] = "it does not answer",
};

static void log_failure(const struct ahci_port *p, const struct ata_command *c,
                        enum outcome why)
{
    log_printf("ahci: %s: command 0x%02x, sector %llu: %s (task file 0x%04x, "
               "events 0x%08x, errors 0x%08x)\n",
               p->name, c->code, c->sector, texts[why],
               port_read(p, PORT_TFD) & 0xffff, p->events,
               port_read(p, PORT_SERR));
}

int port_run(struct ahci_port *p, const struct ata_command *c)
{
    for (u32 i = 0; i < ATTEMPTS; i++) {
        enum outcome why = run_once(p, c);
        if (why == DONE)
            p->resets = 0;
        if (why == DONE || why == GONE)
            return why == DONE ? 0 : -ENODEV;
        log_failure(p, c, why);
        u32 resets = p->resets;
        int err = recover(p, why);
        if (err)
            return err;
        if (why == REFUSED)
            return -EIO;
        if (p->resets != resets)
            return -EAGAIN;
    }
    return -EIO;
}
