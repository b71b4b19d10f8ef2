// SATA disks behind AHCI controllers (Serial ATA AHCI 1.3.1; below AHCI).
//
// Each controller has one thread, which does all its work, one command at a
// time; the interrupt handler only wakes it. So nothing here is locked. Every
// wait has a limit: a disk that does not answer, and that a reset does not
// mend, is given up, which is logged.
//
// A disk is read by itself for its size and its partitions, and written only by
// the file system of block.h that was asked for. Other devices (ATAPI, port
// multipliers) are listed and left alone.
#pragma once

#include "arch/pci.h"
#include "kernel/ahci/ata.h"
#include "kernel/ahci/registers.h"
#include "kernel/block/driver.h"

struct ahci;

enum port_state {
    PORT_ABSENT,   // not implemented
    PORT_EMPTY,    // no device
    PORT_STARTING, // a device may come, or becomes ready
    PORT_DISK,
    PORT_UNUSED, // given up, or no disk; until the device goes
};

struct ahci_port {
    struct ahci *hba;
    u32 number;
    char name[BLOCK_NAME_BYTES]; // sata0
    enum port_state state;
    u64 deadline, link_deadline; // of PORT_STARTING
    bool reset;                  // in this start
    u32 events;                  // of PORT_IS, not yet handled
    u32 resets;                  // in a row that did not help
    struct ata_disk facts;
    struct block_device *device; // NULL: none is listed
    struct ahci_memory *memory;
    struct frame *frames; // the data of a transfer
    u8 *data;
};

struct ahci {
    u32 number;
    char name[12]; // of its thread
    struct pci_function pci;
    volatile u32 *registers;
    u32 implemented, first; // ports; the number of port 0's disk
    struct waitq wake;
    u32 interrupts; // by the handler only
    u32 served;
    bool dead;
    struct ahci_port ports[PORTS_MOST];
};

// --- ahci.c

u32 hba_read(const struct ahci *h, u32 reg);
void hba_write(struct ahci *h, u32 reg, u32 value);
// Whether interrupts have been seen; else everything is polled.
bool hba_interrupts(const struct ahci *h);
// Waits for an interrupt, until `limit` at most, and takes the ports' events.
void hba_wait(struct ahci *h, u64 limit);
void hba_sleep(u32 ms);
void ahci_start(void); // before the first program

// --- port.c: registers and resets

u32 port_read(const struct ahci_port *p, u32 reg);
void port_write(struct ahci_port *p, u32 reg, u32 value);
u32 port_link(const struct ahci_port *p); // DET
// Stops what it does with memory. False: it does not stop.
bool port_stop(struct ahci_port *p);
bool port_stop_commands(struct ahci_port *p);
// Gives it its memory, and lets it receive. False: no memory.
bool port_prepare(struct ahci_port *p);
void port_start_commands(struct ahci_port *p);
// COMRESET. False: the link, or the device, is not ready after it.
bool port_reset(struct ahci_port *p);
bool port_idle(const struct ahci_port *p); // neither busy nor with data

// --- command.c

// Runs a command, with retries. 0; -EIO: it has failed; -EAGAIN: the device was
// reset, and p->data, which has the data, was used; -ENODEV: the device has
// gone; -ETIMEDOUT: it does not answer any more.
int port_run(struct ahci_port *p, const struct ata_command *c);

// --- disk.c

// What is to be done at this port; when it must be called again at the latest.
u64 port_serve(struct ahci_port *p);
bool port_has_work(const struct ahci_port *p);
void port_give_up(struct ahci_port *p, const char *why);
