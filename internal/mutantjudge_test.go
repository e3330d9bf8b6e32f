package internal_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// These bound a mutant's memory, in KiB: one that never ends also tends to fill it. The simulation
// collects its garbage only when there are 2 GiB of it.
const (
	mutantMemory    = 2 << 20
	simulatedMemory = 4 << 20
)

// unlimited is more than the code as it is needs, of time and of the processor.
const unlimited = time.Hour

// slowTest is how much of the processor a test must use to run by itself, after the others.
const slowTest = time.Second

// fate is what became of a mutant.
type fate int

const (
	survived    fate = iota // no test noticed
	unevaluated             // no test came by, so none could notice
	killed                  // a test failed, or didn't end
)

// mutantJudge is a package whose tests may notice a mutant.
type mutantJudge struct {
	name   string // what it is called in the report
	pkg    string // its path
	folder string // where it is, and where its tests run
	only   string // the one test that is run; "" is all
	memory int    // in KiB
	flags  []string
	stages []stage // of what a mutant is shown to; none: to the tests as they are prepared
	// How long a mutant may run at least, and how much of the processor it may use. On a
	// machine that is busy the first says little, and what waits for ever uses none of
	// the second.
	leastTimeout, leastCPU time.Duration

	noticed sync.Map // by a mutant's number: what is said of how it was noticed

	scratch string
	runs    atomic.Int64
	binary  []byte
	tests   []judgingTest
}

// stage is a part of what a mutant is shown to: who is noticed in it isn't shown to the next.
type stage struct {
	flags []string
	times int // it takes this many times as long as what the tests are prepared with
}

// judgingTest is a test, and what it used with the code as it is.
type judgingTest struct {
	name      string
	cpu, took time.Duration
	evaluated []byte // by a mutant's number: '1' where it came by
}

// noticedPattern is what the simulation says of what it notices.
var noticedPattern = regexp.MustCompile(`(?m)^sim: world .* broke .*$`)

var testName = regexp.MustCompile(`(?m)^(Test|Example|Fuzz)\w*$`)

// prepare builds the tests with the mutants, and runs each with the code as it is. It must pass,
// and later sees only the mutants that it comes by.
func (m *mutantJudge) prepare(ctx context.Context, schema *mutantSchema) error {
	var err error
	if m.scratch, err = os.MkdirTemp(m.scratch, "judge"); err != nil {
		return fmt.Errorf("make room for mutants: %w", err)
	}
	if m.binary, err = schema.build(ctx, m.scratch, m.pkg); err != nil {
		return err
	}
	unchanged, output := filepath.Join(m.scratch, "unchanged.test"), filepath.Join(m.scratch, "evaluated")
	if err := writeMutant(unchanged, m.binary, 0, output); err != nil {
		return err
	}
	names := []string{m.only}
	if m.only == "" {
		cmd := exec.CommandContext(ctx, unchanged, "-test.list", ".")
		cmd.Dir = m.folder
		listed, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("list the tests of %s: %w", m.pkg, err)
		}
		names = testName.FindAllString(string(listed), -1)
	}
	for _, name := range names {
		test := judgingTest{name: name}
		if err := os.Remove(output); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("forget what the test before came by: %w", err)
		}
		start := time.Now()
		passed, used, err := m.runTests(ctx, unchanged, []judgingTest{test}, stage{}, io.Discard)
		if err == nil && !passed {
			err = errors.New("it doesn't pass as the code is")
		}
		if err != nil {
			return fmt.Errorf("%s of %s: %w", name, m.pkg, err)
		}
		test.cpu, test.took = used, time.Since(start)
		if test.evaluated, err = os.ReadFile(output); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("read what %s of %s came by: %w", name, m.pkg, err)
		}
		m.tests = append(m.tests, test)
	}
	slices.SortStableFunc(m.tests, func(a, b judgingTest) int { return cmp.Compare(a.cpu, b.cpu) })
	return nil
}

// show shows the tests a mutant by its number: the quick ones that come by it together, and
// then the others one by one.
func (m *mutantJudge) show(ctx context.Context, number int) (fate, error) {
	var batches [][]judgingTest
	for _, test := range m.tests {
		switch {
		case number >= len(test.evaluated) || test.evaluated[number] != '1':
		case test.cpu < slowTest && len(batches) > 0:
			batches[0] = append(batches[0], test)
		default:
			batches = append(batches, []judgingTest{test})
		}
	}
	if len(batches) == 0 {
		return unevaluated, nil
	}
	path := filepath.Join(m.scratch, fmt.Sprintf("mutant%d.test", m.runs.Add(1)))
	if err := writeMutant(path, m.binary, number, ""); err != nil {
		return survived, err
	}
	defer os.Remove(path)
	stages := m.stages
	if len(stages) == 0 {
		stages = []stage{{times: 1}}
	}
	for _, s := range stages {
		for _, batch := range batches {
			var said bytes.Buffer
			if passed, _, err := m.runTests(ctx, path, batch, s, &said); err != nil || !passed {
				m.noticed.Store(number, cmp.Or(noticedPattern.FindString(said.String()), "it doesn't end, or dies"))
				return killed, err
			}
		}
	}
	return survived, nil
}

// runTests runs tests of a binary, each at most once, and says whether they passed and how
// much of the processor they used. They get a multiple of what they use with the code as it
// is, where that is known.
func (m *mutantJudge) runTests(ctx context.Context, binary string, tests []judgingTest, s stage, said io.Writer) (passed bool, used time.Duration, err error) {
	var names []string
	timeout, cpu, flags := m.leastTimeout, m.leastCPU, append(slices.Clone(m.flags), s.flags...)
	for _, test := range tests {
		names = append(names, test.name)
		timeout += 10 * test.took * time.Duration(s.times)
		cpu += 4 * test.cpu * time.Duration(s.times)
		if test.took == 0 {
			timeout, cpu = unlimited, unlimited
		}
	}
	limited := fmt.Sprintf(`ulimit -d %d; ulimit -t %d; exec "$@"`, m.memory, int((cpu + time.Second - 1).Seconds()))
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limited, "mutant", binary,
		"-test.run", "^(" + strings.Join(names, "|") + ")$", "-test.failfast", "-test.timeout", timeout.String()}, flags...)...)
	cmd.Dir, cmd.Stdout = m.folder, said
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if cmd.ProcessState != nil {
		used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, used, ctx.Err()
	case errors.As(err, &failed):
		return false, used, nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return false, used, fmt.Errorf("run the tests of %s: %w", m.pkg, err)
	}
	return true, used, nil
}
