// hwreport [-o FILE]: writes all about the machine into one text.
//
// Each section is printed when it is complete, even if others fail: then it
// says why. The last line is the SHA-256 of all text before it.
#include "hwreport.h"

#include "user/libstrobe/clock_rates.h"
#include "user/libstrobe/options.h"
#include "user/libstrobe/strobe.h"
#include "user/libstrobe/sysinfo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <time.h>
#include <unistd.h>

#define RATES_MS 2000
#define SYSLOG_READ_ALL 3
#define SYSLOG_SIZE_BUFFER 10

static const char *file_name;
static bool no_selftest;

static const struct tool_option options[] = {
    { 'o', "output", "FILE",
      "Write to FILE; the digest, also as QR code, to stdout",
      .text = &file_name },
    { 0, "no-selftest", NULL, "Leave out the section of selftest",
      .flag = &no_selftest },
    { 0 },
};
static const struct tool tool = {
    .usage = "hwreport [OPTIONS]",
    .notes = "Writes all about the machine into one text: CPUs, MSRs, memory "
             "types,\nACPI tables, PCI functions, interrupts, clocks, sample "
             "sources, selftest,\nkernel log. It takes some 10 s. Root sees "
             "all; other users get \"not there:\nwhy\" for some sections. The "
             "last line is the SHA-256 of what is before it:\n"
             "    head -n -1 FILE | sha256sum\n",
    .options = options,
    .no_operands = "hwreport takes no names",
};

static FILE *output;
static struct sha256 digest;

static void put(const char *text, size_t size)
{
    sha256_add(&digest, text, size);
    fwrite(text, 1, size, output);
}

// Prints a section: its title, and what `print` prints of `argument`.
static void section(const char *title, void (*print)(FILE *out, const char *),
                    const char *argument)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        fail(1, "no memory for the section %s", title);
    fprintf(out, "\n=== %s\n", title);
    print(out, argument);
    if (fclose(out) != 0)
        fail(1, "no memory for the section %s", title);
    put(text, size);
    free(text);
    fflush(output);
}

// ---- kinds of sections

static void print_missing(FILE *out, int error)
{
    fprintf(out, "not there: %s\n",
            error == EPERM ? "only root may read it" : strerror(error));
}

static void print_node(FILE *out, const char *path)
{
    int type = sysinfo_get_type(path);
    size_t size, each;
    void *data = type >= 0 ? sysinfo_read(path, &size) : NULL;

    if (!data) {
        print_missing(out, errno);
        return;
    }
    if (SYSINFO_KIND(type) != SYSINFO_DATA) {
        fwrite(data, 1, size, out);
        if (size > 0 && ((char *)data)[size - 1] != '\n')
            fputc('\n', out);
    } else if (sysinfo_record_type(SYSINFO_WHAT(type))) {
        each = sysinfo_record_type(SYSINFO_WHAT(type))->size;
        sysinfo_print(out, SYSINFO_WHAT(type), data, size / each);
    }
    free(data);
}

static void copy(FILE *out, FILE *in)
{
    char buf[4096];
    size_t size;

    while ((size = fread(buf, 1, sizeof(buf), in)) > 0)
        fwrite(buf, 1, size, out);
}

static void print_file(FILE *out, const char *path)
{
    FILE *in = fopen(path, "re");

    if (!in) {
        print_missing(out, errno);
        return;
    }
    copy(out, in);
    fclose(in);
}

static void print_command(FILE *out, const char *line)
{
    FILE *in = popen(line, "re");

    if (!in) {
        print_missing(out, errno);
        return;
    }
    copy(out, in);
    int status = pclose(in);
    fprintf(out, "status %d\n", status < 0 ? status : status >> 8);
}

static void print_log(FILE *out, const char *unused)
{
    int room = klogctl(SYSLOG_SIZE_BUFFER, NULL, 0);
    char *text = room > 0 ? malloc(room) : NULL;
    int size = text ? klogctl(SYSLOG_READ_ALL, text, room) : -1;

    (void)unused;
    if (size < 0)
        print_missing(out, errno);
    else
        fwrite(text, 1, size, out);
    free(text);
}

static void print_rates(FILE *out, const char *unused)
{
    struct clock_rate rates[CLOCK_RATES_MAX];
    int count = clock_rates(rates, RATES_MS, true);

    (void)unused;
    if (count < 0)
        print_missing(out, errno);
    for (int i = 0; i < count; i++)
        fprintf(out, "%-8s %+10.1f ppm by the TSC, +- %.1f%s\n", rates[i].name,
                rates[i].ppm, rates[i].uncertain_ppm,
                rates[i].disputed ? "; no other clock agrees" : "");
}

static void print_processors(FILE *out, const char *unused)
{
    (void)unused;
    print_cpus(out);
}

static void print_head(FILE *out, const char *unused)
{
    time_t now = time(NULL);
    struct tm parts;
    char date[64] = "";

    (void)unused;
    if (gmtime_r(&now, &parts))
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &parts);
    fprintf(out, "date: %s\nuser: %u\nkernel arguments: ", date, getuid());
    print_file(out, "/proc/cmdline");
    print_node(out, "kernel.version");
    print_node(out, "kernel.build_id");
}

// ---- all of them

static const struct {
    const char *title;
    void (*print)(FILE *out, const char *argument);
    const char *argument;
} sections[] = {
    { "Strobe", print_head, NULL },
    { "CPUs", print_processors, NULL },
    { "model-specific registers", print_node, "hardware.msrs" },
    { "memory types: MTRRs, PAT", print_node, "hardware.mtrrs" },
    { "memory map of the loader", print_node, "hardware.memory" },
    { "memory", print_node, "system.physmem" },
    { "ACPI", print_node, "hardware.acpi" },
    { "PCI", print_node, "hardware.pci" },
    { "interrupts: routes", print_node, "hardware.interrupts" },
    { "interrupts: counts", print_file, "/proc/interrupts" },
    { "clocks and timers", print_node, "system.clock" },
    { "clocks against each other", print_rates, NULL },
    { "USB devices", print_node, "system.usb" },
    { "disks", print_node, "system.disks" },
    { "network card", print_node, "system.net" },
    { "sample sources", print_node, "system.profile.sources" },
    { "accounts", print_node, "system.audit" },
    { "errors", print_node, "system.errors" },
    { "selftest", print_command, "selftest 2>&1" },
    { "kernel log", print_log, NULL },
};

static void print_digest(void)
{
    uint8_t bytes[32];
    char text[80] = "SHA-256 ";

    sha256_end(&digest, bytes);
    for (size_t i = 0; i < sizeof(bytes); i++)
        sprintf(text + strlen(text), "%02x", bytes[i]);
    fprintf(output, "%s\n", text);
    if (!file_name)
        return;
    printf("%s: %s\n", file_name, text);
    if (isatty(STDOUT_FILENO) && !print_qr(stdout, text))
        complain("no QR code of it: %s", strerror(errno));
}

int main(int argc, char **argv)
{
    options_parse(&tool, argc, argv);
    output = file_name ? fopen(file_name, "we") : stdout;
    if (!output)
        fail(1, "%s: %s", file_name, strerror(errno));
    sha256_begin(&digest);
    put("Strobe hwreport\n", 16);
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (!no_selftest || sections[i].print != print_command)
            section(sections[i].title, sections[i].print, sections[i].argument);
    }
    put("\n", 1);
    print_digest();
    if (fflush(output) != 0 || ferror(output) ||
        (file_name && fclose(output) != 0))
        fail(1, "writing the report: %s", strerror(errno));
    return sysinfo_finish();
}
