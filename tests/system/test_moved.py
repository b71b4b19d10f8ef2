"""A kernel whose image the boot loader has put elsewhere than it is linked for. gdb is the
loader here, so the image and the modules can be anywhere; test_uefi.py and machines.py have
GRUB's."""
import re
import subprocess

from machine import KERNEL, ROOT
from monitor import debugged
from tiers import drawn

TEST_KERNEL = f"{ROOT}/build/kernel-test.elf"
AT, LINKED = 0x2000000, 0x400000
HIDDEN = LINKED + 0x80000  # where the image's addresses hide the memory

# At the entry the image is copied already. What is at its linked address is overwritten by
# INT3, the last module (Multiboot 0.6.96, 3.3), which has the command, is moved there, and
# what was a module is overwritten, too.
LOADER = f"""
hbreak *boot_entry
continue
python
import struct
memory = gdb.selected_inferior()
end = int(gdb.parse_and_eval("(unsigned)&kernel_end")) - 0xc0000000
memory.write_memory({LINKED}, b"\\xcc" * (end - {LINKED}))
info = int(gdb.parse_and_eval("$ebx"))
count, modules = struct.unpack("<II", memory.read_memory(info + 20, 8))
last = modules + 16 * (count - 1)
start, end = struct.unpack("<II", memory.read_memory(last, 8))
memory.write_memory({HIDDEN}, memory.read_memory(start, end - start).tobytes())
memory.write_memory(start, b"\\xcc" * (end - start))
memory.write_memory(last, struct.pack("<II", {HIDDEN}, {HIDDEN} + end - start))
end
set $pc = $pc + {AT - LINKED}
delete
"""
# Patching writes the code by its physical address. Samplers read the vDSO, a part of the
# image, by that of the program's page, to unwind the stacks.
COMMAND = """set -e
sysinfo system.protection | grep both; selftest >/tmp/selftest || cat /tmp/selftest
dd="dd if=/dev/zero of=/dev/null bs=1 count=4000"
trace record -1 -F sys_write -o /tmp/trace $dd 2>&1 | grep -o "trace: .* records"
profile -g -F 10000 --rows 0 $dd | grep "^Chains\\|sys_"
stats --audit >/dev/null; echo balanced"""


def moved(folder, kernel, command, *options):
    subprocess.run(["i686-linux-gnu-objcopy", "-O", "binary", kernel, folder / "image"],
                   check=True)
    copy = f"-device loader,file={folder}/image,addr={AT:#x},force-raw=on"
    gdb, run = debugged(folder, command, f"symbol-file {kernel}{LOADER}", "--kernel", kernel,
                        "--qemu-args", copy, *options, smp=1)
    assert gdb.returncode == 0, gdb
    return run


@drawn
def test_moved(tmp_path):
    """All works there, and a module is read that lies where the image is linked."""
    run = moved(tmp_path, KERNEL, COMMAND)
    assert run.status == 0 and run.output.endswith("balanced\n"), run
    hidden, = re.findall(r"memory: kernel image at 0x2000000, linked for 0x400000: its "
                         r"addresses hide (\d+) KiB\n", run.console)
    assert 1000 < int(hidden) < 4000, run
    assert re.search(r"overlay.cpio: \d+ files, .*, not in the direct map\n", run.console), run
    assert re.search(r"^kernel_both +0 ", run.output, re.MULTILINE), run
    assert "WRONG" not in run.output, run
    assert int(re.search(r"^trace: (\d+) records", run.output, re.MULTILINE)[1]) > 4000, run
    assert re.search(r"^Chains: +0.0% of \d+ not whole$", run.output, re.MULTILINE), run
    for function in "sys_read", "sys_write":
        assert re.search(rf"^ .* {function} \[kernel\]", run.output, re.MULTILINE), run


def test_moved_without_pae(tmp_path):
    run = moved(tmp_path, TEST_KERNEL, "true", "--cpu", "pentium2,-pae", "--kargs",
                "test=arch_image_is_write_or_execute,patch_keeps_pages_write_or_execute")
    assert "# 2 passed, 0 failed, 0 skipped" in run.console, run
