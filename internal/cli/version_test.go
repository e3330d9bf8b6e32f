package cli

import (
	"strings"
	"testing"
)

func TestPrintBuild(t *testing.T) {
	released := build{Version: "v1.2.3", Commit: "0123456789abcdef0123456789abcdef01234567", Date: "2026-01-02T03:04:05Z", Go: "go1.26.8", Platform: "linux/arm64"}
	for _, c := range []struct {
		name, output string
		b            build
		want         string
	}{
		{"a release", "table", released, `liftlock  v1.2.3
commit    0123456789abcdef0123456789abcdef01234567
date      2026-01-02T03:04:05Z
go        go1.26.8 linux/arm64
`},
		{"as JSON", "json", released, `{
  "version": "v1.2.3",
  "commit": "0123456789abcdef0123456789abcdef01234567",
  "date": "2026-01-02T03:04:05Z",
  "go": "go1.26.8",
  "platform": "linux/arm64"
}
`},
		{"edited", "table", build{Version: "abc", Commit: "abc", Date: "2026-01-02T03:04:05Z", Modified: true, Go: "go1", Platform: "p"}, `liftlock  abc
commit    abc, with edits
date      2026-01-02T03:04:05Z
go        go1 p
`},
		{"nothing known", "table", build{Version: "dev", Go: "go1", Platform: "p"}, `liftlock  dev
commit    not known
date      not known
go        go1 p
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if err := printBuild(&out, c.b, c.output); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("it prints\n%s\nnot\n%s", &out, c.want)
			}
		})
	}
}

// TestCurrentBuild: what the build was given goes before what Go notes.
func TestCurrentBuild(t *testing.T) {
	defer func() { version, commit, date = "", "", "" }()
	version, commit, date = "v1.2.3", "0123456789abcdef", "2026-01-02T03:04:05Z"
	if b := currentBuild(); b.Version != version || b.Commit != commit || b.Date != date || b.Modified {
		t.Errorf("a release build is %+v", b)
	}
	version = ""
	if got := Version(); got != "0123456789ab" {
		t.Errorf("without a version it is %q, not the commit's short form", got)
	}
}
