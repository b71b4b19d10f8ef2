// Interfaces of the interrupt controllers' drivers, for each other and for the
// code that discovers the controllers (arch/i386/acpi).
#pragma once

#include "arch/i386/irq/apic.h"
#include "arch/mmu.h"

#define ISA_IRQS 16

// How an interrupt line is wired (ACPI 6.4, 5.2.12.5, "flags").
struct irq_line {
    u32 gsi;
    bool active_low, level;
};

// An interrupt message from a controller to the CPUs (SDM vol. 3, 11.6.1).
struct irq_message {
    u32 vector;
    u32 delivery; // DELIVERY_...
    bool logical; // `destination` has LDR bits, else it is an APIC id
    u32 destination;
};
#define DELIVERY_FIXED (0u << 8)
#define DELIVERY_NMI (4u << 8)

static inline u64 read_msr(u32 msr)
{
    u64 value;
    __asm__ volatile("rdmsr" : "=A"(value) : "c"(msr));
    return value;
}
static inline void write_msr(u32 msr, u64 value)
{
    __asm__ volatile("wrmsr" ::"c"(msr), "A"(value) : "memory");
}

// --- lapic.c

// Maps the registers at the address in this CPU's IA32_APIC_BASE; a warning if
// the firmware's tables say another one (0: they say none). 0, or -ENOMEM.
int lapic_map(paddr_t said);
// This CPU's APIC id, in the mode in which the firmware has left it: before
// lapic_init_cpu.
u32 lapic_first_id(void);
// Lets the 8259 interrupt this CPU through LINT0: no I/O APIC was found.
void lapic_accept_i8259(void);
void lapic_eoi(void);
bool lapic_in_service(u32 vector);
bool lapic_requested(u32 vector);

// This CPU's local vector table, in the order of lapic_lvt_names. Interrupts
// off.
#define LAPIC_LVTS 5u
extern const char *const lapic_lvt_names[LAPIC_LVTS];
void lapic_read_lvts(u32 lvts[LAPIC_LVTS]);

// The timer: counts down from its start value (divider 1).
#define LAPIC_TIMER_MASKED (1u << 16)
#define LAPIC_TIMER_PERIODIC (1u << 17)
#define LAPIC_TIMER_TSC_DEADLINE (2u << 17)
void lapic_timer_mode(u32 lvt);
void lapic_timer_start(u32 count); // 0: stop
u32 lapic_timer_count(void);

// --- ioapic.c

// Adds an I/O APIC whose first pin is `gsi_base`, all pins masked.
// 0, -ENOMEM, -ENODEV (does not answer), -ENOSPC (too many).
int ioapic_add(paddr_t base, u32 gsi_base);
bool ioapic_present(void);
u32 ioapic_end(void); // one above the highest line
// Connects a line, unmasked; disconnects it. 0, or -EINVAL: no I/O APIC has it.
int ioapic_route(const struct irq_line *line, const struct irq_message *m);
int ioapic_mask(const struct irq_line *line);
// Reads the redirection entry of a line. False: no I/O APIC has it.
bool ioapic_entry(u32 gsi, u64 *entry);
#define REDIRECT_LOGICAL (1u << 11)
#define REDIRECT_ACTIVE_LOW (1u << 13)
#define REDIRECT_LEVEL (1u << 15)
#define REDIRECT_MASKED (1u << 16)

// --- i8259.c

// Sets both chips to deliver at `vector_base`.. (a multiple of 8), all masked.
void i8259_init(u32 vector_base);
#define VECTOR_I8259_PARKED 0x20 // for the spurious interrupts of a masked 8259
void i8259_unmask(u32 irq);
void i8259_mask(u32 irq);
// True if the interrupt is real (then acknowledge it): the chip delivers IRQ 7
// or 15 when the requesting line has dropped again.
bool i8259_is_real(u32 irq);
static inline bool i8259_may_be_spurious(u32 irq)
{
    return irq % 8 == 7;
}
void i8259_eoi(u32 irq);
bool i8259_requested(u32 irq); // request pending, masked or not

// --- irq.c

// The wiring of ISA interrupts; initially the identity (edge, active high).
extern struct irq_line isa_lines[ISA_IRQS];
// The target of a source's interrupts.
enum irq_target { IRQ_BOOT_CPU, IRQ_ALL_CPUS, IRQ_NMI_ALL_CPUS };

// An interrupt source, such as a timer: its vector is set up once, its route is
// opened and closed repeatedly.
struct irq_source {
    u32 vector;
    struct irq_line line;
    bool message; // it sends messages (MSI) and has no line
};
// Sets the source up: an ISA interrupt, a line (edge, active high) or a
// message. 0, -EBUSY (the ISA interrupt has a handler), -EINVAL (no such line),
// -ENOSPC.
int irq_source_isa(struct irq_source *s, u32 irq, irq_handler_t handler,
                   void *arg, const char *name);
int irq_source_line(struct irq_source *s, u32 gsi, irq_handler_t handler,
                    void *arg, const char *name);
int irq_source_message(struct irq_source *s, irq_handler_t handler, void *arg,
                       const char *name);
// True if its interrupts can go to other targets than the boot CPU.
bool irq_targets_all(const struct irq_source *s);
// Opens and closes a line. 0, -EINVAL (unsupported target). A message has no
// line: irq_message_for gives what to program into its sender.
int irq_source_open(const struct irq_source *s, enum irq_target target);
void irq_source_close(const struct irq_source *s);
// Whether its interrupt is pending on this CPU. Interrupts off.
bool irq_source_requested(const struct irq_source *s);
void irq_message_for(const struct irq_source *s, enum irq_target target,
                     struct irq_message *out);

// Chooses I/O APIC or 8259, after all of them have been added.
void irq_init(void);
