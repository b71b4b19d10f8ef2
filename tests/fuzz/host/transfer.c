// user/libtransfer: data from the second serial line. An input is a list of
// frames (type, length, payload; the checksum is computed here) and of raw
// bytes. Nothing is written outside the receiver's folder, nor over a file
// there.
// link: user/libtransfer/frame.c user/libtransfer/receiver.c
// link: user/libtransfer/store.c
#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/crc32.h"
#include "user/libtransfer/receiver.h"

#define KEPT "kept"

static char folder[] = "/tmp/strobe-fuzz-XXXXXX";
static int folder_fd = -1;
static struct receiver receiver;
static struct frame_reader reader;

static void put(void *line UNUSED, const u8 *frame, size_t size)
{
    REQUIRE(size >= FRAME_HEAD + FRAME_TAIL && size <= FRAME_MAX);
    REQUIRE(frame_number(frame + size - 4, 4) ==
            crc32(0, frame + 2, size - 2 - FRAME_TAIL));
}

static void remove_folder(void)
{
    rmdir(folder);
}

static void make_folder(void)
{
    REQUIRE(mkdtemp(folder));
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY);
    REQUIRE(folder_fd >= 0);
    atexit(remove_folder);
}

static void keep_file(void)
{
    int fd = openat(folder_fd, KEPT, O_CREAT | O_WRONLY, 0600);
    REQUIRE(fd >= 0 && write(fd, KEPT, 4) == 4);
    close(fd);
}

// Removes all files. Only files exist, and the initial one is unchanged.
static void empty_folder(void)
{
    char bytes[5] = "";
    int fd = openat(folder_fd, KEPT, O_RDONLY);
    REQUIRE(fd >= 0 && read(fd, bytes, 5) == 4 && !memcmp(bytes, KEPT, 4));
    close(fd);
    DIR *d = fdopendir(openat(folder_fd, ".", O_RDONLY | O_DIRECTORY));
    REQUIRE(d);
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        REQUIRE(!fstatat(folder_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW));
        REQUIRE(S_ISREG(st.st_mode) && !unlinkat(folder_fd, e->d_name, 0));
    }
    closedir(d);
}

// The id of the file announced last, which a sender would know.
static u32 last_id;

static size_t make_payload(struct input *in, char type, u8 *payload)
{
    size_t size = MIN((size_t)take_number(in, 2) % 1200, in->left);
    for (size_t i = 0; i < size; i++)
        payload[i] = take_byte(in);
    if (type == TRANSFER_BEGIN)
        last_id = crc32(0, payload, size);
    else if (size >= ID_SIZE && payload[0] == 0)
        frame_put_number(payload, last_id, ID_SIZE);
    return size;
}

static void send_frame(struct input *in)
{
    static const char types[] = "bbddeskax";
    u8 frame[FRAME_MAX], payload[FRAME_PAYLOAD_MAX];
    char type = types[take_byte(in) % (sizeof(types) - 1)];
    size_t size =
        frame_encode(frame, type, payload, make_payload(in, type, payload));
    frame_feed(&reader, frame, size, receiver_take, &receiver);
}

static void step(struct input *in)
{
    u8 what = take_byte(in), byte = take_byte(in);
    if (what < 200)
        send_frame(in);
    else if (what < 240)
        frame_feed(&reader, &byte, 1, receiver_take, &receiver);
    else
        frame_idle(&reader, receiver_take, &receiver);
    REQUIRE(reader.used < sizeof(reader.bytes));
    REQUIRE(receiver.state == RECEIVER_IDLE ||
            receiver.received <= receiver.size);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
    struct input in = { data, size };
    if (folder_fd < 0)
        make_folder();
    keep_file();
    receiver = (struct receiver){
        .put = put,
        .store = { .directory = folder_fd, .part = -1 },
    };
    reader.used = 0;
    while (in.left)
        step(&in);
    store_close(&receiver.store);
    empty_folder();
    return 0;
}
