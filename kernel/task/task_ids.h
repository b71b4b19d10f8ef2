// Task and thread ids, which share one number space. All functions with
// tasks_lock held, except thread_table_init, task_create and task_limits_check.
#pragma once

#include "lib/types.h"

struct task;
struct thread;

#define ID_HASH_SIZE 256u
#define INIT_ID 1u
#define ID_MAX 4194303u // Linux's PID_MAX_LIMIT: ps makes room for 7 digits

void thread_table_init(void);
// Adds to / removes from the table and the task's thread list.
void thread_attach(struct thread *t, u32 tid);
void thread_detach(struct thread *t);
void thread_set_id(struct thread *t, u32 tid);
bool thread_id_used(u32 tid);
// Returns an id that no thread, task, process group or session uses.
u32 id_allocate(void);

void task_table_add(struct task *t, u32 id);
void task_table_remove(struct task *t);
struct task *task_find_locked(u32 id);

// Creates a task that copies or shares the resources of `parent`, by the clone
// flags. It is in no table yet. 0, -ENOMEM.
int task_create(struct task *parent, u32 clone_flags, struct task **out);

// Whether the current task may create a thread: 0, -EAGAIN or -ENOMEM.
int task_limits_check(void);
