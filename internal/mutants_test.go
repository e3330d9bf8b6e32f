package internal_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/go/packages"
)

var (
	mutantsFlag     = flag.String("mutants", "", "the package whose code is mutated, to see whether its own tests notice, such as policies")
	mutantsNumber   = flag.Int("mutants.n", 100, "how many mutants")
	mutantsSeedFlag = flag.Uint64("mutants.seed", 1, "which mutants")
)

// mutantMemory is what a mutant may use, in KiB: one that never ends also tends to
// fill the memory.
const mutantMemory = 2 << 20

// fate is what became of a mutant.
type fate int

const (
	uncompiled fate = iota // it is no program
	killed                 // a test failed, or didn't end
	survived               // no test noticed
)

// mutantTester runs a package's own tests with mutated code.
type mutantTester struct {
	pkg     string // its path
	folder  string // where it is, and where its tests run
	scratch string
	timeout time.Duration
	flags   []string
}

// loadPackage reads a package of this module.
func loadPackage(t *testing.T, name string) *packages.Package {
	t.Helper()
	pkgs, err := packages.Load(&packages.Config{
		Context: t.Context(),
		Mode:    packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
	}, module+strings.TrimPrefix(name, "./"))
	if err != nil {
		t.Fatalf("load %s: %v", name, err)
	}
	for _, pkg := range pkgs {
		for _, problem := range pkg.Errors {
			t.Fatalf("load %s: %v", name, problem)
		}
	}
	if len(pkgs) != 1 || len(pkgs[0].Syntax) == 0 {
		t.Fatalf("%s is %d packages, and must be one with code", name, len(pkgs))
	}
	return pkgs[0]
}

func newMutantTester(t *testing.T, pkg *packages.Package) *mutantTester {
	t.Helper()
	m := &mutantTester{pkg: pkg.PkgPath, folder: filepath.Dir(pkg.GoFiles[0]), scratch: t.TempDir(), timeout: 20 * time.Minute}
	imports, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.TestImports}} {{.XTestImports}}", m.pkg).Output()
	if err != nil {
		t.Fatalf("list what the tests of %s import: %v", m.pkg, err)
	}
	if strings.Contains(string(imports), "pgregory.net/rapid") {
		// That a property fails is enough: nobody reads the smallest case.
		m.flags = []string{"-rapid.nofailfile", "-rapid.shrinktime", "0"}
	}
	return m
}

// run plants a mutation and runs the tests.
func (m *mutantTester) run(ctx context.Context, c mutation) (fate, error) {
	dir, err := os.MkdirTemp(m.scratch, "mutant")
	if err != nil {
		return uncompiled, fmt.Errorf("make room for a mutant: %w", err)
	}
	defer os.RemoveAll(dir)
	planted, overlay, binary := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{c.path: planted}})
	if err != nil {
		return uncompiled, fmt.Errorf("write where the mutant is: %w", err)
	}
	if err := errors.Join(os.WriteFile(planted, c.apply(), 0o600), os.WriteFile(overlay, replaced, 0o600)); err != nil {
		return uncompiled, fmt.Errorf("write the mutant: %w", err)
	}
	var failed *exec.ExitError
	if err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, m.pkg).Run(); errors.As(err, &failed) {
		return uncompiled, ctx.Err()
	} else if err != nil {
		return uncompiled, fmt.Errorf("build the mutant: %w", err)
	}
	limited := fmt.Sprintf(`ulimit -d %d; exec "$@"`, mutantMemory)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limited, "mutant", binary, "-test.failfast", "-test.timeout", m.timeout.String()}, m.flags...)...)
	cmd.Dir = m.folder
	cmd.WaitDelay = time.Second
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return uncompiled, ctx.Err()
	case errors.As(err, &failed):
		return killed, nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return uncompiled, fmt.Errorf("run the mutant: %w", err)
	}
	return survived, nil
}

// mutantQueue gives out mutations until so many of them compiled.
type mutantQueue struct {
	mu      sync.Mutex
	changed sync.Cond
	all     []mutation
	wanted  int

	next, running int
	fates         map[fate]int
}

// take is the next mutation; false when enough compiled. The same are given out however
// many are tested at once: what is running is waited for before one more is begun.
func (q *mutantQueue) take() (mutation, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.running > 0 && q.running+q.fates[killed]+q.fates[survived] >= q.wanted {
		q.changed.Wait()
	}
	if q.next == len(q.all) || q.fates[killed]+q.fates[survived] >= q.wanted {
		return mutation{}, false
	}
	q.next++
	q.running++
	return q.all[q.next-1], true
}

func (q *mutantQueue) finish(c mutation, became fate) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	q.fates[became]++
	q.changed.Broadcast()
	if became == survived {
		fmt.Println(c.describe())
	}
}

// describe says where a mutation is and what it changes.
func (c mutation) describe() string {
	path := c.path
	if here, err := os.Getwd(); err == nil {
		if below, err := filepath.Rel(filepath.Dir(here), path); err == nil {
			path = below
		}
	}
	return fmt.Sprintf("%s:%d: %s became %s", path, c.line, c.was, c.becomes)
}

// TestMutants changes comparisons, conditions and results of a package at random, and
// counts how many of the changes its own tests notice. What survives is a rule that no
// test holds, code that nothing needs, or another way to say the same.
func TestMutants(t *testing.T) {
	if *mutantsFlag == "" {
		t.Skip("-mutants says what is to be mutated")
	}
	pkg := loadPackage(t, *mutantsFlag)
	all, err := findMutations(pkg)
	if err != nil {
		t.Fatal(err)
	}
	found := len(all)
	if found == 0 {
		t.Fatalf("nothing in %s can be mutated", pkg.PkgPath)
	}
	rand.New(rand.NewPCG(*mutantsSeedFlag, 0)).Shuffle(found, func(i, k int) { all[i], all[k] = all[k], all[i] })
	m := newMutantTester(t, pkg)
	start := time.Now()
	if became, err := m.run(t.Context(), mutation{path: all[0].path, source: all[0].source}); err != nil || became != survived {
		t.Fatalf("the tests of %s don't pass as the code is: %v", m.pkg, err)
	}
	m.timeout = 10*time.Second + 4*time.Since(start)
	q := &mutantQueue{all: all, wanted: *mutantsNumber, fates: map[fate]int{}}
	q.changed.L = &q.mu
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for c, more := q.take(); more; c, more = q.take() {
				became, err := m.run(t.Context(), c)
				if err != nil {
					t.Errorf("%s: %v", c.describe(), err)
				}
				q.finish(c, became)
			}
		})
	}
	wg.Wait()
	n := q.fates[killed] + q.fates[survived]
	fmt.Printf("of %d possible mutants in %s, %d didn't compile\n", found, m.pkg, q.fates[uncompiled])
	fmt.Printf("killed %d of %d (%.0f %%) seed %d\n", q.fates[killed], n, 100*float64(q.fates[killed])/float64(max(n, 1)), *mutantsSeedFlag)
}

// TestMutationsOfSample holds which mutations are found, and that they are told apart: who
// is killed, who never ends, who survives, and who is no program.
func TestMutationsOfSample(t *testing.T) {
	pkg := loadPackage(t, "internal/testdata/mutants")
	all, err := findMutations(pkg)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, c := range all {
		said = append(said, fmt.Sprintf("%d: %s became %s", c.line, c.was, c.becomes))
	}
	golden, err := os.ReadFile("testdata/mutants/found.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(said, "\n") + "\n"; got != string(golden) {
		t.Errorf("found:\n%s\nwant:\n%s", got, golden)
	}
	m := newMutantTester(t, pkg)
	for name, test := range map[string]struct {
		became  string
		timeout time.Duration
		want    fate
	}{
		"a test fails":    {"left == 0", time.Minute, killed},
		"it never ends":   {"left <= 0", time.Second, killed},
		"no test notices": {"b", time.Minute, survived},
	} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(all, func(c mutation) bool { return c.becomes == test.became })
			if i < 0 {
				t.Fatal("no such mutation")
			}
			tester := *m
			tester.timeout = test.timeout
			if became, err := tester.run(t.Context(), all[i]); err != nil || became != test.want {
				t.Errorf("it became %v (%v), want %v", became, err, test.want)
			}
		})
	}
	broken := mutation{path: all[0].path, source: all[0].source, code: "no program"}
	if became, err := m.run(t.Context(), broken); err != nil || became != uncompiled {
		t.Errorf("what is no program became %v (%v)", became, err)
	}
}
