// The contents of tmpfs from inside: page trees and files against models.
#include "kernel/base/errno.h"
#include "kernel/fs/pagetree.h"
#include "kernel/fs/path.h"
#include "kernel/mm/heap.h"
#include "lib/string.h"
#include "tests/kernel/fs_helpers.h"
#include "tests/kernel/test.h"

// --- page trees -------------------------------------------------------------

#define TREE_PAGES 300

KERNEL_TEST(fs_pagetree)
{
    static struct frame *model[TREE_PAGES];
    static u32 index[TREE_PAGES];
    static struct frame frames[TREE_PAGES];
    struct pagetree t = { NULL, 0 };
    memset(model, 0, sizeof(model));
    for (u32 i = 0; i < TREE_PAGES; i++) {
        // Ascending: dense, sparse, and at the end of the range.
        index[i] = i < 100 ? i : i < 200 ? i * 977 : ~0u - (TREE_PAGES - i) * 3;
        if (test_random() % 3)
            continue;
        model[i] = &frames[i];
        expect(pagetree_insert(&t, index[i], model[i]) == 0);
    }
    for (u32 i = 0; i < TREE_PAGES; i++)
        expect(pagetree_get(&t, index[i]) == model[i]);
    struct frame *out[7];
    u32 from = test_random() % TREE_PAGES, count, taken = 0, expected = 0;
    for (u32 i = from; i < TREE_PAGES; i++)
        expected += model[i] != NULL;
    do {
        count = pagetree_take(&t, index[from], out, 7);
        taken += count;
    } while (count == 7);
    expect(taken == expected);
    for (u32 i = 0; i < TREE_PAGES; i++)
        expect(pagetree_get(&t, index[i]) == (i < from ? model[i] : NULL));
    while (pagetree_take(&t, 0, out, 7) == 7)
        ;
    expect(!t.root && t.height == 0);
}

// --- contents against a model -----------------------------------------------

#define MODEL_SIZE (6 * PAGE_SIZE)

static void check_contents(struct file *f, const u8 *model, u32 size, u8 *buf)
{
    memset(buf, 0xee, MODEL_SIZE);
    expect(transfer(f, buf, MODEL_SIZE, 0, false) == (int)size);
    expect(memcmp(buf, model, size) == 0);
    expect(f->vnode->size == size);
}

KERNEL_TEST(fs_contents)
{
    u64 frames = file_frames();
    struct file *f = open_file("/tmp/contents");
    u8 *model = kzalloc(MODEL_SIZE), *buf = kmalloc(MODEL_SIZE);
    u32 size = 0;
    for (u32 round = 0; round < 400; round++) {
        u32 pos = test_random() % MODEL_SIZE;
        u32 n = test_random() % (MODEL_SIZE - pos) + 1;
        if (test_random() % 4 == 0) {
            expect(f->vnode->ops->truncate(f->vnode, pos) == 0);
            if (pos < size)
                memset(model + pos, 0, MODEL_SIZE - pos);
            size = pos;
        } else {
            memset(buf, (int)(round & 0xff), n);
            memcpy(model + pos, buf, n);
            expect(transfer(f, buf, n, pos, true) == (int)n);
            size = MAX(size, pos + n);
        }
        check_contents(f, model, size, buf);
        expect(f->vnode->pages <= DIV_ROUND_UP(MODEL_SIZE, PAGE_SIZE));
    }
    struct frame *page;
    expect(f->vnode->ops->get_page(f->vnode, DIV_ROUND_UP(size, PAGE_SIZE),
                                   false, &page) == -EIO);
    expect(vfs_unlink(NULL, "/tmp/contents") == 0);
    check_contents(f, model, size, buf);
    file_unref(f);
    kfree(model);
    kfree(buf);
    expect(file_frames() == frames);
}

// A referenced page outlives the file's truncation.
KERNEL_TEST(fs_page_outlives_file)
{
    struct file *f = open_file("/tmp/page");
    struct frame *page;
    char text[] = "still here";
    expect(transfer(f, text, sizeof(text), 0, true) == sizeof(text));
    expect(f->vnode->ops->get_page(f->vnode, 0, false, &page) == 0);
    expect(f->vnode->ops->truncate(f->vnode, 0) == 0);
    expect(strcmp(frame_va(page), text) == 0);
    expect(frame_refs(page) == 1);
    frame_unref(page);
    expect(vfs_unlink(NULL, "/tmp/page") == 0);
    file_unref(f);
}
