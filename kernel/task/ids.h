// Task and thread ids, one number space; private to kernel/sched. All of these
// with tasks_lock held.
#pragma once

#include "lib/types.h"

struct task;
struct thread;

#define ID_HASH_SIZE 256u
#define INIT_ID 1u
#define ID_MAX 4194303u // Linux's PID_MAX_LIMIT: ps makes room for 7 digits

void thread_table_init(void);
// Enters / leaves the tables and the task's thread list.
void thread_attach(struct thread *t, u32 tid);
void thread_detach(struct thread *t);
void thread_set_id(struct thread *t, u32 tid);
bool thread_id_used(u32 tid);
// An id that no thread, task, process group or session has.
u32 id_allocate(void);

void task_table_add(struct task *t, u32 id);
void task_table_remove(struct task *t);
struct task *task_find_locked(u32 id);

// A fresh task like `parent`, with copies or shares of what it has as the clone
// flags say. Not in any table yet. 0, -ENOMEM.
int task_create(struct task *parent, u32 clone_flags, struct task **out);

// Why a task may not have one more thread: -EAGAIN, -ENOMEM or 0.
int task_limits_check(void);
