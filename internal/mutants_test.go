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

	"github.com/liftlock/liftlock/internal/wording"
)

var (
	mutantsFlag     = flag.String("mutants", "", "the package whose code is mutated, to see whether its own tests notice, such as policies")
	mutantsNumber   = flag.Int("mutants.n", 100, "how many mutants")
	mutantsSeedFlag = flag.Uint64("mutants.seed", 1, "which mutants")
	mutantsSimFlag  = flag.Duration("mutants.sim", 0, "how long a mutant that the package's own tests don't notice is simulated; 0: not at all")
)

// What a mutant may use of the memory, in KiB: one that never ends also tends to fill it.
// The simulation collects its garbage only when there are 2 GiB of it.
const (
	mutantMemory    = 2 << 20
	simulatedMemory = 4 << 20
)

// unlimitedCPU is more of the processor, in seconds, than the code as it is needs.
const unlimitedCPU = 3600

// simulatedSeed is the first world in which mutants are simulated: each in the same ones.
const simulatedSeed = 1

// fate is what became of a mutant.
type fate int

const (
	uncompiled fate = iota // it is no program
	killed                 // a test failed, or didn't end
	survived               // no test noticed
)

// mutantJudge is a package whose tests may notice a mutant.
type mutantJudge struct {
	name   string // what it is called in the report
	pkg    string // its path
	folder string // where it is, and where its tests run
	// How long it may run, and how much of the processor it may use, in seconds: on a machine
	// that is busy the first says little, and what waits for ever uses none of the second.
	timeout time.Duration
	cpu     int
	memory  int // in KiB
	flags   []string
}

// mutantTester shows mutated code to one judge after the other, until one notices.
type mutantTester struct {
	scratch string
	judges  []mutantJudge
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

// newMutantTester has a package's own tests as the first judge.
func newMutantTester(t *testing.T, pkg *packages.Package) *mutantTester {
	t.Helper()
	own := mutantJudge{name: "its own tests", pkg: pkg.PkgPath, folder: filepath.Dir(pkg.GoFiles[0]), timeout: 20 * time.Minute, cpu: unlimitedCPU, memory: mutantMemory}
	imports, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.TestImports}} {{.XTestImports}}", own.pkg).Output()
	if err != nil {
		t.Fatalf("list what the tests of %s import: %v", own.pkg, err)
	}
	if strings.Contains(string(imports), "pgregory.net/rapid") {
		// That a property fails is enough: nobody reads the smallest case.
		own.flags = []string{"-rapid.nofailfile", "-rapid.shrinktime", "0"}
	}
	return &mutantTester{scratch: t.TempDir(), judges: []mutantJudge{own}}
}

// addSimulation has what the own tests don't notice run in the simulation's worlds.
func (m *mutantTester) addSimulation(t *testing.T, lasts time.Duration) {
	t.Helper()
	sim := loadPackage(t, "internal/sim")
	runs, err := exec.CommandContext(t.Context(), "go", "list", "-deps", sim.PkgPath).Output()
	if err != nil {
		t.Fatalf("list what %s runs: %v", sim.PkgPath, err)
	}
	if own := m.judges[0].pkg; !slices.Contains(strings.Fields(string(runs)), own) {
		t.Fatalf("the simulation doesn't run %s; leave -mutants.sim (SIM=) out", own)
	}
	m.judges = append(m.judges, mutantJudge{
		name: "the simulation", pkg: sim.PkgPath, folder: filepath.Dir(sim.GoFiles[0]), timeout: lasts + 20*time.Minute, cpu: unlimitedCPU, memory: simulatedMemory,
		flags: []string{"-test.run", "^TestSimulation$", "-sim.brief", "-sim.seed", fmt.Sprint(simulatedSeed), "-sim.for", lasts.String()},
	})
}

// limitTimes runs the code as it is, which must pass, and gives each judge four times as much
// of the processor for a mutant.
func (m *mutantTester) limitTimes(t *testing.T, unchanged mutation) {
	t.Helper()
	for i := range m.judges {
		j, start := &m.judges[i], time.Now()
		became, used, err := m.runOne(t.Context(), *j, unchanged)
		if err != nil || became != survived {
			t.Fatalf("the tests of %s don't pass as the code is: %v", j.pkg, err)
		}
		j.cpu = 10 + 4*int(used.Seconds()+1)
		j.timeout = time.Minute + 10*time.Since(start)
	}
}

// run plants a mutation and shows it to the judges. Of one that was killed it gives the
// name of who noticed.
func (m *mutantTester) run(ctx context.Context, c mutation) (became fate, by string, err error) {
	for _, j := range m.judges {
		if became, _, err := m.runOne(ctx, j, c); err != nil || became != survived {
			return became, j.name, err
		}
	}
	return survived, "", nil
}

// runOne builds a judge's tests with a mutation, and runs them. It says how much of the
// processor they used.
func (m *mutantTester) runOne(ctx context.Context, j mutantJudge, c mutation) (became fate, used time.Duration, err error) {
	dir, err := os.MkdirTemp(m.scratch, "mutant")
	if err != nil {
		return uncompiled, 0, fmt.Errorf("make room for a mutant: %w", err)
	}
	defer os.RemoveAll(dir)
	planted, overlay, binary := filepath.Join(dir, "planted.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{c.path: planted}})
	if err != nil {
		return uncompiled, 0, fmt.Errorf("write where the mutant is: %w", err)
	}
	if err := errors.Join(os.WriteFile(planted, c.apply(), 0o600), os.WriteFile(overlay, replaced, 0o600)); err != nil {
		return uncompiled, 0, fmt.Errorf("write the mutant: %w", err)
	}
	said, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, j.pkg).CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return uncompiled, 0, ctx.Err()
	case err != nil && strings.Contains(string(said), filepath.Base(c.path)+":"):
		return uncompiled, 0, nil
	case err != nil: // the compiler has nothing against the mutated file: it was killed, say, or the disk is full
		return uncompiled, 0, fmt.Errorf("build the mutant: %w\n%s", err, wording.Clip(string(said), 2000))
	}
	var failed *exec.ExitError
	limited := fmt.Sprintf(`ulimit -d %d; ulimit -t %d; exec "$@"`, j.memory, j.cpu)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limited, "mutant", binary, "-test.failfast", "-test.timeout", j.timeout.String()}, j.flags...)...)
	cmd.Dir = j.folder
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if cmd.ProcessState != nil {
		used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	switch {
	case ctx.Err() != nil:
		return uncompiled, 0, ctx.Err()
	case errors.As(err, &failed):
		return killed, used, nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return uncompiled, 0, fmt.Errorf("run the mutant: %w", err)
	}
	return survived, used, nil
}

// mutantQueue gives out mutations until so many of them compiled.
type mutantQueue struct {
	mu      sync.Mutex
	changed sync.Cond
	all     []mutation
	wanted  int

	next, running int
	fates         map[fate]int
	killedBy      map[string]int // by the judge's name
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

func (q *mutantQueue) finish(c mutation, became fate, by string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	q.fates[became]++
	if became == killed {
		q.killedBy[by]++
	}
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
// counts how many of the changes its own tests notice, and how many of the rest the
// simulation does, where it is asked for. What survives is a rule that no test holds, code that nothing needs, or another way to say the same.
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
	if *mutantsSimFlag > 0 {
		m.addSimulation(t, *mutantsSimFlag)
	}
	m.limitTimes(t, mutation{path: all[0].path, source: all[0].source})
	q := &mutantQueue{all: all, wanted: *mutantsNumber, fates: map[fate]int{}, killedBy: map[string]int{}}
	q.changed.L = &q.mu
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for c, more := q.take(); more; c, more = q.take() {
				became, by, err := m.run(t.Context(), c)
				if err != nil {
					t.Errorf("%s: %v", c.describe(), err)
				}
				q.finish(c, became, by)
			}
		})
	}
	wg.Wait()
	n := q.fates[killed] + q.fates[survived]
	fmt.Printf("of %d possible mutants in %s, %d didn't compile\n", found, pkg.PkgPath, q.fates[uncompiled])
	for _, j := range m.judges {
		fmt.Printf("%d killed by %s\n", q.killedBy[j.name], j.name)
	}
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
	m.judges = append(m.judges, mutantJudge{
		name: "others", pkg: pkg.PkgPath + "/user", folder: filepath.Join(m.judges[0].folder, "user"), timeout: m.judges[0].timeout, cpu: unlimitedCPU, memory: mutantMemory,
	})
	ample := m.judges[0].timeout // however busy the machine is: what ends, ends by itself
	for name, test := range map[string]struct {
		became  string
		timeout time.Duration
		cpu     int
		want    fate
		by      string
	}{
		"a test fails":                        {"left == 0", ample, unlimitedCPU, killed, "its own tests"},
		"it never ends":                       {"left <= 0", time.Second, unlimitedCPU, killed, "its own tests"},
		"it never ends, and uses what it can": {"left <= 0", ample, 1, killed, "its own tests"},
		"only another judge notices":          {`return "", zero`, ample, unlimitedCPU, killed, "others"},
		"no test of any judge notices":        {"b", ample, unlimitedCPU, survived, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(all, func(c mutation) bool { return c.becomes == test.became })
			if i < 0 {
				t.Fatal("no such mutation")
			}
			tester := mutantTester{scratch: m.scratch, judges: slices.Clone(m.judges)}
			tester.judges[0].timeout, tester.judges[0].cpu = test.timeout, test.cpu
			if became, by, err := tester.run(t.Context(), all[i]); err != nil || became != test.want || by != test.by {
				t.Errorf("it became %v by %q (%v), want %v by %q", became, by, err, test.want, test.by)
			}
		})
	}
	broken := mutation{path: all[0].path, source: all[0].source, code: "no program"}
	if became, _, err := m.run(t.Context(), broken); err != nil || became != uncompiled {
		t.Errorf("what is no program became %v (%v)", became, err)
	}
}
