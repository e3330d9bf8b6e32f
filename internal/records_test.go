package internal_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	// Whatever declares kinds of records is linked.
	_ "github.com/liftlock/liftlock/internal/server"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/store/record"
)

var updateFlag = flag.Bool("update", false, "write internal/store/record/README.md anew")

const recordsPage = "store/record/README.md"

const recordsHeader = `<!-- Generated from the declarations: go test ./internal -run TestRecordsPage -update -->
# Records

The table ` + "`records`" + ` has small values. The package that owns a kind declares it once, with ` + "`record.Declare`" + `
(` + "`internal/store/record`" + `). Nothing else reads or writes the table. A row's key is its kind and its subject. The value is JSON
of the Go type. One that can't be read counts as absent; where a kind is strict, it fails the run that needs it.

A kind goes when its owner drops it. A *settled* one goes when its pull request is merged or closed, a *lasting* one stays.

Each kind below its owner: subject, type, content.
`

// TestRecordsPage holds that internal/store/record/README.md lists every kind of record, and that each says who owns
// it, how long it stays, and what it is.
func TestRecordsPage(t *testing.T) {
	var page strings.Builder
	page.WriteString(recordsHeader)
	kinds := record.List()
	slices.SortStableFunc(kinds, func(a, b record.Declaration) int { return strings.Compare(a.Owner, b.Owner) })
	if len(kinds) < 40 {
		t.Fatalf("only %d kinds are declared", len(kinds))
	}
	for i := range kinds {
		k := &kinds[i]
		if _, err := os.Stat(k.Owner); err != nil {
			t.Errorf("%s is owned by %q, which is no package: %v", k.Name, k.Owner, err)
		}
		if k.Lifetime == "" || !strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s stays %q, and is %q", k.Name, k.Lifetime, k.Doc)
		}
		notes := ""
		if k.Strict {
			notes = ", strict"
		}
		if k.Lifetime != record.UntilDropped {
			notes += fmt.Sprintf(", %s", k.Lifetime)
		}
		if i == 0 || kinds[i-1].Owner != k.Owner {
			fmt.Fprintf(&page, "\n## %s\n\n", k.Owner)
		}
		fmt.Fprintf(&page, "- `%s` (%s, `%s`%s): %s\n", k.Name, k.Subject(), k.Value(), notes, k.Doc)
	}
	if *updateFlag {
		if err := os.WriteFile(recordsPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(recordsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), page.String()); diff != "" {
		t.Errorf("internal/store/record/README.md isn't what is declared; run go test ./internal -run TestRecordsPage -update (-page +declared):\n%s", diff)
	}
}

// TestStoredNames holds that the JSON names of what is stored are the glossary's words, of every
// struct below a record's value.
func TestStoredNames(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, k := range record.List() {
		for _, why := range unknownWords(strings.ReplaceAll(k.Name, "-", "_"), true) {
			t.Errorf("the kind of record %s: %s", k.Name, why)
		}
		checkStoredNames(t, k.Name, k.Value(), seen)
	}
	if len(seen) < 20 {
		t.Fatalf("only %d types were looked at", len(seen))
	}
}

// checkStoredNames walks the types below one.
func checkStoredNames(t *testing.T, of string, typ reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	marshals := typ.Implements(reflect.TypeFor[json.Marshaler]()) || typ == reflect.TypeFor[time.Time]()
	if seen[typ] || marshals {
		return
	}
	seen[typ] = true
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		checkStoredNames(t, of, typ.Elem(), seen)
	case reflect.Struct:
		for i := range typ.NumField() {
			field := typ.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "-" || !field.IsExported() {
				continue
			}
			if name == "" {
				name = field.Name
			}
			for _, why := range unknownWords(name, false) {
				t.Errorf("the record %s has %s.%s: %s", of, typ, field.Name, why)
			}
			checkStoredNames(t, of, field.Type, seen)
		}
	}
}
