"""The events of Linux that a trace.dat file of strobe has, and how trace-cmd shows them."""
import collections
import re
import subprocess

NAMES = {
    "sched/switch": "sched/sched_switch", "sched/wake": "sched/sched_wakeup",
    "sched/migrate": "sched/sched_migrate_task", "task/fork": "sched/sched_process_fork",
    "task/thread": "sched/sched_process_fork", "task/exec": "sched/sched_process_exec",
    "task/exit": "sched/sched_process_exit", "syscall/enter": "raw_syscalls/sys_enter",
    "syscall/exit": "raw_syscalls/sys_exit", "irq/enter": "irq/irq_handler_entry",
    "irq/exit": "irq/irq_handler_exit", "page/fault": "exceptions/page_fault",
    "signal/send": "signal/signal_generate", "signal/deliver": "signal/signal_deliver",
    "cpu/halt": "power/cpu_idle", "cpu/resume": "power/cpu_idle"}
# Of an event and its fields in `trace report`: its fields in trace-cmd's.
FIELDS = {
    "sched/migrate": lambda e, f: rf"comm=\S+ pid={f['thread']} orig_cpu={f['from']} "
                                  rf"dest_cpu={f['to']}",
    "task/fork": lambda e, f: rf"comm=\S+ pid={e.thread} child_comm=\S+ child_pid={f['child']}",
    "task/exec": lambda e, f: rf"pid={f['task']} old_pid={e.thread}",
    "task/exit": lambda e, f: rf"comm=\S+ pid={f['task']} status={f['status']}",
    "signal/send": lambda e, f: rf"sig={f['signal']} comm=\S+ pid={f['thread'] or f['task']} "
                                rf"grp={int(not f['thread'])}",
    "signal/deliver": lambda e, f: f"sig={f['signal']} sa_handler={f['handler']:x}",
    "cpu/halt": lambda e, f: f"state=1 cpu_id={e.cpu}",
    "cpu/resume": lambda e, f: f"state={2**32 - 1} cpu_id={e.cpu}"}


def linux_name(event):
    return NAMES.get(event, f"strobe/{event.replace('/', '_')}")


def linux_counts(summary):
    expected = collections.Counter()
    for event, n in summary.events.items():
        if event != "LOST":
            expected[linux_name(event)] += n
    return expected


def trace_cmd(path, *arguments):
    run = subprocess.run(["trace-cmd", "report", *arguments, path], check=True,
                         capture_output=True, text=True)
    assert run.stderr == ""
    return run.stdout


def trace_cmd_lines(path):
    """Each event's CPU, time, name and fields, and the whole report."""
    text = trace_cmd(path, "-t")
    return re.findall(r"^ *\S+-\d+ +\[(\d+)\].*? (\d+\.\d{9}): (\w+): +(.*)$", text,
                      re.MULTILINE), text
