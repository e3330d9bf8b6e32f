// Package storetest gives tests a database.
package storetest

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// postgresEnv names a PostgreSQL database for the tests; every test makes a
// schema of its own there.
const postgresEnv = "LIFTLOCK_TEST_POSTGRES"

var schemas atomic.Int64

// PostgresSchema makes an empty schema, which is dropped with the test's end, and returns
// the address that uses it. Without a database the test is skipped.
func PostgresSchema(t testing.TB) string {
	t.Helper()
	dsn := os.Getenv(postgresEnv)
	if dsn == "" {
		t.Skipf("%s is not set to the URL of a PostgreSQL database", postgresEnv)
	}
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	exec := func(query string) {
		t.Helper()
		if _, err := db.Exec(query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	schema := fmt.Sprintf("liftlock_test_%d_%d", os.Getpid(), schemas.Add(1))
	exec(`DROP SCHEMA IF EXISTS ` + schema + ` CASCADE`)
	exec(`CREATE SCHEMA ` + schema)
	t.Cleanup(func() { exec(`DROP SCHEMA ` + schema + ` CASCADE`) })
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("%s: %v", postgresEnv, err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// Key is a row of the queue.
type Key struct {
	Name    string
	Claims  int64 // so far
	Due     bool
	Running bool
	Failed  bool // its last run did
}

// PostgresKeys lists the queue of the database at dsn, whose tables must be there.
func PostgresKeys(t testing.TB, dsn string) []Key {
	t.Helper()
	var out []Key
	queryRows(t, dsn, `SELECT key, gen, ready_at <= liftlock_now(), owner <> '', fails > 0 FROM wakes`, func(rows *sql.Rows) error {
		var k Key
		err := rows.Scan(&k.Name, &k.Claims, &k.Due, &k.Running, &k.Failed)
		out = append(out, k)
		return err
	})
	return out
}

// PostgresDeliveries lists the identities of the deliveries in the database at dsn.
func PostgresDeliveries(t testing.TB, dsn string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	queryRows(t, dsn, `SELECT id FROM deliveries`, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		out[id] = true
		return err
	})
	return out
}

func queryRows(t testing.TB, dsn, query string, scan func(*sql.Rows) error) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
