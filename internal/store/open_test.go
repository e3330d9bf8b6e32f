package store

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func (ts *testStore) file() string { return strings.TrimPrefix(ts.dsn, "sqlite://") }

func TestAddress(t *testing.T) {
	tests := []struct{ name, dsn, want string }{
		{"empty", "", "begins with neither"},
		{"another scheme", "mysql://root:hunter2@host/db", "begins with neither"},
		{"sqlite without a file", "sqlite://", "a file's path"},
		{"sqlite with options", "sqlite:///tmp/x.db?mode=ro", "without options"},
		{"postgres that can't be read", "postgres://user:hunter2@host:port/db", "not a PostgreSQL URL"},
		{"postgres that isn't there", "postgres://user:hunter2@127.0.0.1:1/db?connect_timeout=2", `"db" at 127.0.0.1:1`},
		{"a file where the folder should be", "sqlite:///dev/null/x.db", "/dev/null"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Open(ctx, tt.dsn, Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q in it", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("the error shows the password: %v", err)
			}
		})
	}
}

// A file's name may hold what a URL treats as special.
func TestOddFileName(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, "sqlite://"+filepath.Join(dir, "new folder", "50% é.db"), Options{})
	must(t, s.Wake(ctx, "a"))
	if _, err := os.Stat(filepath.Join(dir, "new folder", "50% é.db")); err != nil {
		t.Fatal(err)
	}
}

// TestFilesAreTheOwnersOnly holds that only the owner reads the database, whatever the files' modes
// were before.
func TestFilesAreTheOwnersOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "liftlock.db")
	files := []string{path, path + "-wal", path + "-shm", path + ".lock"}
	for _, when := range []string{"new", "made with wider modes"} {
		t.Run(when, func(t *testing.T) {
			for _, f := range files {
				if err := os.Chmod(f, 0o666); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			s, err := Open(ctx, "sqlite://"+path, Options{})
			must(t, err)
			defer s.Close()
			must(t, s.Wake(ctx, "a"))
			for _, f := range files {
				info, err := os.Stat(f)
				must(t, err)
				if info.Mode().Perm() != 0o600 {
					t.Errorf("%s has the mode %o", filepath.Base(f), info.Mode().Perm())
				}
			}
			// The files of a killed process are there at the next start.
			for _, f := range files[1:3] {
				data, err := os.ReadFile(f)
				must(t, err)
				t.Cleanup(func() { must(t, os.WriteFile(f, data, 0o666)) })
			}
		})
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	w := onSQLite(t)
	_, err := Open(ctx, w.dsn, Options{})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), w.file()+".lock") {
		t.Fatalf("got %v, want ErrInUse that names the lock", err)
	}
	must(t, w.Wake(ctx, "a"))
	w.reopen()
	w.claim(t, me, "a")
}

// A killed process may leave the lock for a moment to a program that it was starting.
func TestFreedLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "liftlock.db")
	held, err := lockFile(ctx, path+".lock")
	must(t, err)
	time.AfterFunc(50*time.Millisecond, func() { _ = held.Close() }) // whether before or after the first try makes no difference
	mustOpen(t, "sqlite://"+path, Options{})

	gone, cancel := context.WithCancel(ctx)
	cancel()
	start := time.Now()
	if _, err := lockFile(gone, path+".lock"); err == nil || time.Since(start) > lockTimeout {
		t.Errorf("nobody waits any more, and still: %v after %s", err, time.Since(start))
	}
}

// TestSettings holds that the settings by which a commit survives a power failure are on for the
// connection that writes, and that the readers can't write.
func TestSettings(t *testing.T) {
	w := onSQLite(t)
	db := w.backend.(*sqliteDB)
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1"} {
		got := found(queryOne(ctx, plainSession{db: db.conn}, oneColumn[string], "PRAGMA "+pragma))(t)
		assertEqual(t, got, want)
	}
	if _, err := db.readers.Exec(`DELETE FROM records`); err == nil {
		t.Fatal("a reader can write")
	}
}

// TestMemorySettings holds that a database in memory has its own tables, checks what a file
// does, and leaves no journal on the disk.
func TestMemorySettings(t *testing.T) {
	w, other := onMemory(t), onMemory(t)
	for pragma, want := range map[string]string{"synchronous": "0", "journal_mode": "memory", "foreign_keys": "1"} {
		assertEqual(t, found(queryOne(ctx, w.db, oneColumn[string], "PRAGMA "+pragma))(t), want)
	}
	must(t, w.PutRecord(ctx, recordKey("k"), nil))
	absent(other.Record(ctx, recordKey("k")))(t)
}

// A process that is gone holds no key and no slot.
func TestRestartFreesKeysAndSlots(t *testing.T) {
	w := onSQLite(t)
	must(t, w.Wake(ctx, "a", "b"))
	must(t, w.WakeAt(ctx, w.Now().Add(time.Hour), "later"))
	claims := w.claim(t, me, "a", "b")
	must(t, w.Finish(ctx, me, claims[0], Outcome{}))
	if !value(w.TakeSlot(ctx, "slot", me, time.Hour))(t) {
		t.Fatal("the slot was taken")
	}
	w.reopen()
	w.claim(t, "runner-2", claims[1].Key)
	if !value(w.TakeSlot(ctx, "slot", "runner-2", time.Hour))(t) {
		t.Fatal("the slot is still held by a process that is gone")
	}
	if err := w.Finish(ctx, me, claims[1], Outcome{}); !errors.Is(err, ErrLost) {
		t.Fatalf("finish of the old process: %v, want ErrLost", err)
	}
}

// A database that was deleted while nothing ran is a fresh start, also when its
// write-ahead log was left behind.
func TestDeletedDatabaseIsAFreshStart(t *testing.T) {
	for _, tt := range []struct {
		name string
		left bool
	}{{"all of it", false}, {"without its log", true}} {
		t.Run(tt.name, func(t *testing.T) {
			w := onSQLite(t)
			must(t, w.PutRecord(ctx, recordKey("k"), []byte("v")))
			wal, err := os.ReadFile(w.file() + "-wal")
			must(t, err)
			must(t, w.Close())
			must(t, os.Remove(w.file()))
			if tt.left {
				must(t, os.WriteFile(w.file()+"-wal", wal, 0o600))
			}
			w.Store = w.open()
			absent(w.Record(ctx, recordKey("k")))(t)
			must(t, w.PutRecord(ctx, recordKey("k"), []byte("new")))
		})
	}
}

func TestDamagedDatabase(t *testing.T) {
	tests := []struct {
		name   string
		damage func(content []byte) []byte
	}{
		{"not a database", func([]byte) []byte { return []byte(strings.Repeat("no database ", 1000)) }},
		{"cut off", func(c []byte) []byte { return c[:len(c)/2/4096*4096] }},
		{"overwritten inside", func(c []byte) []byte {
			for i := 4096; i < len(c); i++ {
				c[i] ^= 0x5a
			}
			return c
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := onSQLite(t)
			must(t, w.PutRecord(ctx, recordKey("k"), []byte("v")))
			must(t, w.Close())
			content, err := os.ReadFile(w.file())
			must(t, err)
			must(t, os.WriteFile(w.file(), tt.damage(content), 0o600))
			_, err = Open(ctx, w.dsn, Options{})
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), w.file()) {
				t.Fatalf("got %v, want ErrCorrupt that names the file", err)
			}
			must(t, os.Remove(w.file())) // what the message says: and the lock was let go
			w.Store = w.open()
			must(t, w.Wake(ctx, "a"))
		})
	}
}

func TestNewerTables(t *testing.T) {
	onLastingDatabases(t, func(t *testing.T, w *testStore) {
		must(t, w.Close())
		driver, dsn := "sqlite", w.file()
		if _, ok := w.backend.(*postgresDB); ok {
			driver, dsn = "pgx", w.dsn
		}
		db, err := sql.Open(driver, dsn)
		must(t, err)
		mustExec(t, db, `INSERT INTO `+schemaTable+` (version_id, is_applied) VALUES (9999, $1)`, true)
		must(t, db.Close())
		if _, err := Open(ctx, w.dsn, Options{}); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "9999") {
			t.Fatalf("got %v, want ErrNewer with the version", err)
		}
	})
}

func TestReopenKeepsEverything(t *testing.T) {
	onLastingDatabases(t, func(t *testing.T, w *testStore) {
		must(t, w.PutRecord(ctx, recordKey("k"), []byte("v")))
		must(t, w.Wake(ctx, "a"))
		w.reopen()
		found(w.Record(ctx, recordKey("k")))(t)
		w.claim(t, me, "a")
	})
}

func TestClosed(t *testing.T) {
	t.Run("memory", func(t *testing.T) { testClosed(t, onMemory(t)) })
	t.Run("sqlite", func(t *testing.T) { testClosed(t, onSQLite(t)) })
}

func testClosed(t *testing.T, w *testStore) {
	must(t, w.Close())
	must(t, w.Close())
	if err := w.Wake(ctx, "a"); !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v, want ErrClosed", err)
	}
	if _, err := w.Units(ctx, UnitFilter{}); err == nil {
		t.Fatal("a read after Close succeeds")
	}
}

// Full: the caller is told what to do, what was acknowledged is there, and
// writing goes on once there is room, without a restart.
func TestFull(t *testing.T) {
	w := onSQLite(t)
	must(t, w.Close())
	w.open = func() *Store { return mustOpen(t, w.dsn, Options{Now: w.clock.Now, MaxPages: 120}) }
	w.Store = w.open()

	var mu sync.Mutex
	var stored []string
	refused := 0
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 3000 {
				id := strings.Repeat("x", 200) + string(rune('a'+g)) + time.Duration(i).String()
				_, err := w.Accept(ctx, Delivery{Forge: "hub", ID: id, ReceivedAt: w.Now(), Keys: []string{"key:" + id}})
				mu.Lock()
				switch {
				case err == nil:
					stored = append(stored, id)
				case errors.Is(err, ErrFull):
					refused++
				default:
					t.Errorf("got %v, want ErrFull", err)
				}
				enough := refused >= 40
				mu.Unlock()
				if enough {
					return
				}
			}
		})
	}
	wg.Wait()
	if refused == 0 || len(stored) == 0 {
		t.Fatalf("%d stored, %d refused: the test is too small", len(stored), refused)
	}
	w.Advance(time.Second)
	if n := value(w.PruneDeliveries(ctx, w.Now()))(t); n != len(stored) {
		t.Fatalf("%d deliveries are there, %d were accepted", n, len(stored))
	}
	queued := map[string]bool{}
	for {
		claims := value(w.Claim(ctx, me, 1000))(t)
		if len(claims) == 0 {
			break
		}
		for _, c := range claims {
			queued[c.Key] = true
			must(t, w.Finish(ctx, me, c, Outcome{}))
		}
	}
	if len(queued) != len(stored) {
		t.Fatalf("%d keys are queued after %d deliveries", len(queued), len(stored))
	}
	for _, id := range stored {
		if !queued["key:"+id] {
			t.Fatalf("the wake of the delivery %s is lost", id)
		}
	}
	if !value(w.Accept(ctx, Delivery{Forge: "hub", ID: "after", ReceivedAt: w.Now(), Keys: []string{"after"}}))(t) {
		t.Fatal("not fresh")
	}
	w.claim(t, me, "after")
	w.reopen()
	w.claim(t, me, "after")
}

// A disk that is full from the start is named as such.
func TestFullDiskAtOpen(t *testing.T) {
	_, err := Open(ctx, onSQLiteAddress(t), Options{MaxPages: 10})
	if !errors.Is(err, ErrFull) {
		t.Fatalf("got %v, want ErrFull", err)
	}
}

// One transaction that doesn't fit takes itself back, not the store.
func TestFullInsideATransaction(t *testing.T) {
	w := onSQLite(t)
	must(t, w.Close())
	w.open = func() *Store { return mustOpen(t, w.dsn, Options{Now: w.clock.Now, MaxPages: 120}) }
	w.Store = w.open()
	must(t, w.PutRecord(ctx, recordKey("before"), nil))
	err := w.Tx(ctx, "big", func(tx *Tx) error {
		if err := tx.PutRecord(ctx, recordKey("small"), nil); err != nil {
			return err
		}
		return tx.PutRecord(ctx, recordKey("big"), make([]byte, 1<<20))
	})
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "free space") {
		t.Fatalf("got %v, want ErrFull that says what to do", err)
	}
	absent(w.Record(ctx, recordKey("small")))(t)
	found(w.Record(ctx, recordKey("before")))(t)
	must(t, w.PutRecord(ctx, recordKey("after"), nil))
	w.reopen()
	found(w.Record(ctx, recordKey("after")))(t)
}

// TestEndedIsTheContextsEnd holds that a transaction whose caller is gone is no failure of the
// database.
func TestEndedIsTheContextsEnd(t *testing.T) {
	gone, cancel := context.WithCancel(ctx)
	if err := preferContextError(gone, sql.ErrTxDone); errors.Is(err, context.Canceled) || !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("before the end: %v", err)
	}
	cancel()
	if err := preferContextError(gone, sql.ErrTxDone); !errors.Is(err, context.Canceled) || !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("after it: %v", err)
	}
	if err := preferContextError(gone, errors.ErrUnsupported); errors.Is(err, context.Canceled) {
		t.Errorf("another error: %v", err)
	}
}
