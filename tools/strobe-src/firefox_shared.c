// Tables shared by all threads of a Firefox profile: libraries and strings
// (firefox_tables.h).
#include "firefox_tables.h"

#include <string.h>

#define GUID_BYTES 16u

// Breakpad's id of a file: a GUID, and an age of 0. The GUID is the first 16
// bytes of the build id; its first three fields are little-endian numbers.
static void put_breakpad_id(FILE *out, const struct image *m)
{
    static const uint8_t order[GUID_BYTES] = { 3, 2, 1,  0,  5,  4,  7,  6,
                                               8, 9, 10, 11, 12, 13, 14, 15 };
    uint8_t id[GUID_BYTES] = { 0 };

    memcpy(id, m->build_id, MIN(m->build_id_size, GUID_BYTES));
    for (uint32_t i = 0; i < GUID_BYTES; i++)
        fprintf(out, "%02X", id[order[i]]);
    fputc('0', out);
}

static void put_text(FILE *out, const char *key, const char *text)
{
    fprintf(out, "\"%s\":", key);
    json_string(out, text, strlen(text));
    fputc(',', out);
}

static void put_lib(FILE *out, const struct image *m)
{
    const char *slash = strrchr(m->path, '/');
    const char *name = slash != NULL ? slash + 1 : m->path;
    char id[BUILD_ID_TEXT];

    fputs("{\"arch\":\"x86\",", out);
    put_text(out, "name", name);
    put_text(out, "path", m->path);
    put_text(out, "debugName", name);
    put_text(out, "debugPath", m->path);
    fputs("\"breakpadId\":\"", out);
    put_breakpad_id(out, m);
    if (m->build_id_size > 0)
        fprintf(out, "\",\"codeId\":\"%s\"}",
                build_id_text(id, m->build_id, m->build_id_size));
    else
        fputs("\",\"codeId\":null}", out);
}

void firefox_shared_write(struct firefox_tables *t, FILE *out)
{
    fputs(",\n\"libs\":[", out);
    for (uint32_t i = 0; i < t->libs.count; i++) {
        fputs(i > 0 ? ",\n" : "", out);
        put_lib(out, &t->e->profile->samples.images.list[t->libs.keys[i]]);
    }
    fputs("],\n\"shared\":{\"stringArray\":[", out);
    for (uint32_t i = 0; i < t->strings.count; i++) {
        fputs(i > 0 ? "," : "", out);
        json_string(out, t->strings.list[i].text,
                    strlen(t->strings.list[i].text));
    }
    fputs("]}", out);
}
