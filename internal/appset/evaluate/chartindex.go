package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

const (
	// chartTask is the name of the worker's handler that reads indexes of chart repositories.
	chartTask = "chart index"
	indexFile = "index.yaml"
)

// chartRequest asks for a chart's version, or for all of them.
type chartRequest struct {
	Chart, Constraint string
	All               bool
}

// FindChartInWorker is [render.FindChart] in a worker process: an index comes from outside, and is
// large.
func FindChartInWorker(ctx context.Context, runner *sandbox.Runner, index []byte, chart, constraint string) (render.ChartVersion, error) {
	var out render.ChartVersion
	trees := sandbox.Trees{Main: singleFile(indexFile, index)}
	err := runner.Run(ctx, chartTask, trees, chartRequest{Chart: chart, Constraint: constraint}, &out)
	return out, err
}

// ListChartInWorker is [render.ListChart] in a worker process.
func ListChartInWorker(ctx context.Context, runner *sandbox.Runner, index []byte, chart string) ([]string, error) {
	var out []string
	trees := sandbox.Trees{Main: singleFile(indexFile, index)}
	err := runner.Run(ctx, chartTask, trees, chartRequest{Chart: chart, All: true}, &out)
	return out, err
}

// handleChartIndex is the worker's side.
func handleChartIndex(_ context.Context, trees sandbox.Trees, raw json.RawMessage) (any, error) {
	var in chartRequest
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("reading a chart repository's index: reading the input: %w", err)
	}
	index, err := fs.ReadFile(trees.Main, indexFile)
	if err != nil {
		return nil, err
	}
	if in.All {
		return render.ListChart(index, in.Chart)
	}
	return render.FindChart(index, in.Chart, in.Constraint)
}
