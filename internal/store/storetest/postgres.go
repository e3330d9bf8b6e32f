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
