package doctor

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented holds docs/doctor.md to the codes: each is there with its level and its meaning,
// and no other is.
func TestDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^- `([a-z-]+)` (ok|warn|FAIL|unknown): .+$").FindAllStringSubmatch(string(doc), -1)
	documented := map[Code]Level{}
	for _, r := range rows {
		if _, twice := documented[Code(r[1])]; twice {
			t.Errorf("%s is documented twice", r[1])
		}
		documented[Code(r[1])] = Level(strings.ToLower(r[2]))
	}
	for c, l := range levels {
		if documented[c] != l {
			t.Errorf("%s is %s, and documented as %q", c, l, documented[c])
		}
	}
	for c := range documented {
		if levels[c] == "" {
			t.Errorf("%s is documented, and no code", c)
		}
	}
}

// TestLevels: every code that the package's files use has a level, every code is used, and some
// test has it found. Each finding says what to change, which docs/doctor.md leaves to it.
func TestLevels(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	used, tests := map[Code]bool{}, ""
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || f.Name() == "codes.go" {
			continue
		}
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name(), "_test.go") {
			tests += string(text)
			continue
		}
		for _, m := range regexp.MustCompile(`\.add(?:Probe)?\("([a-z-]+)", .*, ""\)`).FindAllStringSubmatch(string(text), -1) {
			t.Errorf("%s: %s says nothing to change", f.Name(), m[1])
		}
		for _, m := range regexp.MustCompile(`(?:\.add\(|\.addProbe\(|Code\(|code = )"([a-z-]+)"`).FindAllStringSubmatch(string(text), -1) {
			used[Code(m[1])] = true
			if levels[Code(m[1])] == "" {
				t.Errorf("%s: %s has no level", f.Name(), m[1])
			}
		}
	}
	for c, l := range levels {
		if l != OK && !used[c] {
			t.Errorf("nothing is found as %s", c)
		}
		if l != OK && !strings.Contains(tests, `"`+string(c)+`"`) {
			t.Errorf("no test finds %s", c)
		}
	}
}

func TestReport(t *testing.T) {
	var f findings
	f.add(CodeHost, "host", "git 2.39", "")
	f.add("hook-off", "webhook of acme/fleet", "it is switched\noff \x1b[31m", "switch it on")
	f.add("forge-unreachable", "forge lab", "no answer in time", "check the network")
	r := &Report{Findings: f}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const want = `ok      host: git 2.39
FAIL    webhook of acme/fleet: it is switched off �[31m [hook-off]
        → switch it on
unknown forge lab: no answer in time [forge-unreachable]
        → check the network

1 ok, 0 warn, 1 FAIL, 1 unknown
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
	document, err := json.Marshal(r.Document())
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Findings []map[string]string
		Counts   map[string]int
	}
	if err := json.Unmarshal(document, &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Findings) != 3 || read.Findings[1]["code"] != "hook-off" || read.Findings[1]["level"] != "fail" || read.Findings[1]["cure"] == "" || read.Counts["unknown"] != 1 || read.Counts["warn"] != 0 {
		t.Errorf("got %s", document)
	}
	for _, c := range []struct {
		findings findings
		code     int
	}{{f, ExitFails}, {f[2:], ExitUnknown}, {f[:1], ExitWell}} {
		if got := (&Report{Findings: c.findings}).ExitCode(); got != c.code {
			t.Errorf("%v exits with %d, want %d", c.findings, got, c.code)
		}
	}
}
