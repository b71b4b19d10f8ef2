// A transfer over a line that changes, loses and repeats bytes, breaks, and
// whose ends are started anew; and what hostile ends may say.
// link: user/libtransfer/frame.c user/libtransfer/sender.c
// link: user/libtransfer/receiver.c user/libtransfer/store.c
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/crc32.h"
#include "user/libtransfer/receiver.h"
#include "user/libtransfer/sender.h"

#define QUEUE_SIZE (1 << 20)
#define FILE_MAX 60000
#define TIMEOUTS_MAX 20000 // of one transfer, before it counts as stuck

// ---- the line

// What is under way in one direction. `fault`: one byte in so many is spoilt.
struct way {
    u8 bytes[QUEUE_SIZE];
    size_t used;
    u32 fault;
    bool broken;
};

static struct way to_receiver, to_sender;

static void push(struct way *w, u8 byte)
{
    assert_true(w->used < QUEUE_SIZE);
    w->bytes[w->used++] = byte;
}

static void put(void *line, const u8 *frame, size_t size)
{
    struct way *w = line;

    for (size_t i = 0; i < size && !w->broken; i++) {
        u32 kind = 3;
        if (w->fault != 0 && random_below(w->fault) == 0)
            kind = random_below(3);
        if (kind == 0)
            continue;
        push(w, kind == 1 ? frame[i] ^ (u8)(1u << random_below(8)) : frame[i]);
        if (kind == 2)
            push(w, frame[i]);
    }
}

// Brings some of what is under way to its end. Returns false if there is none.
static bool deliver(struct way *w, struct frame_reader *r,
                    void (*take)(void *to, const struct frame *f), void *to)
{
    static u8 piece[QUEUE_SIZE];
    size_t count = MIN(w->used, (size_t)1 + random_below(3000));

    if (count == 0)
        return false;
    memcpy(piece, w->bytes, count);
    w->used -= count;
    memmove(w->bytes, w->bytes + count, w->used);
    frame_feed(r, piece, count, take, to);
    return true;
}

// ---- the two ends

static int folder;
static char folder_name[] = "/tmp/strobe-transfer-XXXXXX";
static struct sender sender;
static struct receiver receiver;
static struct frame_reader at_sender, at_receiver;
static u8 content[FILE_MAX];

static void start_sender(int file)
{
    sender = (struct sender){ .put = put, .line = &to_receiver, .file = file };
    at_sender.used = 0;
    assert_int_equal(sender_start(&sender, "data"), 0);
}

static void start_receiver(void)
{
    store_close(&receiver.store);
    receiver = (struct receiver){
        .put = put,
        .line = &to_sender,
        .store = { .directory = folder, .part = -1 },
    };
    at_receiver.used = 0;
}

static int make_file(size_t size)
{
    FILE *file = tmpfile();
    int fd;

    for (size_t i = 0; i < size; i++)
        content[i] = (u8)random_u64();
    assert_non_null(file);
    fd = dup(fileno(file));
    fclose(file);
    assert_int_equal(write(fd, content, size), size);
    return fd;
}

static u32 empty_folder(void)
{
    DIR *d = fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY));
    struct dirent *e;
    u32 found = 0;

    while ((e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        unlinkat(folder, e->d_name, 0);
        found++;
    }
    closedir(d);
    return found;
}

static void assert_arrived(const char *name, size_t size)
{
    static u8 got[FILE_MAX + 1];
    int fd = openat(folder, name, O_RDONLY);

    assert_true(fd >= 0);
    assert_int_equal(read(fd, got, sizeof(got)), size);
    assert_memory_equal(got, content, size);
    close(fd);
}

// One thing that happens: bytes arrive, or nobody says anything for a while.
// Returns whether it was silence.
static bool step(void)
{
    bool moved = deliver(&to_receiver, &at_receiver, receiver_take, &receiver);

    moved |= deliver(&to_sender, &at_sender, sender_take, &sender);
    if (moved)
        return false;
    frame_idle(&at_receiver, receiver_take, &receiver);
    frame_idle(&at_sender, sender_take, &sender);
    if (to_receiver.used == 0 && to_sender.used == 0)
        sender_timeout(&sender);
    return true;
}

static u32 run_to_the_end(void)
{
    u32 silent = 0;

    while (sender.state != SENDER_DONE && sender.state != SENDER_FAILED) {
        silent += step();
        assert_true(silent < TIMEOUTS_MAX);
    }
    return silent;
}

static void set_line(u32 fault)
{
    to_receiver = (struct way){ .fault = fault };
    to_sender = (struct way){ .fault = fault };
}

static int begin(size_t size, u32 fault)
{
    int fd = make_file(size);

    set_line(fault);
    empty_folder();
    start_receiver();
    start_sender(fd);
    return fd;
}

// ---- lines

static void every_size_arrives(void **state UNUSED)
{
    static const size_t sizes[] = { 0,    1,    1023,  1024,
                                    1025, 8192, 10000, FILE_MAX };

    for (u32 i = 0; i < ARRAY_SIZE(sizes); i++) {
        int fd = begin(sizes[i], 0);

        assert_int_equal(run_to_the_end(), 0);
        assert_int_equal(sender.state, SENDER_DONE);
        assert_int_equal(sender.frames_again, 0);
        assert_arrived("data", sizes[i]);
        assert_int_equal(empty_folder(), 1);
        close(fd);
    }
}

// From a fault in 20,000 bytes to one in 500, with which every second frame of
// data is spoilt.
static void bad_lines_carry_it(void **state UNUSED)
{
    for (u32 round = 0; round < 40; round++) {
        size_t size = random_below(FILE_MAX);
        int fd = begin(size, 500 + random_below(20000));

        run_to_the_end();
        assert_int_equal(sender.state, SENDER_DONE);
        assert_arrived("data", size);
        assert_int_equal(empty_folder(), 1);
        close(fd);
    }
}

// A lost frame costs what was under way, not a time-out.
static void a_loss_is_noticed_at_once(void **state UNUSED)
{
    int fd = begin(FILE_MAX, 0);
    u32 losses = 0;

    while (sender.state != SENDER_DONE) {
        bool lose = losses < 20 && random_below(3) == 0;

        to_receiver.fault = lose ? 1500 : 0;
        losses += lose;
        // The last frames of a window have no successor that would tell.
        if (sender.size - sender.next < TRANSFER_WINDOW)
            to_receiver.fault = 0;
        step();
    }
    assert_true(sender.frames_again < 20 * 2 * 8);
    assert_arrived("data", FILE_MAX);
    close(fd);
}

static void break_something(int fd)
{
    switch (random_below(4)) {
    case 0:
        start_receiver();
        break;
    case 1:
        start_sender(fd);
        break;
    case 2:
        to_receiver.used = to_sender.used = 0;
        break;
    case 3:
        to_receiver.broken = to_sender.broken = random_below(2);
        break;
    }
}

static void either_end_may_start_anew(void **state UNUSED)
{
    for (u32 round = 0; round < 60; round++) {
        size_t size = random_below(FILE_MAX);
        int fd = begin(size, random_below(2) ? 5000 : 0);

        for (u32 i = 0; i < 200 && sender.state != SENDER_DONE; i++) {
            if (random_below(8) == 0)
                break_something(fd);
            step();
        }
        to_receiver.broken = to_sender.broken = false;
        run_to_the_end();
        assert_int_equal(sender.state, SENDER_DONE);
        assert_arrived("data", size);
        assert_int_equal(empty_folder(), 1);
        close(fd);
    }
}

static void it_goes_on_where_it_was(void **state UNUSED)
{
    int fd = begin(FILE_MAX, 0);
    u64 had;

    while (receiver.received < FILE_MAX / 2)
        step();
    had = receiver.received;
    start_receiver();
    set_line(0);
    start_sender(fd);
    run_to_the_end();
    assert_int_equal(sender.resumed, had);
    assert_arrived("data", FILE_MAX);

    // Sent once more, nothing is sent.
    start_receiver();
    start_sender(fd);
    run_to_the_end();
    assert_int_equal(sender.resumed, FILE_MAX);
    assert_int_equal(empty_folder(), 1);
    close(fd);
}

// ---- files

static void a_wrong_part_is_thrown_away(void **state UNUSED)
{
    int fd = begin(FILE_MAX, 0), part;

    while (receiver.received < FILE_MAX / 2)
        step();
    part = openat(folder, receiver.store.part_name, O_WRONLY);
    assert_int_equal(pwrite(part, "changed", 7, 100), 7);
    close(part);
    start_receiver();
    set_line(0);
    start_sender(fd);
    run_to_the_end();
    assert_int_equal(sender.state, SENDER_DONE);
    assert_arrived("data", FILE_MAX);
    assert_int_equal(empty_folder(), 1);
    close(fd);
}

static void no_file_is_overwritten(void **state UNUSED)
{
    static u8 first[FILE_MAX];
    int fd = begin(1000, 0);

    run_to_the_end();
    memcpy(first, content, 1000);
    close(fd);
    fd = make_file(1000);
    start_sender(fd);
    run_to_the_end();
    assert_arrived("data.2", 1000);
    memcpy(content, first, 1000);
    assert_arrived("data", 1000);
    assert_int_equal(empty_folder(), 2);
    close(fd);
}

static void a_file_that_changes_is_given_up(void **state UNUSED)
{
    int fd = begin(FILE_MAX, 0);

    assert_int_equal(pwrite(fd, "changed", 7, FILE_MAX - 7), 7);
    run_to_the_end();
    assert_int_equal(sender.state, SENDER_FAILED);
    assert_non_null(strstr(sender.problem, "checksum"));

    begin(FILE_MAX, 0);
    fd = sender.file;
    assert_int_equal(ftruncate(fd, 10), 0);
    run_to_the_end();
    assert_int_equal(sender.state, SENDER_FAILED);
    assert_non_null(strstr(sender.problem, "shorter"));
    close(fd);
}

static void a_full_disk_is_told(void **state UNUSED)
{
    int fd = begin(FILE_MAX, 0), full = open("/dev/full", O_WRONLY);

    while (receiver.received == 0)
        step();
    dup2(full, receiver.store.part);
    close(full);
    run_to_the_end();
    assert_int_equal(sender.state, SENDER_FAILED);
    assert_string_equal(sender.problem, "No space left on device");
    close(fd);
}

// ---- hostile ends

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

// A frame of the right checksum and of any contents, to either side. `id` is 0
// or what it shall be about.
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

// What is not about the file is ignored, and the transfer ends well.
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

// Lies about the file may end it, and do nothing worse.
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

// What looks like a long frame holds up others only until the line is silent.
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

static int set_up(void **state UNUSED)
{
    receiver.store.part = -1;
    if (mkdtemp(folder_name) == NULL)
        return -1;
    folder = open(folder_name, O_RDONLY | O_DIRECTORY);
    return folder < 0 ? -1 : 0;
}

static int tear_down(void **state UNUSED)
{
    store_close(&receiver.store);
    empty_folder();
    close(folder);
    return rmdir(folder_name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums),
        cmocka_unit_test(frames_are_found_again),
        cmocka_unit_test(every_size_arrives),
        cmocka_unit_test(bad_lines_carry_it),
        cmocka_unit_test(a_loss_is_noticed_at_once),
        cmocka_unit_test(either_end_may_start_anew),
        cmocka_unit_test(it_goes_on_where_it_was),
        cmocka_unit_test(a_wrong_part_is_thrown_away),
        cmocka_unit_test(no_file_is_overwritten),
        cmocka_unit_test(a_file_that_changes_is_given_up),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(names_do_not_leave_the_folder),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(nonsense_does_no_harm),
        cmocka_unit_test(lies_end_a_transfer_at_worst),
    };

    random_init();
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
