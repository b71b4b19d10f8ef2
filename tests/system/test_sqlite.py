"""sqlite from Debian's sources: results equal those of Python's sqlite; locks between
processes, recovery by a killed writer's journal, and a write-ahead log in shared memory
work."""
import functools
import sqlite3

from machine import batch

FILL = """
create table t(id integer primary key, name text, n integer);
with recursive i(x) as (select 1 union all select x + 1 from i where x < 5000)
insert into t select x, 'name' || x, x * 7919 % 1000 from i;
"""
QUESTIONS = """
select count(*), sum(n), min(name), max(name) from t;
select n, count(*) from t group by n order by count(*) desc, n limit 3;
select a.id from t a join t b on a.id = b.n where b.id % 997 = 0 order by 1;
select printf('%.6f', avg(n) * 1.5), upper(name) from t where id < 4;
"""

SCRIPTS = {
    "answers": f"""sqlite3 :memory: "{FILL} {QUESTIONS}" """,
    "profile": f"profile sqlite3 :memory: \"{FILL} select sum(a.n * b.n) "
               "from t a join t b where a.id < 200;\"",
    # Holds the database until another process has failed to lock it.
    "lock": f"""sqlite3 db "{FILL}"
mkfifo go
(echo "begin exclusive; select 'held';"; cat go) | sqlite3 db >held &
until grep -q held held; do :; done
sqlite3 db 'select count(*) from t'; echo "locked out: $?"
echo 'commit;' >go
wait
sqlite3 db 'select count(*) from t'; echo "let in: $?"
""",
    # The killed process has written pages of its transaction, with little cache.
    # It holds its locks until it is dead.
    "journal": f"""sqlite3 db "{FILL}"
mkfifo never
(echo "pragma cache_size = 4; begin; update t set n = -1; select 'dirty';"
 cat never) | sqlite3 db >said &
until grep -q dirty said; do :; done
ls db-journal
kill -9 $(pidof sqlite3)
sqlite3 -cmd ".timeout 50000" db "select sum(n) from t; pragma integrity_check;"
ls db-journal 2>/dev/null || echo rolled back
: >never
""",
    "wal": f"""sqlite3 db "pragma journal_mode = wal; {FILL}"
for i in 1 2 3 4; do
    sqlite3 db "pragma busy_timeout = 50000;
                begin immediate; update t set n = n + 1; commit;" &
done >/dev/null
wait
sqlite3 db "select sum(n) from t; pragma integrity_check;"
""",
}


@functools.lru_cache(maxsize=None)
def results():
    return batch(SCRIPTS)


def lines(name):
    assert results()[name].status == 0, results()[name]
    return results()[name].output.splitlines()


def asked(*questions):
    """Answers of Python's sqlite, as the shell prints them."""
    data = sqlite3.connect(":memory:")
    data.executescript(FILL)
    return ["|".join(map(str, row))
            for question in questions for row in data.execute(question)]


def test_answers():
    assert lines("answers") == asked(*QUESTIONS.split(";")[:-1])


def test_profile_names_its_functions():
    assert "sqlite3VdbeExec" in results()["profile"].output, results()


def test_lock_between_processes():
    locked, *rest = lines("lock")
    # (The status is SQLITE_BUSY, or since 3.53 the shell's for any error.)
    assert locked in ("locked out: 5", "locked out: 1")
    assert rest == ["5000", "let in: 0"]
    assert "database is locked" in results()["lock"].errors


def test_killed_writer_is_rolled_back():
    assert lines("journal") == ["db-journal", *asked("select sum(n) from t"),
                                "ok", "rolled back"]


def test_write_ahead_log():
    total = int(asked("select sum(n) from t")[0]) + 4 * 5000
    assert lines("wal") == ["wal", str(total), "ok"]
