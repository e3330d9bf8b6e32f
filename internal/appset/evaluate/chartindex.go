package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/sandbox"
)

const (
	// chartTask is the name of the worker's handler that reads indexes of chart repositories.
	chartTask = "chart index"
	indexFile = "index.yaml"
)

// chartRequest asks for a chart's version.
type chartRequest struct{ Chart, Constraint string }

// FindChartInWorker is [render.FindChart] in a worker process: an index is somebody else's, and large.
func FindChartInWorker(ctx context.Context, runner *sandbox.Runner, index []byte, chart, constraint string) (render.ChartVersion, error) {
	var out render.ChartVersion
	trees := sandbox.Trees{Main: singleFile(indexFile, index)}
	err := runner.Run(ctx, chartTask, trees, chartRequest{chart, constraint}, &out)
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
	return render.FindChart(index, in.Chart, in.Constraint)
}
