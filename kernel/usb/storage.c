// Mass storage: the driver of sticks (BOT 1.0; see bot.h). A command is the
// wrapper (out), the data, and its status (in). A device that does anything
// else is reset; one that this does not mend is given up.
#include "arch/mmu.h"
#include "kernel/base/errno.h"
#include "kernel/base/log.h"
#include "kernel/block/driver.h"
#include "kernel/debug/fault.h"
#include "kernel/mm/frame.h"
#include "kernel/mm/heap.h"
#include "kernel/usb/bot.h"
#include "kernel/usb/xhci.h"
#include "lib/string.h"

#define BOT_RESET 0xff // class requests, BOT 3.1
#define PHASE_MS 5000u
#define READY_STEP_MS 100u
#define READY_STEPS 50u
#define ATTEMPTS 3u
#define RESETS_MAX 3u
#define BUFFER_ORDER 3u  // 8 pages
#define COMMAND_FAILED 1 // and the sense data say why

struct storage {
    struct block_device *disk;
    struct frame *frames; // the data of a transfer
    u8 *data;
    u32 tag;
    u32 resets;    // in a row
    bool broken;   // given up
    u8 additional; // sense code of the last command that failed
    u32 sense;     // key of the same; SENSE_NONE: it was reset
};

// BOT, 5.3.4
static int reset(struct usb_device *d)
{
    struct storage *s = d->data;
    struct usb_request r = {
        .type = REQUEST_CLASS | REQUEST_INTERFACE,
        .request = BOT_RESET,
        .index = d->function.interface,
    };
    int err = usb_control(d, &r, NULL);
    if (!err)
        err = usb_clear_halt(d, &d->bulk_in);
    if (!err)
        err = usb_clear_halt(d, &d->bulk_out);
    if (!err && ++s->resets > RESETS_MAX)
        err = -EIO;
    if (err && !d->gone && !s->broken)
        log_printf("usb: %s: given up: a reset does not help\n", d->path);
    s->broken |= err != 0;
    return -EIO;
}

// The data, whose number is checked with the status. A stall ends them (6.7.2,
// 6.7.3).
static int move_data(struct usb_device *d, const struct scsi_command *c,
                     u32 *done)
{
    struct storage *s = d->data;
    struct usb_endpoint *e = c->in ? &d->bulk_in : &d->bulk_out;
    *done = 0;
    if (!c->data)
        return 0;
    int err =
        usb_bulk(d, e, (u32)virt_to_phys(s->data), c->data, PHASE_MS, done);
    return err == -EPIPE ? usb_clear_halt(d, e) : err;
}

// Reads the status; after a stall once more (figure 2).
static int read_status(struct usb_device *d, u32 *n)
{
    u32 at = usb_report_address(d);
    int err = usb_bulk(d, &d->bulk_in, at, BOT_STATUS_BYTES, PHASE_MS, n);
    if (err != -EPIPE)
        return err;
    err = usb_clear_halt(d, &d->bulk_in);
    return err ? err
               : usb_bulk(d, &d->bulk_in, at, BOT_STATUS_BYTES, PHASE_MS, n);
}

// The bytes of data, all of which have been moved; *moved may be NULL: then all
// must be. COMMAND_FAILED: so says the device.
static int command(struct usb_device *d, const struct scsi_command *c,
                   u32 *moved)
{
    struct storage *s = d->data;
    u32 n = 0, done = 0, residue = 0;
    if (s->broken)
        return -EIO;
    bot_wrap(usb_report(d), ++s->tag, c);
    int err = usb_bulk(d, &d->bulk_out, usb_report_address(d),
                       BOT_COMMAND_BYTES, PHASE_MS, &n);
    if (!err && n != BOT_COMMAND_BYTES)
        err = -EIO;
    if (!err)
        err = move_data(d, c, &done);
    if (!err)
        err = read_status(d, &n);
    if (err)
        return reset(d);
    if (fault_due(FAULT_USB_STATUS))
        usb_report(d)[0] ^= 0xff;
    switch (bot_unwrap(usb_report(d), n, s->tag, c->data, &residue)) {
    case BOT_GOOD:
        s->resets = 0;
        break;
    case BOT_FAILED:
        return COMMAND_FAILED;
    case BOT_BROKEN:
        return reset(d);
    }
    done = MIN(done, c->data - residue);
    if (moved)
        *moved = done;
    return moved || done == c->data ? 0 : -EIO;
}

// Why the last command has failed.
static u32 ask_sense(struct usb_device *d)
{
    struct storage *s = d->data;
    struct scsi_command c = scsi_sense();
    u32 n;
    if (command(d, &c, &n))
        return SENSE_UNKNOWN;
    return scsi_parse_sense(s->data, n, &s->additional);
}

// Repeats a command that fails for no lasting reason.
static int run(struct usb_device *d, const struct scsi_command *c, u32 *moved)
{
    struct storage *s = d->data;
    int err = -EIO;
    for (u32 i = 0; i < ATTEMPTS; i++) {
        s->sense = SENSE_NONE;
        err = command(d, c, moved);
        if (err != COMMAND_FAILED)
            return err;
        s->sense = ask_sense(d);
        if (s->sense == SENSE_PROTECTED)
            return -EROFS;
        if (s->sense != SENSE_ATTENTION)
            return -EIO;
    }
    return -EIO;
}

// --- start

static const char *wait_ready(struct usb_device *d)
{
    struct storage *s = d->data;
    struct scsi_command c = scsi_test_ready();
    for (u32 i = 0; i < READY_STEPS; i++) {
        int err = command(d, &c, NULL);
        if (!err)
            return NULL;
        if (err != COMMAND_FAILED)
            return "it does not answer as a disk does";
        if (ask_sense(d) == SENSE_NOT_READY && s->additional == SENSE_NO_MEDIUM)
            return "it has no medium";
        if (usb_pause(d, READY_STEP_MS))
            break;
    }
    return "it does not become ready";
}

// False also for one that does not say.
static bool is_protected(struct usb_device *d)
{
    struct storage *s = d->data;
    struct scsi_command c = scsi_mode();
    u32 n;
    return !run(d, &c, &n) && scsi_parse_protected(s->data, n);
}

static const char *identify(struct usb_device *d, char *name, u32 *sectors)
{
    struct storage *s = d->data;
    struct scsi_command c = scsi_inquiry();
    u32 n, sector_bytes;
    if (run(d, &c, &n) || !scsi_parse_inquiry(s->data, n, name))
        return "it is not a disk";
    const char *why = wait_ready(d);
    if (why)
        return why;
    c = scsi_capacity();
    if (run(d, &c, &n) ||
        !scsi_parse_capacity(s->data, n, sectors, &sector_bytes))
        return "its size is not known, or above 2 TiB";
    return sector_bytes == BLOCK_SECTOR ? NULL
                                        : "its sectors do not have 512 bytes";
}

static int start(struct usb_device *d)
{
    struct storage *s = kzalloc(sizeof(*s));
    char name[SCSI_NAME_BYTES];
    u32 sectors;
    if (!s)
        return -ENOMEM;
    d->data = s;
    s->frames = frame_alloc(BUFFER_ORDER, FRAME_LOW | FRAME_ZERO, FRAME_BUFFER);
    if (!s->frames)
        return -ENOMEM;
    s->data = frame_va(s->frames);
    int err = usb_start_bulk(d);
    if (err)
        return err;
    const char *why = identify(d, name, &sectors);
    if (why) {
        log_printf("usb: %s: a stick that cannot be used: %s\n", d->path, why);
        return -EIO;
    }
    bool protected = is_protected(d);
    log_printf("usb: %s: %s, %u MiB%s\n", d->path, name,
               sectors / SECTORS_OF_MIB, protected ? ", write-protected" : "");
    s->disk = block_add(&(struct block_facts){
        .bus = "usb",
        .name = d->path,
        .model = name,
        .sectors = sectors,
        .stick = true,
        .read_only = protected,
        .wake = &d->controller->wake,
    });
    return s->disk ? 0 : -ENOMEM;
}

// --- transfers

static void log_failure(const struct usb_device *d,
                        const struct block_request *r)
{
    const struct storage *s = d->data;
    if (d->gone || s->broken)
        return;
    if (s->sense == SENSE_NONE)
        log_printf("usb: %s: sector %llu: the transfer has failed\n", d->path,
                   r->sector);
    else
        log_printf("usb: %s: sector %llu cannot be %s (sense key %u, code "
                   "0x%02x)\n",
                   d->path, r->sector, r->write ? "written" : "read", s->sense,
                   s->additional);
}

static int transfer(struct usb_device *d, const struct block_request *r)
{
    struct storage *s = d->data;
    u32 bytes = r->count * BLOCK_SECTOR;
    if (r->flush) {
        struct scsi_command flush = scsi_flush();
        int err = command(d, &flush, NULL);
        return err == COMMAND_FAILED ? ask_sense(d), 0 : err; // it has no cache
    }
    if (r->write)
        memcpy(s->data, r->data, bytes);
    struct scsi_command c =
        scsi_transfer(r->write, (u32)r->sector, r->count, BLOCK_SECTOR);
    int err = run(d, &c, NULL);
    if (err == -EIO)
        log_failure(d, r);
    if (!err && !r->write)
        memcpy(r->data, s->data, bytes);
    return err;
}

static bool wanted(const struct usb_device *d)
{
    const struct storage *s = d->data;
    return s && s->disk && block_asked(s->disk);
}

static void serve(struct usb_device *d)
{
    struct storage *s = d->data;
    struct block_request r;
    while (s->disk && block_request(s->disk, &r))
        block_answer(s->disk, transfer(d, &r));
}

static void stop(struct usb_device *d)
{
    struct storage *s = d->data;
    if (s && s->disk)
        block_remove(s->disk);
    if (s)
        s->disk = NULL;
}

// The controller uses the buffer until the slot is given back.
static void release(struct usb_device *d)
{
    struct storage *s = d->data;
    if (s && s->frames)
        frame_unref(s->frames);
    kfree(s);
    d->data = NULL;
}

const struct usb_driver usb_storage = {
    .name = "storage",
    .start = start,
    .wanted = wanted,
    .work = serve,
    .stop = stop,
    .release = release,
};
