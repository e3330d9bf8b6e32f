package evaluate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

const pipelineHead = "apiVersion: liftlock.dev/v1alpha1\nkind: Pipeline\nmetadata: {name: p%d-%d}\nspec:\n  applicationSets: [{path: a/*.yaml}]\n  component: 'a'\n  environment: dev\n  environments:\n  - {name: dev}\n"

// pipelineBombs write one of several pipeline files that are cheap in Git and dear to read.
var pipelineBombs = map[string]func(file int) string{
	"tiny entries of lists": func(file int) string {
		entry := "  - kustomizeImages: [" + strings.TrimSuffix(strings.Repeat("a,", 1000), ",") + "]\n"
		return fillFile(file, func(int) string { return "  carry:\n" + strings.Repeat(entry, 95) })
	},
	"unknown keys": func(int) string {
		var keys strings.Builder
		for i := range 49_000 {
			keys.WriteString("e" + strconv.FormatInt(int64(i), 36) + ": 1\n")
		}
		return keys.String() + "---\n" + keys.String()
	},
	"expressions": func(file int) string {
		return fillFile(file, func(document int) string {
			var b strings.Builder
			for e := range 2 {
				fmt.Fprintf(&b, "  - name: e%d\n    after: [dev]\n    gates:\n", e)
				for g := range 50 {
					x := fmt.Sprintf("size(release.images) > %d", ((file*100+document)*2+e)*100+g)
					b.WriteString("    - expression: '" + x + strings.Repeat(" || 1 in [1,2]", (1990-len(x))/14) + "'\n")
				}
			}
			return b.String()
		})
	},
}

// fillFile fills a file with documents.
func fillFile(file int, more func(document int) string) string {
	var b strings.Builder
	for d := 0; ; d++ {
		one := fmt.Sprintf(pipelineHead, file, d) + more(d) + "---\n"
		if b.Len()+len(one) > 1<<20 {
			return b.String()
		}
		b.WriteString(one)
	}
}

// TestPipelineBombs holds that pipeline files which a stranger wrote are read within a worker's
// limits, and that what is wrong with them is said in few words.
func TestPipelineBombs(t *testing.T) {
	t.Parallel()
	for name, write := range pipelineBombs {
		for _, files := range []int{3, 60} {
			t.Run(fmt.Sprint(name, " in ", files), func(t *testing.T) {
				t.Parallel()
				tree := fstest.MapFS{}
				for i := range files {
					tree[fmt.Sprintf(".liftlock/f%03d.yaml", i)] = &fstest.MapFile{Data: []byte(write(i))}
				}
				begin := time.Now()
				problem, err := CheckPipelinesInWorker(t.Context(), runner(t, sandbox.Limits{CPU: 2 * time.Second, Time: 30 * time.Second}), tree)
				var ended *sandbox.Error
				if err != nil && (!errors.As(err, &ended) || errors.Is(err, sandbox.ErrAnswer)) {
					t.Errorf("got %v", err)
				}
				if files == 60 && err == nil && problem == "" || len(problem) > 20<<10 {
					t.Errorf("the problem is %.200q, of %d bytes", problem, len(problem))
				}
				t.Logf("after %s: %v %.100q", time.Since(begin).Round(time.Millisecond), err, problem)
			})
		}
	}
}

// TestCheckPipelines tells what is wrong from what is fine.
func TestCheckPipelines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"nothing":   {"", ""},
		"a good":    {fmt.Sprintf(pipelineHead, 1, 1) + "  carry: [{kustomizeImages: [web]}]\n", ""},
		"a bad one": {"spec: [", ".liftlock.yaml:1: not valid YAML: did not find expected node content"},
	} {
		tree := fstest.MapFS{"x": &fstest.MapFile{}}
		if c.file != "" {
			tree[".liftlock.yaml"] = &fstest.MapFile{Data: []byte(c.file)}
		}
		if got, err := CheckPipelinesInWorker(t.Context(), runner(t, sandbox.Limits{}), tree); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}
