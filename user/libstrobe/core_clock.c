#include "core_clock.h"

#include <stdarg.h>
#include <string.h>

static void add(char text[CORE_CLOCK_SIZE], const char *format, ...)
{
    size_t used = strlen(text);
    va_list values;

    va_start(values, format);
    vsnprintf(text + used, CORE_CLOCK_SIZE - used, format, values);
    va_end(values);
}

static const char *tsc_kind(uint32_t tsc)
{
    switch (tsc) {
    case STROBE_TSC_FOLLOWS:
        return ", which follows the core's clock";
    case STROBE_TSC_CONSTANT:
    case STROBE_TSC_INVARIANT:
        return ", constant";
    }
    return "";
}

#define RATE_ASSUMED_PPM 500000

const char *core_clock_rate(uint32_t tsc_error_ppm)
{
    static char text[32];

    if (tsc_error_ppm <= STROBE_TSC_KNOWN_PPM)
        return "";
    if (tsc_error_ppm >= RATE_ASSUMED_PPM)
        return ", rate assumed";
    snprintf(text, sizeof(text), ", rate +-%.1f %%", tsc_error_ppm / 1e4);
    return text;
}

static const char *idle_name(uint32_t idle)
{
    switch (idle) {
    case STROBE_IDLE_HLT:
        return "hlt";
    case STROBE_IDLE_MWAIT:
        return "mwait";
    case STROBE_IDLE_POLL:
        return "poll";
    }
    return "";
}

static void add_rates(char text[CORE_CLOCK_SIZE],
                      const struct strobe_core_clock *c)
{
    if (c->reference > 0)
        add(text,
            "; the cores ran at %.2f times their base rate on average "
            "(APERF/MPERF)",
            (double)c->actual / c->reference);
    if (c->base_mhz > 0)
        add(text, "; base %.3f GHz", c->base_mhz / 1e3);
    if (c->max_mhz > c->base_mhz)
        add(text, "%s at most %.3f GHz", c->base_mhz > 0 ? "," : ";",
            c->max_mhz / 1e3);
}

void core_clock_text(char text[CORE_CLOCK_SIZE],
                     const struct strobe_core_clock *c, uint64_t tsc_hz)
{
    text[0] = '\0';
    if (c->tsc == STROBE_TSC_UNKNOWN && c->turbo == STROBE_TURBO_UNKNOWN &&
        c->reference == 0 && c->tsc_error_ppm <= STROBE_TSC_KNOWN_PPM)
        return;
    add(text, "TSC %.3f GHz%s%s", tsc_hz / 1e9,
        core_clock_rate(c->tsc_error_ppm), tsc_kind(c->tsc));
    add_rates(text, c);
    if (c->turbo != STROBE_TURBO_UNKNOWN)
        add(text, "; turbo %s", c->turbo == STROBE_TURBO_ON ? "on" : "off");
    if (c->idle == STROBE_IDLE_HLT)
        add(text, "; idle by HLT (C1)");
    else if (c->idle == STROBE_IDLE_MWAIT)
        add(text, "; idle by MWAIT (C1)");
    else if (c->idle == STROBE_IDLE_POLL)
        add(text, "; idle CPUs run a loop");
}

void core_clock_print(FILE *out, const struct strobe_core_clock *c,
                      uint64_t tsc_hz)
{
    char text[CORE_CLOCK_SIZE];

    core_clock_text(text, c, tsc_hz);
    if (text[0] != '\0')
        fprintf(out, "Clock:   %s\n", text);
}

static const char *tsc_name(uint32_t tsc)
{
    switch (tsc) {
    case STROBE_TSC_FOLLOWS:
        return "follows the core";
    case STROBE_TSC_CONSTANT:
        return "constant";
    case STROBE_TSC_INVARIANT:
        return "invariant";
    }
    return "";
}

static const char *turbo_name(uint32_t turbo)
{
    switch (turbo) {
    case STROBE_TURBO_ON:
        return "on";
    case STROBE_TURBO_OFF:
        return "off";
    }
    return "";
}

void core_clock_print_json(FILE *out, const struct strobe_core_clock *c)
{
    fprintf(out,
            "  \"clock\": {\"tsc\": \"%s\", \"turbo\": \"%s\", \"idle\": "
            "\"%s\", \"base_mhz\": %u, \"max_mhz\": %u, \"error_ppm\": %u, "
            "\"ratio\": ",
            tsc_name(c->tsc), turbo_name(c->turbo), idle_name(c->idle),
            c->base_mhz, c->max_mhz, c->tsc_error_ppm);
    if (c->reference > 0)
        fprintf(out, "%.4f},\n", (double)c->actual / c->reference);
    else
        fputs("null},\n", out);
}
