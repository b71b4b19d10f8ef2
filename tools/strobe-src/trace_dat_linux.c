// The points that are events of Linux, too: their names, fields and print
// formats in a trace.dat file, so that trace-cmd and KernelShark know what they
// are.
//
// Names and fields: Linux's include/trace/events/{sched,signal,power,irq,
// syscalls}.h and arch/x86/include/asm/trace/exceptions.h. Fields that the
// trace has no values for are left out, but not priorities, which the readers'
// plugins demand: they are 0. The status of a task that ends is in no event of
// Linux.
//
// As on Linux a wait for an interrupt and its end are two events `cpu_idle`, a
// task and a further thread of one are `sched_process_fork`, and a page fault
// is one of two events.
#include "trace_dat.h"

#include <string.h>

#define HALTED 1u           // the state of a CPU in HLT: default_idle_call()
#define RESUMED UINT32_MAX  // PWR_EVENT_EXIT
#define FAULT_BY_PROGRAM 4u // in its error code: Intel SDM vol. 3, 4.7
#define TYPE(point) (1ull << TRACE_##point)

// --- values -----------------------------------------------------------------

#define VALUE(name, point, field)                     \
    static uint32_t name(const struct trace_event *e) \
    {                                                 \
        struct trace_##point p;                       \
        memcpy(&p, e->fields, sizeof(p));             \
        return p.field;                               \
    }                                                 \
    _Static_assert(sizeof(struct trace_##point) <= TRACE_FIELDS_MAX, "room")

VALUE(prev, sched_switch, prev);
VALUE(prev_state, sched_switch, state);
VALUE(next, sched_switch, next);
VALUE(woken, sched_wake, thread);
VALUE(target_cpu, sched_wake, cpu);
VALUE(migrated, sched_migrate, thread);
VALUE(orig_cpu, sched_migrate, from);
VALUE(dest_cpu, sched_migrate, to);
VALUE(new_task, task_fork, child);
VALUE(new_thread, task_thread, thread);
VALUE(execing, task_exec, task);
VALUE(ended, task_exit, task);
VALUE(status, task_exit, status);
VALUE(called, syscall_enter, call);
VALUE(returned, syscall_exit, call);
VALUE(result, syscall_exit, result);
VALUE(entered, irq_enter, vector);
VALUE(left, irq_exit, vector);
VALUE(address, page_fault, address);
VALUE(error_code, page_fault, error);
VALUE(sent, signal_send, signal);
VALUE(to_task, signal_send, task);
VALUE(to_thread, signal_send, thread);
VALUE(taken, signal_deliver, signal);
VALUE(handler, signal_deliver, handler);

// Of a call of a function: the words that it has.
static uint32_t function(const struct trace_event *e)
{
    uint32_t words[2];

    memcpy(words, e->fields, sizeof(words));
    return words[0];
}

static uint32_t caller(const struct trace_event *e)
{
    uint32_t words[2];

    memcpy(words, e->fields, sizeof(words));
    return words[1];
}

static uint32_t no_priority(const struct trace_event *e)
{
    (void)e;
    return 0;
}

static uint32_t running(const struct trace_event *e)
{
    return e->thread;
}

static uint32_t cpu(const struct trace_event *e)
{
    return e->cpu;
}

// Linux's bits of a thread's state, for those of the kernel. (TASK_REPORT in
// its include/linux/sched.h.) A thread that could go on is runnable.
static uint32_t linux_state(const struct trace_event *e)
{
    static const uint8_t bits[] = { 0, 0, 2, 1, 4, 16 };
    uint32_t state = prev_state(e);

    return state < sizeof(bits) ? bits[state] : 0;
}

static uint32_t child(const struct trace_event *e)
{
    return e->type == TRACE_task_thread ? new_thread(e) : new_task(e);
}

static uint32_t target(const struct trace_event *e)
{
    return to_thread(e) ? to_thread(e) : to_task(e);
}

static uint32_t is_for_group(const struct trace_event *e)
{
    return !to_thread(e);
}

static uint32_t idle_state(const struct trace_event *e)
{
    return e->type == TRACE_cpu_halt ? HALTED : RESUMED;
}

static bool is_by_program(const struct trace_event *e)
{
    return error_code(e) & FAULT_BY_PROGRAM;
}

static bool is_by_kernel(const struct trace_event *e)
{
    return !is_by_program(e);
}

// --- fields -----------------------------------------------------------------

#define INT(declaration, value)                    \
    {                                              \
        declaration, sizeof(uint32_t), true, value \
    }
#define UNSIGNED(declaration, value)                \
    {                                               \
        declaration, sizeof(uint32_t), false, value \
    }
#define COMM(name, thread)                                \
    {                                                     \
        "char " name "[16]", DAT_COMM_BYTES, true, thread \
    }
#define FIELDS(name, ...)                             \
    static const struct dat_field name##_fields[] = { \
        __VA_ARGS__,                                  \
        { 0 },                                        \
    }

FIELDS(switch, COMM("prev_comm", prev), INT("pid_t prev_pid", prev),
       INT("int prev_prio", no_priority), INT("long prev_state", linux_state),
       COMM("next_comm", next), INT("pid_t next_pid", next),
       INT("int next_prio", no_priority));
FIELDS(wakeup, COMM("comm", woken), INT("pid_t pid", woken),
       INT("int prio", no_priority), INT("int target_cpu", target_cpu));
FIELDS(migrate, COMM("comm", migrated), INT("pid_t pid", migrated),
       INT("int prio", no_priority), INT("int orig_cpu", orig_cpu),
       INT("int dest_cpu", dest_cpu));
FIELDS(fork, COMM("parent_comm", running), INT("pid_t parent_pid", running),
       COMM("child_comm", child), INT("pid_t child_pid", child));
FIELDS(exec, INT("pid_t pid", execing), INT("pid_t old_pid", running));
FIELDS(end, COMM("comm", ended), INT("pid_t pid", ended),
       INT("int prio", no_priority), INT("int status", status));
FIELDS(enter, INT("long id", called));
FIELDS(exit, INT("long id", returned), INT("long ret", result));
FIELDS(irq_enter, INT("int irq", entered));
FIELDS(irq_exit, INT("int irq", left));
FIELDS(fault, UNSIGNED("unsigned long address", address),
       UNSIGNED("unsigned long error_code", error_code));
FIELDS(generate, INT("int sig", sent), COMM("comm", target),
       INT("pid_t pid", target), INT("int group", is_for_group));
FIELDS(deliver, INT("int sig", taken),
       UNSIGNED("unsigned long sa_handler", handler));
FIELDS(idle, UNSIGNED("u32 state", idle_state), UNSIGNED("u32 cpu_id", cpu));

FIELDS(function, UNSIGNED("unsigned long ip", function),
       UNSIGNED("unsigned long parent_ip", caller));

static const char fault_print[] =
    "\"address=0x%lx error_code=0x%lx\", REC->address, REC->error_code";

// --- events -----------------------------------------------------------------

const struct dat_linux_event dat_linux_events[] = {
    { .system = "exceptions",
      .name = "page_fault_user",
      .types = TYPE(page_fault),
      .is = is_by_program,
      .fields = fault_fields,
      .print = fault_print },
    { .system = "exceptions",
      .name = "page_fault_kernel",
      .types = TYPE(page_fault),
      .is = is_by_kernel,
      .fields = fault_fields,
      .print = fault_print },
    // Names are those of the file's section of functions.
    { .system = "ftrace",
      .name = "function",
      .types = 1ull << TRACE_R_CALL,
      .fields = function_fields,
      .print = "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip" },
    { .system = "irq",
      .name = "irq_handler_entry",
      .types = TYPE(irq_enter),
      .fields = irq_enter_fields,
      .print = "\"irq=%d\", REC->irq" },
    { .system = "irq",
      .name = "irq_handler_exit",
      .types = TYPE(irq_exit),
      .fields = irq_exit_fields,
      .print = "\"irq=%d\", REC->irq" },
    { .system = "power",
      .name = "cpu_idle",
      .types = TYPE(cpu_halt) | TYPE(cpu_resume),
      .fields = idle_fields,
      .print = "\"state=%lu cpu_id=%lu\", REC->state, REC->cpu_id" },
    { .system = "raw_syscalls",
      .name = "sys_enter",
      .types = TYPE(syscall_enter),
      .fields = enter_fields,
      .print = "\"NR %ld (%s)\", REC->id",
      .names_call = true },
    { .system = "raw_syscalls",
      .name = "sys_exit",
      .types = TYPE(syscall_exit),
      .fields = exit_fields,
      .print = "\"NR %ld = %ld (%s)\", REC->id, REC->ret",
      .names_call = true },
    { .system = "sched",
      .name = "sched_switch",
      .types = TYPE(sched_switch),
      .fields = switch_fields,
      .print = "\"prev_comm=%s prev_pid=%d prev_state=%s ==> next_comm=%s "
               "next_pid=%d\", REC->prev_comm, REC->prev_pid, "
               "__print_symbolic(REC->prev_state, { 0, \"R\" }, { 1, \"S\" }, "
               "{ 2, \"D\" }, { 4, \"T\" }, { 16, \"X\" }), REC->next_comm, "
               "REC->next_pid" },
    { .system = "sched",
      .name = "sched_wakeup",
      .types = TYPE(sched_wake),
      .fields = wakeup_fields,
      .print = "\"comm=%s pid=%d target_cpu=%03d\", REC->comm, REC->pid, "
               "REC->target_cpu" },
    { .system = "sched",
      .name = "sched_migrate_task",
      .types = TYPE(sched_migrate),
      .fields = migrate_fields,
      .print = "\"comm=%s pid=%d orig_cpu=%d dest_cpu=%d\", REC->comm, "
               "REC->pid, REC->orig_cpu, REC->dest_cpu" },
    { .system = "sched",
      .name = "sched_process_fork",
      .types = TYPE(task_fork) | TYPE(task_thread),
      .fields = fork_fields,
      .print = "\"comm=%s pid=%d child_comm=%s child_pid=%d\", "
               "REC->parent_comm, REC->parent_pid, REC->child_comm, "
               "REC->child_pid" },
    { .system = "sched",
      .name = "sched_process_exec",
      .types = TYPE(task_exec),
      .fields = exec_fields,
      .print = "\"pid=%d old_pid=%d\", REC->pid, REC->old_pid" },
    { .system = "sched",
      .name = "sched_process_exit",
      .types = TYPE(task_exit),
      .fields = end_fields,
      .print = "\"comm=%s pid=%d status=%d\", REC->comm, REC->pid, "
               "REC->status" },
    { .system = "signal",
      .name = "signal_generate",
      .types = TYPE(signal_send),
      .fields = generate_fields,
      .print = "\"sig=%d comm=%s pid=%d grp=%d\", REC->sig, REC->comm, "
               "REC->pid, REC->group" },
    { .system = "signal",
      .name = "signal_deliver",
      .types = TYPE(signal_deliver),
      .fields = deliver_fields,
      .print = "\"sig=%d sa_handler=%lx\", REC->sig, REC->sa_handler" },
    { 0 },
};

bool dat_type_is_linux(uint32_t type)
{
    const struct dat_linux_event *l = dat_linux_events;

    while (l->name && !(l->types >> type & 1))
        l++;
    return l->name;
}

const struct dat_linux_event *dat_linux_event(const struct trace_event *e)
{
    for (const struct dat_linux_event *l = dat_linux_events; l->name; l++) {
        if (l->types >> e->type & 1 && (!l->is || l->is(e)))
            return l;
    }
    return NULL;
}
