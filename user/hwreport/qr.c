// QR codes of text, in the block characters of a terminal: two rows of squares
// a line. On a dark screen the light squares are drawn, with the margin that
// readers need (ISO/IEC 18004, 6.3.8: four squares).
#include "hwreport.h"

#include <qrencode.h>

#define MARGIN 4

static bool is_light(const QRcode *code, int x, int y)
{
    if (x < 0 || y < 0 || x >= code->width || y >= code->width)
        return true;
    return !(code->data[y * code->width + x] & 1);
}

bool print_qr(FILE *out, const char *text)
{
    static const char *const blocks[2][2] = {
        // upper, lower
        { " ", "\u2584" },
        { "\u2580", "\u2588" },
    };
    QRcode *code = QRcode_encodeString(text, 0, QR_ECLEVEL_L, QR_MODE_8, true);
    if (!code)
        return false;
    int end = code->width + MARGIN;
    for (int y = -MARGIN; y < end; y += 2) {
        for (int x = -MARGIN; x < end; x++) {
            bool lower = y + 1 < end && is_light(code, x, y + 1);
            fputs(blocks[is_light(code, x, y)][lower], out);
        }
        fputc('\n', out);
    }
    QRcode_free(code);
    return true;
}
