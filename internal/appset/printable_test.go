package appset

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "web-1.4": "web-1.4", "ünï 界": "ünï 界", "\x1b[31mred": `\x1b[31mred`, "a\nb\t": `a\nb\t`, "\u202eevil": `\u202eevil`, "\xff": `\xff`, "say \"a\"\a": `say "a"\a`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
	if got := PrintableLine("trouble with:\n  \"patch\": x\x1b\n"); got != `trouble with: "patch": x\x1b` {
		t.Error(got)
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-update writes it anew):\n%s", file, d)
	}
}
