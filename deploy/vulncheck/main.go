// Command vulncheck fails where the released programs link something with a known hole that isn't
// on the list of accepted ones. It also fails where an entry of that list applies no more.
//
// It runs govulncheck. Linked code counts, whether or not it is called. For many entries the
// database knows only the module, and then govulncheck can't say which part of it is called. A
// module of which nothing is linked doesn't count. With -scan symbol it also finds out which
// accepted entries are called, for which govulncheck needs 24 GB of memory and ten minutes.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	scanner = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"
	// database is Go's own, onlineIndex a small part of it.
	database    = "https://vuln.go.dev"
	onlineIndex = database + "/index/db.json"
	// offline is the module that the database is made from, for where it can't be reached but a
	// module proxy can. Take a newer one from time to time: go list -m golang.org/x/vulndb@latest.
	offline = "golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018"
	// reachTimeout is for how long the database may take to answer before it counts as away.
	reachTimeout = 10 * time.Second
)

func main() {
	list := flag.String("allowed", "deploy/vulncheck/allowed.yaml", "the list of what is let be")
	db := flag.String("db", "", "the database's address; empty: Go's own, or else the module that it is made from")
	scan := flag.String("scan", "package", "how far govulncheck looks: package, or symbol: also what is called")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *list, *db, *scan, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, listFile, db, scan string, packages []string) error {
	raw, err := os.ReadFile(listFile)
	if err != nil {
		return fmt.Errorf("read what is let be: %w", err)
	}
	list, err := parseAllowed(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", listFile, err)
	}
	if db == "" {
		if db, err = findDatabase(ctx); err != nil {
			return err
		}
	}
	if len(packages) == 0 {
		packages = []string{"./cmd/..."}
	}
	out, err := output(ctx, append([]string{"run", scanner, "-db", db, "-scan", scan, "-format", "json"}, packages...)...)
	if err != nil {
		return fmt.Errorf("run govulncheck: %w", err)
	}
	report, err := parseReport(bytes.NewReader(out))
	if err != nil {
		return fmt.Errorf("read what govulncheck says: %w", err)
	}
	problems := findProblems(report, list)
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%d problems: upgrade what has a fix; what can't be reached goes to %s with the reason", len(problems), listFile)
	}
	fmt.Printf("vulncheck: %s, by %s: nothing but the %d entries that are let be\n", report.goVersion, db, len(list))
	return nil
}

// output runs the go command and returns what it prints.
func output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	return cmd.Output()
}

// findDatabase is where the database is. It is Go's own where it can be reached, else the folder of
// the module that it is made from, which govulncheck reads as it is.
func findDatabase(ctx context.Context) (string, error) {
	reach, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(reach, http.MethodHead, onlineIndex, nil)
	if err != nil {
		return "", err
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return database, nil
		}
	}
	raw, err := output(ctx, "mod", "download", "-json", offline)
	if err != nil {
		return "", fmt.Errorf("%s can't be reached, nor %s be fetched: %w", database, offline, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(raw, &module); err != nil {
		return "", fmt.Errorf("read where %s is: %w", offline, err)
	}
	return "file://" + filepath.ToSlash(filepath.Join(module.Dir, "data", "osv")), nil
}

// allowed is an entry that is let be.
type allowed struct {
	ID     string `json:"id"`     // GO-2026-1234
	Module string `json:"module"` // that has it
	Reason string `json:"reason"` // why it can't be reached, or does no harm
	Until  string `json:"until"`  // when it is to be reviewed
	// Fixed is the fixed version that the database knew of, which can't be had; empty: none.
	// Where it knows of another one, that can be had perhaps.
	Fixed string `json:"fixed,omitempty"`
	// Called says that the code which has it is called, and does no harm for the reason.
	Called bool `json:"called,omitempty"`
}

// parseAllowed reads the list.
func parseAllowed(raw []byte) ([]allowed, error) {
	var list []allowed
	if err := yaml.UnmarshalStrict(raw, &list); err != nil {
		return nil, fmt.Errorf("read what is let be: %w", err)
	}
	seen := map[string]bool{}
	for i, a := range list {
		for _, field := range []string{a.ID, a.Module, a.Reason, a.Until} {
			if strings.TrimSpace(field) == "" {
				return nil, fmt.Errorf("entry %d (%s): id, module, reason and until are needed", i+1, a.ID)
			}
		}
		if key := a.ID + " " + a.Module; seen[key] {
			return nil, fmt.Errorf("entry %d: %s is there twice", i+1, key)
		} else {
			seen[key] = true
		}
	}
	return list, nil
}

// found is a hole in what is linked.
type found struct {
	id, module, version, fixed, summary string

	called string // what is called that has it, and from where; empty: it is linked in, at least
}

// report is what govulncheck found.
type report struct {
	goVersion string
	found     []found // by ID and module
}

// message is one of govulncheck's, as far as it is read ("Protocol", in the package
// golang.org/x/vuln/internal/govulncheck).
type message struct {
	Config *struct {
		GoVersion string `json:"go_version"`
	} `json:"config"`
	OSV *struct {
		ID      string `json:"id"`
		Summary string `json:"summary"`
	} `json:"osv"`
	Finding *struct {
		OSV   string  `json:"osv"`
		Fixed string  `json:"fixed_version"`
		Trace []frame `json:"trace"`
	} `json:"finding"`
}

// frame is a step from what has the hole, the first one, to the program that calls it.
type frame struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Package  string `json:"package"`
	Function string `json:"function"`
	Receiver string `json:"receiver"`
}

func (f *frame) String() string { return strings.Trim(f.Package+"."+f.Receiver+"."+f.Function, ".") }

// parseReport reads govulncheck's JSON. It is an error where it didn't say that it ran.
func parseReport(r io.Reader) (*report, error) {
	out := &report{}
	at, summaries := map[string]*found{}, map[string]string{}
	for d := json.NewDecoder(r); ; {
		var m message
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		switch {
		case m.Config != nil:
			out.goVersion = m.Config.GoVersion
		case m.OSV != nil:
			summaries[m.OSV.ID] = m.OSV.Summary
		case m.Finding != nil && len(m.Finding.Trace) > 0 && m.Finding.Trace[0].Package != "":
			first, last := m.Finding.Trace[0], m.Finding.Trace[len(m.Finding.Trace)-1]
			key := m.Finding.OSV + " " + first.Module
			if at[key] == nil {
				at[key] = &found{id: m.Finding.OSV, module: first.Module, version: first.Version, fixed: m.Finding.Fixed}
			}
			if first.Function != "" && at[key].called == "" {
				at[key].called = first.String() + ", by " + last.String()
			}
		}
	}
	if out.goVersion == "" {
		return nil, errors.New("it doesn't say which Go it judged by; did it run?")
	}
	for _, f := range at {
		f.summary = summaries[f.id]
		out.found = append(out.found, *f)
	}
	slices.SortFunc(out.found, func(a, b found) int { return strings.Compare(a.id+a.module, b.id+b.module) })
	return out, nil
}

// findProblems lists what is wrong: holes that aren't let be, and entries that apply no more.
func findProblems(r *report, list []allowed) (problems []string) {
	applies := make([]bool, len(list))
	for _, f := range r.found {
		i := slices.IndexFunc(list, func(a allowed) bool { return a.ID == f.id && a.Module == f.module })
		what := fmt.Sprintf("%s in %s %s: %s", f.id, f.module, f.version, f.summary)
		if f.fixed != "" {
			what += "; fixed in " + f.fixed
		}
		switch {
		case f.called != "" && (i < 0 || !list[i].Called):
			problems = append(problems, what+"; it is called: "+f.called)
		case i < 0:
			problems = append(problems, what+"; it is linked in")
		case list[i].Fixed != f.fixed:
			problems = append(problems, fmt.Sprintf("%s; when it was let be the fix was %q: upgrade, or say why not", what, list[i].Fixed))
		}
		if i >= 0 {
			applies[i] = true
		}
	}
	for i, a := range list {
		if !applies[i] {
			problems = append(problems, fmt.Sprintf("%s in %s is let be and isn't linked in any more: take it out of the list",
				a.ID, a.Module))
		}
	}
	return problems
}
