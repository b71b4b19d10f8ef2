// Hostile peers of a transfer, and random bytes on the line.
// link: user/libtransfer/frame.c user/libtransfer/sender.c
// link: user/libtransfer/receiver.c user/libtransfer/store.c
#include "transfer_line.h"

#include <sys/stat.h>

// Announces a file of one byte and sends it, as `name`.
static void smuggle(const char *name, size_t length)
{
    u8 frame[FRAME_MAX], payload[FRAME_PAYLOAD_MAX];
    size_t size = BEGIN_NAME + length;
    u32 id;

    frame_put_number(payload, 1, 8);
    frame_put_number(payload + BEGIN_CRC, crc32(0, "x", 1), 4);
    memcpy(payload + BEGIN_NAME, name, length);
    id = crc32(0, payload, size);
    frame_feed(&at_receiver, frame,
               frame_encode(frame, TRANSFER_BEGIN, payload, size),
               receiver_take, &receiver);
    frame_put_number(payload, id, ID_SIZE);
    frame_put_number(payload + DATA_OFFSET, 0, 8);
    payload[DATA_BYTES] = 'x';
    frame_feed(&at_receiver, frame,
               frame_encode(frame, TRANSFER_DATA, payload, DATA_BYTES + 1),
               receiver_take, &receiver);
    frame_feed(&at_receiver, frame,
               frame_encode(frame, TRANSFER_END, payload, ID_SIZE),
               receiver_take, &receiver);
}

static void names_do_not_leave_the_folder(void **state UNUSED)
{
    static const char *const bad[] = {
        "",  "/etc/x",  "../x", "a/../../x", "..",
        ".", ".hidden", "a/b",  "x\n",       "\033[2J",
    };
    static char long_name[TRANSFER_NAME_MAX + 2];
    char inner[64];
    int outer = folder;

    memset(long_name, 'n', sizeof(long_name) - 1);
    set_line(0);
    empty_folder();
    assert_int_equal(mkdirat(outer, "inner", 0755), 0);
    snprintf(inner, sizeof(inner), "%s/inner", folder_name);
    folder = open(inner, O_RDONLY | O_DIRECTORY);
    start_receiver();
    for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
        smuggle(bad[i], strlen(bad[i]));
    smuggle("nul\0nul", 7);
    smuggle(long_name, strlen(long_name));
    assert_int_equal(empty_folder(), 0);
    smuggle("good", 4);
    smuggle(long_name, TRANSFER_NAME_MAX);
    assert_int_equal(empty_folder(), 2);
    store_close(&receiver.store);
    close(folder);
    folder = outer;
    assert_int_equal(unlinkat(outer, "inner", AT_REMOVEDIR), 0);
    assert_int_equal(empty_folder(), 0);
}

static void links_are_not_followed(void **state UNUSED)
{
    set_line(0);
    empty_folder();
    start_receiver();
    assert_int_equal(symlinkat("/dev/null", folder, "good"), 0);
    smuggle("good", 4);
    assert_int_equal(faccessat(folder, "good.2", F_OK, 0), 0);
    assert_int_equal(empty_folder(), 2);
}

// Sends a frame of correct checksum and random contents to either side. `id`:
// the file it refers to; 0: random.
static void put_nonsense(u32 id)
{
    static const char types[] = "bsdaekwxHZ";
    u8 payload[64], frame[FRAME_MAX];
    size_t length = random_below(sizeof(payload));

    for (size_t i = 0; i < length; i++)
        payload[i] = random_below(4) ? (u8)random_u64() : 0;
    if (id != 0 && length >= ID_SIZE)
        frame_put_number(payload, id, ID_SIZE);
    put(random_below(2) ? &to_receiver : &to_sender, frame,
        frame_encode(frame, types[random_below(sizeof(types) - 1)], payload,
                     length));
}

// Frames that are not about the file are ignored: the transfer succeeds.
static void nonsense_does_no_harm(void **state UNUSED)
{
    for (u32 round = 0; round < 30; round++) {
        size_t size = random_below(FILE_MAX);
        int fd = begin(size, 0);

        for (u32 i = 0; i < 300; i++) {
            put_nonsense(0);
            step();
        }
        run_to_the_end();
        assert_int_equal(sender.state, SENDER_DONE);
        assert_arrived("data", size);
        close(fd);
    }
}

// A file that somebody announces in between makes the receiver forget the one
// that it has received whole: it is announced anew, without its data.
static void announcements_in_between_do_no_harm(void **state UNUSED)
{
    static const u8 payload[BEGIN_NAME];
    const struct frame nameless = { TRANSFER_BEGIN, payload, sizeof(payload) };
    int fd = begin(FILE_MAX, 0);

    for (u32 i = 0; i < 10; i++) {
        while (sender.state != SENDER_ENDS) {
            assert_int_not_equal(sender.state, SENDER_FAILED);
            step();
        }
        receiver_take(&receiver, &nameless);
        while (sender.state == SENDER_ENDS)
            step();
    }
    run_to_the_end();
    assert_int_equal(sender.state, SENDER_DONE);
    assert_arrived("data", FILE_MAX);
    close(fd);
}

// False frames about the file can end its transfer, and do nothing worse.
static void lies_end_a_transfer_at_worst(void **state UNUSED)
{
    for (u32 round = 0; round < 30; round++) {
        int fd = begin(random_below(FILE_MAX), 0);

        for (u32 i = 0; i < 300; i++) {
            put_nonsense(sender.id);
            step();
        }
        if (sender.state == SENDER_FAILED)
            assert_true(strlen(sender.problem) <= TRANSFER_TEXT_MAX);
        close(fd);
    }
}

static void count_frame(void *to, const struct frame *f)
{
    u32 *count = to;

    assert_true(f->size <= FRAME_PAYLOAD_MAX);
    ++*count;
}

// The start of a long frame delays other frames only until the line is silent.
static void frames_are_found_again(void **state UNUSED)
{
    u8 frame[FRAME_MAX];
    size_t size = frame_encode(frame, 'a', "hello", 5);
    struct frame_reader r = { 0 };
    u32 count = 0;

    frame_feed(&r, "\xf5S?\xff\x0f", 5, count_frame, &count);
    frame_feed(&r, frame, size, count_frame, &count);
    frame_feed(&r, "\xf5", 1, count_frame, &count);
    frame_feed(&r, frame, size - 1, count_frame, &count);
    assert_int_equal(count, 0);
    frame_idle(&r, count_frame, &count);
    assert_int_equal(count, 1);
    for (u32 i = 0; i < 300000; i++) {
        u8 byte = random_below(3) ? (u8)random_u64() : "\xf5S"[i & 1];
        frame_feed(&r, &byte, 1, count_frame, &count);
    }
    frame_idle(&r, count_frame, &count);
    frame_feed(&r, frame, size, count_frame, &count);
    assert_true(count >= 2);
}

static void checksums(void **state UNUSED)
{
    assert_int_equal(crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(crc32(crc32(0, "1234", 4), "56789", 5), 0xcbf43926);
    assert_int_equal(crc32(0, "", 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums),
        cmocka_unit_test(frames_are_found_again),
        cmocka_unit_test(names_do_not_leave_the_folder),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(nonsense_does_no_harm),
        cmocka_unit_test(announcements_in_between_do_no_harm),
        cmocka_unit_test(lies_end_a_transfer_at_worst),
    };

    random_init();
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
