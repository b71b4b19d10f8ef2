// A PC of npm's v86, which tools/vm --machine v86 runs under node:
//
//     node machine.mjs LIBRARY FOLDER
//
// LIBRARY is the package's folder. FOLDER has machine.json, with the options
// of v86 (files by their names), and the pipes of both serial ports:
// console.in, console.out, link.in, link.out; `keys`: C-a x on the console ends
// the machine, as in QEMU. The process ends with QEMU's
// statuses: (value << 1 | 1) when the guest writes to the port of QEMU's
// isa-debug-exit, 0 at a reset.
//
// v86 has no events for a reset or for that port, so this uses its objects
// (`v86.cpu`), whose names have not changed for years: check them when another
// version of the package is taken.
import fs from "node:fs";
import net from "node:net";
import path from "node:path";

const DEBUG_EXIT_PORT = 0xf4;
const [library, folder] = process.argv.slice(2);
const { V86 } = await import(path.join(library, "build/libv86.mjs"));

const file = name => {
    const data = fs.readFileSync(path.join(folder, name));
    return { buffer: data.buffer.slice(data.byteOffset,
                                       data.byteOffset + data.length) };
};

function options() {
    const read = JSON.parse(fs.readFileSync(path.join(folder, "machine.json")));
    for (const name of ["bios", "vga_bios", "cdrom", "multiboot", "initrd"]) {
        if (read[name])
            read[name] = file(read[name]);
    }
    return { ...read, wasm_path: path.join(library, "build/v86.wasm"),
             autostart: false, uart1: true };
}

// The guest's bytes are written at once, so that none is lost at the end.
function connect(machine, number, name, filter = bytes => bytes) {
    const out = fs.openSync(path.join(folder, name + ".out"), "w");
    machine.add_listener(`serial${number}-output-byte`,
                         byte => fs.writeSync(out, Uint8Array.of(byte)));
    const fd = fs.openSync(path.join(folder, name + ".in"), "r");
    new net.Socket({ fd, readable: true, writable: false })
        .on("data", bytes => machine.serial_send_bytes(number, filter(bytes)));
}

const ESCAPE = 1, END = "x".charCodeAt(0);
let escaped = false;

// The keys without the escapes, C-a C-a being one C-a.
function keys(bytes) {
    return bytes.filter(key => {
        if (escaped && key === END)
            process.exit(0);
        escaped = !escaped && key === ESCAPE;
        return !escaped;
    });
}

const settings = options();
const machine = new V86(settings);
machine.add_listener("emulator-ready", () => {
    const cpu = machine.v86.cpu;
    connect(machine, 0, "console", settings.keys ? keys : undefined);
    connect(machine, 1, "link");
    // Only the byte's accesses: v86 starts a Multiboot kernel by a read of 32 bits.
    Object.assign(cpu.io.ports[DEBUG_EXIT_PORT],
                  { read8: () => 0, write8: value => process.exit(value << 1 | 1) });
    cpu.reboot_internal = () => process.exit(0);
    machine.run();
});
