package internal_test

import (
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
	mutantsSimFlag  = flag.Duration("mutants.sim", 0, "how long a mutant that the package's own tests don't notice is simulated; 0: not at all")
)

// simulatedSeed is the first world in which mutants are simulated: each in the same ones.
const simulatedSeed = 1

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

// ownTests is a package as the judge of its own mutants.
func ownTests(t *testing.T, pkg *packages.Package) *mutantJudge {
	t.Helper()
	own := &mutantJudge{name: "its own tests", pkg: pkg.PkgPath, folder: filepath.Dir(pkg.GoFiles[0]), leastTimeout: time.Minute, leastCPU: 5 * time.Second, memory: mutantMemory, scratch: t.TempDir()}
	imports, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.TestImports}} {{.XTestImports}}", own.pkg).Output()
	if err != nil {
		t.Fatalf("list what the tests of %s import: %v", own.pkg, err)
	}
	if strings.Contains(string(imports), "pgregory.net/rapid") {
		// That a property fails is enough: nobody reads the smallest case.
		own.flags = []string{"-rapid.nofailfile", "-rapid.shrinktime", "0"}
	}
	return own
}

// simulation is the judge of what a package's own tests don't notice.
func simulation(t *testing.T, pkg *packages.Package, lasts time.Duration) *mutantJudge {
	t.Helper()
	sim := loadPackage(t, "internal/sim")
	runs, err := exec.CommandContext(t.Context(), "go", "list", "-deps", sim.PkgPath).Output()
	if err != nil {
		t.Fatalf("list what %s runs: %v", sim.PkgPath, err)
	}
	if !slices.Contains(strings.Fields(string(runs)), pkg.PkgPath) {
		t.Fatalf("the simulation doesn't run %s; leave -mutants.sim (SIM=) out", pkg.PkgPath)
	}
	return &mutantJudge{
		name: "the simulation", pkg: sim.PkgPath, folder: filepath.Dir(sim.GoFiles[0]), only: "TestSimulation", leastTimeout: time.Minute, leastCPU: 5 * time.Second, memory: simulatedMemory, scratch: t.TempDir(),
		flags: []string{"-sim.brief", "-sim.seed", fmt.Sprint(simulatedSeed), "-sim.for", lasts.String()},
	}
}

// judgeMutants shows mutants, by their numbers from 1 on, to a judge, as many at once as
// there are processors. It reports what became of each, one at a time.
func judgeMutants(t *testing.T, judge *mutantJudge, numbers []int, report func(n int, became fate)) {
	var mu sync.Mutex
	queue := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := range queue {
				became, err := judge.show(t.Context(), n)
				if err != nil {
					t.Errorf("show mutant %d to %s: %v", n, judge.name, err)
				}
				mu.Lock()
				report(n, became)
				mu.Unlock()
			}
		})
	}
	for _, n := range numbers {
		queue <- n
	}
	close(queue)
	wg.Wait()
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
	if len(all) == 0 {
		t.Fatalf("nothing in %s can be mutated", pkg.PkgPath)
	}
	rand.New(rand.NewPCG(*mutantsSeedFlag, 0)).Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	planted, uncompiled := pickMutations(pkg, all, *mutantsNumber)
	fmt.Printf("of %d possible mutants in %s, %d are tried; %d others didn't compile\n", len(all), pkg.PkgPath, len(planted), uncompiled)
	judges := []*mutantJudge{ownTests(t, pkg)}
	if *mutantsSimFlag > 0 {
		judges = append(judges, simulation(t, pkg, *mutantsSimFlag))
	}
	schema := newMutantSchema(pkg, planted)
	var left []int
	for i := range planted {
		left = append(left, i+1)
	}
	met := map[int]bool{} // which mutants any test came by
	for i, judge := range judges {
		if len(left) == 0 {
			break
		}
		if err := judge.prepare(t.Context(), schema); err != nil {
			t.Fatal(err)
		}
		var notKilled []int
		judgeMutants(t, judge, left, func(n int, became fate) {
			met[n] = met[n] || became != unevaluated
			if became == killed {
				return
			}
			notKilled = append(notKilled, n)
			switch {
			case i < len(judges)-1: // the next may notice
			case met[n]:
				fmt.Println(planted[n-1].describe())
			default:
				fmt.Println(planted[n-1].describe() + " (no test comes by)")
			}
		})
		fmt.Printf("%d of %d killed by %s\n", len(left)-len(notKilled), len(left), judge.name)
		left = notKilled
	}
	fmt.Printf("killed %d of %d (%.0f %%) seed %d\n", len(planted)-len(left), len(planted), 100*float64(len(planted)-len(left))/float64(len(planted)), *mutantsSeedFlag)
}

// TestMutationsOfSample holds which mutations are found, and that they are told apart: who
// is killed, who never ends, who survives, by whom nobody comes, and who is no program.
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
	broken := all[0]
	broken.code = "no program"
	planted, uncompiled := pickMutations(pkg, append([]mutation{broken}, all...), len(all))
	if len(planted) != len(all) || uncompiled != 1 {
		t.Errorf("%d of %d mutants are programs, and %d aren't", len(planted), len(all), uncompiled)
	}
	own := ownTests(t, pkg)
	user := &mutantJudge{name: "its user", pkg: pkg.PkgPath + "/user", folder: filepath.Join(own.folder, "user"), leastTimeout: own.leastTimeout, leastCPU: own.leastCPU, memory: mutantMemory, scratch: t.TempDir()}
	for _, judge := range []*mutantJudge{own, user} {
		if err := judge.prepare(t.Context(), newMutantSchema(pkg, planted)); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		became       string
		judge        *mutantJudge
		timeout, cpu time.Duration
		want         fate
	}{
		"a test fails":                        {"left == 0", own, unlimited, unlimited, killed},
		"it never ends":                       {"left <= 0", own, time.Second, unlimited, killed},
		"it never ends, and uses what it can": {"left <= 0", own, unlimited, time.Second, killed},
		"no test notices":                     {"b", own, unlimited, unlimited, survived},
		"no test comes by":                    {`return "", zero`, own, unlimited, unlimited, unevaluated},
		"another judge's test notices":        {`return "", zero`, user, unlimited, unlimited, killed},
	} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(planted, func(c mutation) bool { return c.becomes == test.became })
			if i < 0 {
				t.Fatal("no such mutation")
			}
			test.judge.leastTimeout, test.judge.leastCPU = test.timeout, test.cpu
			if became, err := test.judge.show(t.Context(), i+1); err != nil || became != test.want {
				t.Errorf("it became %v (%v), want %v", became, err, test.want)
			}
		})
	}
}
