package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestColours holds in which terminals there are colours.
func TestColours(t *testing.T) {
	for name, c := range map[string]struct {
		terminal  bool
		variables map[string]string
		want      bool
	}{
		"a terminal":       {true, map[string]string{"TERM": "xterm"}, true},
		"a file":           {false, map[string]string{"TERM": "xterm"}, false},
		"no colours":       {true, map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false},
		"an empty word":    {true, map[string]string{"TERM": "xterm", "NO_COLOR": ""}, true},
		"a plain terminal": {true, map[string]string{"TERM": "dumb"}, false},
	} {
		if got := showsColours(c.terminal, func(name string) string { return c.variables[name] }); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for _, stream := range []any{&bytes.Buffer{}, nil, &progressStream{to: &bytes.Buffer{}}} {
		if hasColours(stream) {
			t.Errorf("%T has colours", stream)
		}
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer nowhere.Close()
	if onTerminal(nowhere) || onTerminal(&progressStream{to: nowhere}) {
		t.Error("the null device is a terminal")
	}
}

// TestPainting holds what is painted, and that nothing else of a line changes.
func TestPainting(t *testing.T) {
	for _, c := range []struct {
		paint      painter
		line, want string
	}{
		{paintStates, "COMPONENT   DEV     PROD-EU", "<b>COMPONENT   DEV     PROD-EU</>"},
		{paintStates, "web         1.5.0 verified   1.4.2 degraded, 1.5.0 held #14", "web         1.5.0 <g>verified</>   1.4.2 <r>degraded</>, 1.5.0 <y>held</> #14"},
		{paintStates, "failed-jobs 1.0.0 baseline", "failed-jobs 1.0.0 baseline"},
		{paintStates, "6 components in prod: degraded: Degraded for … s", "6 components in prod: <r>degraded</>: Degraded for … s"},
		{paintStates, "! argocd hub: refused", "<r>! argocd hub: refused</>"},
		{paintStates, "verified verified", "<g>verified</> verified"}, // no table has two without more between them
		{paintStates, "", ""},
		{paintDiff, "+++ b/x", "<b>+++ b/x</>"}, {paintDiff, "+ new", "<g>+ new</>"}, {paintDiff, "- old", "<r>- old</>"},
		{paintDiff, "@@ -1 +1 @@", "<c>@@ -1 +1 @@</>"}, {paintDiff, " same", " same"},
		{paintFindings, "ok      this machine: fine", "<g>ok </>     this machine: fine"}, {paintFindings, "FAIL    hub: no", "<r>FAIL </>   hub: no"},
		{paintFindings, "        → do this", "        → do this"},
	} {
		got := c.paint(c.line)
		marks := strings.NewReplacer(bold, "<b>", red, "<r>", green, "<g>", yellow, "<y>", cyan, "<c>", plain, "</>")
		if marks.Replace(got) != c.want {
			t.Errorf("%q is %q, not %q", c.line, marks.Replace(got), c.want)
		}
		if bare := strings.NewReplacer(bold, "", red, "", green, "", yellow, "", cyan, "", plain, "").Replace(got); bare != c.line {
			t.Errorf("%q reads %q", c.line, bare)
		}
	}
	var b strings.Builder
	write := func(w io.Writer) error { _, err := io.WriteString(w, "- a\nb\n"); return err }
	if err := printPainted(&b, true, paintDiff, write); err != nil || b.String() != red+"- a"+plain+"\nb\n" {
		t.Errorf("%v, %q", err, b.String())
	}
	b.Reset()
	if err := printPainted(&b, false, paintDiff, write); err != nil || b.String() != "- a\nb\n" {
		t.Errorf("%v, %q", err, b.String())
	}
	wrong := errors.New("wrong")
	if err := printPainted(&b, true, paintDiff, func(io.Writer) error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("%v", err)
	}
}

// TestProgress holds that progress is said from the second tick on, and gone before anything else is
// printed.
func TestProgress(t *testing.T) {
	tick := make(chan time.Time)
	var terminal bytes.Buffer
	p := startProgress(&terminal, "planning", tick)
	for range 3 {
		tick <- time.Time{}
	}
	out := &progressStream{p, &terminal}
	for _, text := range []string{"done\n", "really\n"} {
		if _, err := io.WriteString(out, text); err != nil {
			t.Fatal(err)
		}
	}
	if want := "\rplanning … 2 s\x1b[K\rplanning … 3 s\x1b[K\r\x1b[Kdone\nreally\n"; terminal.String() != want {
		t.Errorf("%q", terminal.String())
	}
	terminal.Reset()
	p = startProgress(&terminal, "planning", tick)
	tick <- time.Time{}
	p.stop()
	if terminal.Len() > 0 {
		t.Errorf("after a second there is %q", terminal.String())
	}
}
