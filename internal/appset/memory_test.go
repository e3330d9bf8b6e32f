package appset

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/deps"
)

// memoryProcess names the environment variable that has the test binary measure
// itself; its value says what.
const memoryProcess = "LIFTLOCK_MEMORY_OF"

// memoryTask is what the measuring process does.
type memoryTask struct {
	Mirror, URL, Revision string
	Shape, Targets        int
}

// memoryUse is what it took, in bytes above what the process had before.
type memoryUse struct{ Heap, Resident, Peak int64 }

// BenchmarkMemory measures a process that resolves a fleet and indexes the files that its targets
// read. It reports the heap that stays, the resident memory that stays, and the most that was
// resident at any time. Idle is the same process before that.
func BenchmarkMemory(b *testing.B) {
	shapes := benchShapes(*benchTargets)
	m, revisions := benchRepository(b, *benchTargets, 0, shapes)
	must(b, m.Close())
	for i := range shapes {
		b.Run(shapes[i].name, func(b *testing.B) {
			task, err := json.Marshal(memoryTask{Mirror: b.TempDir(), URL: m.URL(), Revision: revisions[0], Shape: i, Targets: *benchTargets})
			must(b, err)
			var use memoryUse
			for b.Loop() {
				cmd := exec.Command(os.Args[0], "-test.run=^TestMemoryChild$", "-test.v=false")
				cmd.Env = append(os.Environ(), memoryProcess+"="+string(task))
				out, err := cmd.Output()
				if err != nil {
					b.Fatalf("measuring: %v\n%s", err, out)
				}
				line, _, _ := bytes.Cut(out, []byte("\n"))
				must(b, json.Unmarshal(line, &use))
			}
			b.ReportMetric(float64(use.Heap)/(1<<20), "heap-MB")
			b.ReportMetric(float64(use.Resident)/(1<<20), "resident-MB")
			b.ReportMetric(float64(use.Peak)/(1<<20), "peak-MB")
		})
	}
}

// TestMemoryProcess is the measuring process, and nothing otherwise.
func TestMemoryProcess(t *testing.T) {
	text := os.Getenv(memoryProcess)
	if text == "" {
		t.Skip("it is started by BenchmarkMemory")
	}
	var task memoryTask
	must(t, json.Unmarshal([]byte(text), &task))
	*benchTargets = task.Targets
	m, err := git.Open(context.Background(), git.Options{URL: task.URL, Dir: task.Mirror, Author: git.Ident{Name: "a", Email: "a@example.com"}})
	must(t, err)
	defer func() { _ = m.Close() }()
	_, err = m.Fetch(context.Background())
	must(t, err)
	r := New(Options{})
	idle := measure(t)
	shape := benchShapes(task.Targets)[task.Shape]
	in := shape.input(m, task.Revision)
	f, err := r.Resolve(context.Background(), in)
	if err != nil || len(f.Targets) != task.Targets || len(f.Problems) > 0 {
		t.Fatal(err, len(f.Targets), f.Problems)
	}
	readers := make([]deps.Reader, len(f.Targets))
	for i, target := range f.Targets {
		readers[i] = deps.Reader{ID: target.ID(), Extra: target.GeneratorFiles, Sources: []deps.Source{{Path: target.Sources[0].Path}}}
	}
	x, err := deps.Build(context.Background(), in.Tree, readers)
	must(t, err)
	readers = nil
	use := measure(t)
	use.Heap, use.Resident, use.Peak = use.Heap-idle.Heap, use.Resident-idle.Resident, use.Peak-idle.Resident
	raw, err := json.Marshal(use)
	must(t, err)
	fmt.Println(string(raw))
	runtime.KeepAlive(x)
	runtime.KeepAlive(r)
	runtime.KeepAlive(f)
}

// measure reads what the process holds after a collection. Memory that the heap has given back to
// the kernel is not forced: it is as the runtime leaves it.
func measure(t *testing.T) memoryUse {
	t.Helper()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	use := memoryUse{Heap: int64(stats.HeapAlloc)}
	status, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skip("resident memory is measured on Linux only")
	}
	defer func() { _ = status.Close() }()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		into := map[string]*int64{"VmRSS": &use.Resident, "VmHWM": &use.Peak}[name]
		if into == nil {
			continue
		}
		kB, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		must(t, err)
		*into = kB << 10
	}
	return use
}
