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
	mutantsFlag       = flag.String("mutants", "", "the packages whose code is mutated, to see whether their own tests notice, such as policies, separated by commas")
	mutantsNumber     = flag.Int("mutants.n", 100, "how many mutants, of all packages together")
	mutantsSeedFlag   = flag.Uint64("mutants.seed", 1, "which mutants")
	mutantsSimFlag    = flag.Duration("mutants.sim", 0, "how long a mutant that the package's own tests don't notice is simulated; 0: not at all")
	mutantsWorldsFlag = flag.Int("mutants.simulation", 0, "have the simulation alone judge, in this many worlds, which mutants it notices")
)

// simulatedSeed is the first world in which mutants are simulated: each in the same ones.
const simulatedSeed = 1

// reachedWorlds is in how many worlds it is looked which mutants a story comes by, where each is shown
// many times as many.
const reachedWorlds = 10

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
func (m mutation) describe() string {
	path := m.path
	if here, err := os.Getwd(); err == nil {
		if below, err := filepath.Rel(filepath.Dir(here), path); err == nil {
			path = below
		}
	}
	return fmt.Sprintf("%s:%d: %s became %s", path, m.line, m.was, m.becomes)
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

// simulation judges the mutants that a package's own tests don't notice, or all of them. It runs as
// many worlds as fit in a time, or a number of them.
func simulation(t *testing.T, pkg *packages.Package, lasts time.Duration, worlds int) *mutantJudge {
	t.Helper()
	sim := loadPackage(t, "internal/world/sim")
	runs, err := exec.CommandContext(t.Context(), "go", "list", "-deps", sim.PkgPath).Output()
	if err != nil {
		t.Fatalf("list what %s runs: %v", sim.PkgPath, err)
	}
	if !slices.Contains(strings.Fields(string(runs)), pkg.PkgPath) {
		t.Fatalf("the simulation doesn't run %s; leave -mutants.sim (SIM=) out", pkg.PkgPath)
	}
	judge := &mutantJudge{
		name: "the simulation", pkg: sim.PkgPath, folder: filepath.Dir(sim.GoFiles[0]), only: "TestSimulation", leastTimeout: time.Minute, leastCPU: 5 * time.Second, memory: simulatedMemory, scratch: t.TempDir(),
		flags: []string{"-sim.brief", "-sim.seed", fmt.Sprint(simulatedSeed), "-sim.for", lasts.String()},
	}
	if worlds > 0 {
		// Most that are noticed are noticed in the first ones; who never ends is let go on for a few only.
		first := min(worlds, reachedWorlds)
		judge.flags = append(judge.flags, "-sim.worlds", fmt.Sprint(first))
		judge.stages = []stage{{times: 1}}
		if rest := worlds - first; rest > 0 {
			judge.stages = append(judge.stages, stage{flags: []string{"-sim.seed", fmt.Sprint(simulatedSeed + first), "-sim.worlds", fmt.Sprint(rest)}, times: 1 + rest/first})
		}
	}
	return judge
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

// TestMutants changes comparisons, conditions and results of packages at random, and counts how
// many of the changes their own tests notice. It also counts how many of the rest the simulation
// notices, or how many of all, where that is asked for. A surviving change is a rule that no test
// holds, code that nothing needs, or another way to say the same.
func TestMutants(t *testing.T) {
	if *mutantsFlag == "" {
		t.Skip("-mutants says what is to be mutated")
	}
	planted, judged, noticed := 0, 0, 0
	for _, m := range drawMutations(t, strings.Split(*mutantsFlag, ","), *mutantsNumber) {
		var judges []*mutantJudge
		if *mutantsWorldsFlag == 0 {
			judges = append(judges, ownTests(t, m.pkg))
		}
		if *mutantsWorldsFlag > 0 || *mutantsSimFlag > 0 {
			judges = append(judges, simulation(t, m.pkg, *mutantsSimFlag, *mutantsWorldsFlag))
		}
		reached, killed := m.showTo(t, judges)
		planted, judged, noticed = planted+len(m.planted), judged+reached, noticed+killed
	}
	fmt.Printf("killed %d of %d (%.0f %%) seed %d; any test came by %d\n", noticed, planted, 100*float64(noticed)/float64(planted), *mutantsSeedFlag, judged)
}

// packageMutants are mutants of a package.
type packageMutants struct {
	pkg     *packages.Package
	planted []mutation
}

// drawMutations draws mutants of packages: any of all that are possible is as likely.
func drawMutations(t *testing.T, names []string, wanted int) []packageMutants {
	t.Helper()
	var all []packageMutants
	var lots []int // a package's place, as often as it has mutants
	chance := rand.New(rand.NewPCG(*mutantsSeedFlag, 0))
	for i, name := range names {
		m := packageMutants{pkg: loadPackage(t, name)}
		var err error
		if m.planted, err = findMutations(m.pkg); err != nil {
			t.Fatal(err)
		}
		if len(m.planted) == 0 {
			t.Fatalf("nothing in %s can be mutated", m.pkg.PkgPath)
		}
		chance.Shuffle(len(m.planted), func(i, k int) { m.planted[i], m.planted[k] = m.planted[k], m.planted[i] })
		lots = append(lots, slices.Repeat([]int{i}, len(m.planted))...)
		all = append(all, m)
	}
	chance.Shuffle(len(lots), func(i, k int) { lots[i], lots[k] = lots[k], lots[i] })
	drawn := map[int]int{}
	for _, i := range lots[:min(wanted, len(lots))] {
		drawn[i]++
	}
	for i := range all {
		possible, uncompiled := len(all[i].planted), 0
		all[i].planted, uncompiled = pickMutations(all[i].pkg, all[i].planted, drawn[i])
		fmt.Printf("of %d possible mutants in %s, %d are tried; %d others didn't compile\n", possible, all[i].pkg.PkgPath, len(all[i].planted), uncompiled)
	}
	return slices.DeleteFunc(all, func(m packageMutants) bool { return len(m.planted) == 0 })
}

// showTo shows mutants to judges, to each what those before didn't notice. It reports how many any of
// them came by, and how many were noticed.
func (p *packageMutants) showTo(t *testing.T, judges []*mutantJudge) (reached, noticed int) {
	schema := newMutantSchema(p.pkg, p.planted)
	var left []int
	for i := range p.planted {
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
			if became != unevaluated {
				met[n] = true
			}
			if became == killed {
				if how, said := judge.noticed.Load(n); said && judge.only != "" {
					fmt.Printf("noticed: %s: %s\n", p.planted[n-1].describe(), how)
				}
				return
			}
			notKilled = append(notKilled, n)
			switch {
			case i < len(judges)-1: // the next may notice
			case met[n]:
				fmt.Println(p.planted[n-1].describe())
			default:
				fmt.Println(p.planted[n-1].describe() + " (no test comes by)")
			}
		})
		fmt.Printf("%d of %d killed by %s\n", len(left)-len(notKilled), len(left), judge.name)
		left = notKilled
	}
	return len(met), len(p.planted) - len(left)
}

// TestMutationsOfSample holds which mutations are found, and that their ends are told apart:
// killed, endless, surviving, never reached, and no valid program.
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
