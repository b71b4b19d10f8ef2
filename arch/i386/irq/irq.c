// Vectors: their handlers, their counts, and their acknowledgement.
//
// A vector's entry is complete before its first interrupt, and does not change
// after it. `vectors_lock` serialises changes.
// Counts are written by their own CPU only, with interrupts off.
#include "arch/i386/cpu/arch_cpu.h"
#include "arch/i386/irq/controllers.h"
#include "arch/trap.h"
#include "kernel/base/errno.h"
#include "kernel/base/errors.h"
#include "kernel/base/log.h"
#include "kernel/sync/spinlock.h"
#include "kernel/time/ledger.h"
#include "lib/counter.h"
#include "lib/cpu_memory.h"

#define DESTINATION_MAX 0xfeu // of a device's interrupt; 0xff is all CPUs
#define VECTOR_FIRST 0x20
#define VECTOR_ISA VECTOR_DEVICE_FIRST // 16 of them
#define VECTOR_LAPIC_FIRST 0xe0
#define CASCADE_IRQ 2
_Static_assert(VECTOR_ISA % 8 == 0 && VECTOR_ISA + ISA_IRQS <= VECTOR_SYSCALL,
               "the 8259 gives the low three bits; free_vector");
_Static_assert(LEDGER_SAMPLING >= VECTOR_FIRST && LEDGER_SAMPLING < VECTOR_ISA,
               "no interrupt has it");

enum controller { CONTROLLER_NONE, LAPIC, IOAPIC, I8259 };

struct vector {
    irq_handler_t handler; // NULL: the vector is unexpected
    void *arg;
    const char *name;
    u8 controller; // enum controller
    bool logged;
    bool fast_path; // only handler and LAPIC EOI: the fast path
} __attribute__((aligned(32)));

#define SAME_GSI(n) [n] = { .gsi = n }
struct irq_line isa_lines[ISA_IRQS] = {
    SAME_GSI(0),  SAME_GSI(1),  SAME_GSI(2),  SAME_GSI(3),
    SAME_GSI(4),  SAME_GSI(5),  SAME_GSI(6),  SAME_GSI(7),
    SAME_GSI(8),  SAME_GSI(9),  SAME_GSI(10), SAME_GSI(11),
    SAME_GSI(12), SAME_GSI(13), SAME_GSI(14), SAME_GSI(15),
};

static struct spinlock vectors_lock = SPINLOCK_INIT("irq vectors");
static struct vector vectors[VECTORS] = {
    [LEDGER_SAMPLING] = { .name = "sampling" },
};
ERROR_COUNTER(unexpected_count, "unexpected interrupts",
              "acknowledged; the log names each vector once");
ERROR_COUNTER(spurious_count, "spurious interrupts, LAPIC",
              "none: no interrupt is in service");
ERROR_COUNTER(spurious_i8259_count, "spurious interrupts, 8259",
              "none: the line dropped before it was taken");

struct counter *irq_counts[CPU_MAX];
CPU_MEMORY(irq_counts, VECTORS);
static bool i8259_used;
static u32 boot_apic_id;

u64 irq_count(u32 cpu, u32 vector)
{
    assert(cpu < cpu_count && vector < VECTORS);
    return counter_read(&irq_counts[cpu][vector]);
}

const char *irq_name(u32 vector)
{
    const char *name = vector < VECTORS ? vectors[vector].name : NULL;
    return name ? name : "";
}

const char *irq_controller(u32 vector)
{
    if (vector < VECTOR_FIRST)
        return "exception";
    switch (vector < VECTORS ? vectors[vector].controller : CONTROLLER_NONE) {
    case IOAPIC:
        return "IO-APIC";
    case I8259:
        return "XT-PIC";
    default:
        return "LAPIC";
    }
}

// The spurious vector is never in service, so it gets no EOI.
static void update_fast_path(struct vector *v)
{
    spin_assert_held(&vectors_lock);
    bool fast =
        v->handler && v->controller != I8259 && v != &vectors[VECTOR_SPURIOUS];
    WRITE_ONCE(v->fast_path, fast);
}

// A watched vector remains watched.
static int set_vector(u32 vector, const struct vector *new)
{
    assert(vector >= 32 && vector < 256);
    struct vector *v = &vectors[vector];
    u32 flags = spin_lock_irq(&vectors_lock);
    int err = v->handler && new->handler ? -EBUSY : 0;
    if (!err) {
        v->handler = new->handler;
        v->arg = new->arg;
        v->name = new->name;
        v->controller = new->controller;
        update_fast_path(v);
    }
    spin_unlock_irq(&vectors_lock, flags);
    return err;
}

void irq_register_vector(u32 vector, irq_handler_t handler, void *arg,
                         const char *name)
{
    assert(vector >= VECTOR_FIRST && vector < VECTORS && handler);
    struct vector v = { handler, arg, name, .controller = LAPIC };
    int err = set_vector(vector, &v);
    assert(!err);
}

// --- sources

// A logical destination reaches only CPUs that have initialised their LAPIC:
// firmware may have left others halted, and an NMI would wake them.
static u32 all_cpus(void)
{
    return (1u << MIN(cpu_count, 8u)) - 1;
}

void irq_message_for(const struct irq_source *s, enum irq_target target,
                     struct irq_message *out)
{
    *out = (struct irq_message){
        .vector = target == IRQ_NMI_ALL_CPUS ? 0 : s->vector,
        .delivery = target == IRQ_NMI_ALL_CPUS ? DELIVERY_NMI : DELIVERY_FIXED,
        .logical = target != IRQ_BOOT_CPU,
        .destination = target == IRQ_BOOT_CPU ? boot_apic_id : all_cpus(),
    };
}

bool irq_targets_all(const struct irq_source *s)
{
    return !apic_x2apic && (s->message || !i8259_used);
}

int irq_source_open(const struct irq_source *s, enum irq_target target)
{
    if (s->message)
        return 0;
    if (i8259_used) {
        if (target != IRQ_BOOT_CPU)
            return -EINVAL;
        i8259_unmask(s->vector - VECTOR_ISA);
        return 0;
    }
    struct irq_message m;
    irq_message_for(s, target, &m);
    return ioapic_route(&s->line, &m);
}

void irq_source_close(const struct irq_source *s)
{
    if (s->message)
        return;
    if (i8259_used)
        i8259_mask(s->vector - VECTOR_ISA);
    else
        ioapic_mask(&s->line);
}

bool irq_source_requested(const struct irq_source *s)
{
    if (i8259_used && !s->message)
        return i8259_requested(s->vector - VECTOR_ISA);
    return lapic_requested(s->vector);
}

int irq_source_isa(struct irq_source *s, u32 irq, irq_handler_t handler,
                   void *arg, const char *name)
{
    if (irq >= ISA_IRQS || irq == CASCADE_IRQ || !handler)
        return -EINVAL;
    *s = (struct irq_source){ VECTOR_ISA + irq, isa_lines[irq], false };
    if (!i8259_used && s->line.gsi >= ioapic_end())
        return -EINVAL;
    enum controller c = i8259_used ? I8259 : IOAPIC;
    struct vector v = { handler, arg, name, .controller = c };
    return set_vector(s->vector, &v);
}

static int free_vector(struct irq_source *s, const struct vector *new)
{
    for (u32 v = VECTOR_ISA + ISA_IRQS; v < VECTOR_SYSCALL; v++) {
        s->vector = v;
        if (!set_vector(v, new))
            return 0;
    }
    return -ENOSPC;
}

int irq_source_line(struct irq_source *s, u32 gsi, irq_handler_t handler,
                    void *arg, const char *name)
{
    if (i8259_used || gsi >= ioapic_end())
        return -EINVAL;
    *s = (struct irq_source){ .line.gsi = gsi };
    struct vector v = { handler, arg, name, .controller = IOAPIC };
    return free_vector(s, &v);
}

int irq_source_message(struct irq_source *s, irq_handler_t handler, void *arg,
                       const char *name)
{
    if (!apic_present)
        return -EINVAL;
    *s = (struct irq_source){ .message = true };
    struct vector v = { handler, arg, name, .controller = LAPIC };
    return free_vector(s, &v);
}

int irq_register_isa(u32 irq, irq_handler_t handler, void *arg,
                     const char *name)
{
    struct irq_source s;
    int err = irq_source_isa(&s, irq, handler, arg, name);
    if (err)
        return err;
    err = irq_source_open(&s, IRQ_BOOT_CPU);
    if (err)
        set_vector(s.vector, &(struct vector){ 0 }); // it could never be raised
    return err;
}

static NOINLINE void log_unexpected(struct vector *v, u32 vector)
{
    if (!v->logged)
        log_printf("irq: no handler for vector %#x, seen on CPU %u\n", vector,
                   this_cpu()->id);
    v->logged = true;
}

// No EOI if the vector is not in service: it would acknowledge another vector
// that is.
static void unexpected(struct vector *v, u32 vector)
{
    error_count(&unexpected_count);
    log_unexpected(v, vector);
    if (apic_present && lapic_in_service(vector))
        lapic_eoi();
}

// The LAPIC delivers this vector when the interrupt that it had signalled is no
// longer requested (SDM vol. 3, 11.9). It is in service only if it was sent as
// an ordinary interrupt.
static void spurious(void *arg UNUSED)
{
    if (lapic_in_service(VECTOR_SPURIOUS))
        unexpected(&vectors[VECTOR_SPURIOUS], VECTOR_SPURIOUS);
    else if (!this_cpu()->arch->measures_entry)
        error_count(&spurious_count);
}

// None of the 8259's interrupts is in service: another CPU has sent the vector,
// or the line has dropped.
static void not_from_i8259(struct vector *v, u32 vector)
{
    bool sent = apic_present && lapic_in_service(vector);
    if (sent || !i8259_may_be_spurious(vector - VECTOR_ISA))
        unexpected(v, vector);
    else
        error_count(&spurious_i8259_count);
}

static void dispatch_i8259(struct vector *v, u32 vector)
{
    u32 irq = vector - VECTOR_ISA;
    bool doubtful = i8259_may_be_spurious(irq) || !v->handler;
    if (doubtful && !i8259_is_real(irq)) {
        not_from_i8259(v, vector);
        return;
    }
    if (v->handler)
        v->handler(v->arg);
    else
        unexpected(v, vector);
    i8259_eoi(irq);
}

static NOINLINE void dispatch_otherwise(struct vector *v, u32 vector)
{
    if (i8259_used && vector - VECTOR_ISA < ISA_IRQS) {
        dispatch_i8259(v, vector);
    } else if (!v->handler) {
        unexpected(v, vector);
    } else {
        v->handler(v->arg);
        if (vector != VECTOR_SPURIOUS)
            lapic_eoi();
    }
}

void irq_dispatch(u32 vector)
{
    assert_checked(vector < VECTORS);
    struct vector *v = OPAQUE(&vectors[vector]);
    irq_count_up(vector);
    if (likely(READ_ONCE(v->fast_path))) {
        v->handler(v->arg);
        lapic_eoi();
    } else {
        dispatch_otherwise(v, vector);
    }
}

// Does nothing: do_deferred (trap.c) runs after any interrupt.
static void deferred(void *arg UNUSED)
{
}

NOTRACE void irq_raise_deferred(void)
{
    WRITE_ONCE(this_cpu()->arch->deferred, true);
    if (apic_present)
        lapic_send_self(VECTOR_DEFERRED);
}

void irq_init(void)
{
    i8259_used = !ioapic_present();
    if (i8259_used)
        i8259_init(VECTOR_ISA);
    if (!apic_present)
        return;
    boot_apic_id = lapic_id();
    if (boot_apic_id > DESTINATION_MAX)
        log_printf("irq: devices cannot interrupt the boot CPU: its APIC id %u "
                   "is above %u\n",
                   boot_apic_id, DESTINATION_MAX);
    irq_register_vector(VECTOR_SPURIOUS, spurious, NULL, "spurious");
    irq_register_vector(VECTOR_DEFERRED, deferred, NULL, "deferred by NMIs");
    if (i8259_used)
        lapic_accept_i8259();
}
