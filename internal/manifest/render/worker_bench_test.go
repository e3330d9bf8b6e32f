package render

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helmengine "helm.sh/helm/v3/pkg/engine"

	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// workerArg makes this test binary a worker of BenchmarkWorker.
const workerArg = "render-worker"

// serveWorker renders what it is given, one after the other, over the parent's tree.
func serveWorker() int {
	handlers := map[string]sandbox.Handler{"render": func(ctx context.Context, trees sandbox.Trees, raw json.RawMessage) (any, error) {
		var inputs []Input
		if err := json.Unmarshal(raw, &inputs); err != nil {
			return nil, err
		}
		out := make([]*Manifests, len(inputs))
		for i := range inputs {
			tree, err := trees.Named(ctx, strconv.Itoa(i/2)) // a promotion's target is rendered before and after
			if err != nil {
				return nil, err
			}
			if out[i], err = Render(ctx, tree, inputs[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}}
	if err := sandbox.Serve(context.Background(), os.Stdin, os.Stdout, handlers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// BenchmarkWorker renders small charts here and in a sandbox's worker that is
// replaced after so many: what one rendering costs when the process is the only
// fence. recycled-after-0 is here. All inputs of a worker go over at once, so a
// real one costs more.
func BenchmarkWorker(b *testing.B) {
	silenceLogs(b)
	for _, each := range []int{0, 1, 100, 500} {
		b.Run(fmt.Sprintf("recycled-after-%d", each), func(b *testing.B) {
			tree, in := benchmarkTargets("helm", 100)
			for len(in) < 1000 {
				in = append(in, in...)
			}
			in = in[:1000]
			trees := sandbox.Trees{Main: tree, Named: func(context.Context, string) (fs.FS, error) { return tree, nil }}
			runner := sandbox.New(sandbox.Options{Program: os.Args[0], Args: []string{workerArg}})
			for b.Loop() {
				for at := 0; at < len(in); at += max(each, 1) {
					if each == 0 {
						if _, err := Render(b.Context(), tree, in[at]); err != nil {
							b.Fatal(err)
						}
						continue
					}
					var out []*Manifests
					if err := runner.Run(b.Context(), "render", trees, in[at:at+each], &out); err != nil || len(out) != each {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(len(in)), "µs/target")
		})
	}
}

// BenchmarkEngines executes one chart's templates with the engine here and with Helm's.
func BenchmarkEngines(b *testing.B) {
	tree, _ := benchmarkTargets("helm", 1)
	r := &rendering{in: &Input{}, files: newTreeReader(b.Context(), tree)}
	c, err := r.loadChart("chart")
	if err != nil {
		b.Fatal(err)
	}
	for name, render := range map[string]func(*chart.Chart, chartutil.Values) (map[string]string, error){
		"ours": func(c *chart.Chart, v chartutil.Values) (map[string]string, error) {
			return newEngine(b.Context()).render(c, v)
		},
		"helm": helmengine.Render,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				top, err := chartutil.ToRenderValues(c, map[string]any{}, chartutil.ReleaseOptions{Name: "web"}, nil)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := render(c, top); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
