// Replays a corpus without libFuzzer, as a host test: the program fuzz_NAME
// calls its harness with each file of build/corpus/NAME (unpacked from
// tests/fuzz/host/corpus/NAME.tar.xz), in order of names.
#define _FILE_OFFSET_BITS 64 // of ext4's directories, which QEMU passes on
#include "host.h"

#include <dirent.h>
#include <string.h>

#define CORPUS "build/corpus"

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static void replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    REQUIRE(f && !fseek(f, 0, SEEK_END));
    size_t size = (size_t)ftell(f);
    u8 *bytes = malloc(size + !size);
    rewind(f);
    REQUIRE(bytes && fread(bytes, 1, size, f) == size);
    fclose(f);
    printf("# running %s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
}

int main(int argc UNUSED, char **argv)
{
    const char *name = strstr(argv[0], "fuzz_");
    char path[400];
    struct dirent **files;
    REQUIRE(name);
    name += strlen("fuzz_");
    snprintf(path, sizeof(path), CORPUS "/%s", name);
    printf("1..1\n");
    int count = scandir(path, &files, visible, alphasort);
    if (count <= 0) {
        printf("# %s has no inputs\nnot ok 1 - %s\n", path, name);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), CORPUS "/%s/%s", name, files[i]->d_name);
        replay(path);
        free(files[i]);
    }
    free(files);
    printf("ok 1 - corpus_of_%s\n# %d inputs\n", name, count);
    return 0;
}
