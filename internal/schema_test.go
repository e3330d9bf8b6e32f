package internal_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// tablePattern is a table of a migration, with what stands between its parentheses.
var tablePattern = regexp.MustCompile(`(?ms)^CREATE TABLE (\w+) \(\n(.*?)^\)`)

// columnPattern is a column of a table.
var columnPattern = regexp.MustCompile(`(?m)^    "?([a-z_]+)"? +(?:TEXT|BIGINT|INTEGER|BYTEA|BLOB)\b`)

// readSchema reads the names of an engine's tables, each with those of its columns in their order.
func readSchema(t *testing.T, engine string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("store/migrations", engine, "*.sql"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		t.Fatalf("%s has %d migrations: before the first release the schema is changed where it is declared", engine, len(files))
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string][]string{}
	for _, table := range tablePattern.FindAllStringSubmatch(string(text), -1) {
		for _, column := range columnPattern.FindAllStringSubmatch(table[2], -1) {
			tables[table[1]] = append(tables[table[1]], column[1])
		}
	}
	if n := strings.Count(string(text), "CREATE TABLE"); n != len(tables) {
		t.Fatalf("%s: %d of %d tables were read", files[0], len(tables), n)
	}
	return tables
}

// TestSchema holds that tables and columns have the glossary's words, and that both engines
// have the same ones.
func TestSchema(t *testing.T) {
	sqlite := readSchema(t, "sqlite")
	if postgres := readSchema(t, "postgres"); !reflect.DeepEqual(sqlite, postgres) {
		t.Errorf("SQLite has %v\nPostgreSQL has %v", sqlite, postgres)
	}
	for table, columns := range sqlite {
		for _, why := range unknownWords(table, true) {
			t.Errorf("the table %s: %s", table, why)
		}
		if len(columns) < 2 {
			t.Errorf("of the table %s only %v was read", table, columns)
		}
		for _, column := range columns {
			for _, why := range unknownWords(column, true) {
				t.Errorf("the column %s.%s: %s", table, column, why)
			}
		}
	}
}
