package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// PipelinesTask is the name of the worker's handler that checks pipeline files.
const PipelinesTask = "pipelines"

// CheckPipelinesInWorker checks the pipeline files of a tree that a stranger wrote, in a worker
// process. 60 files of 1 MB in Git can take 5 GB of memory to read. A tree without any is fine. The
// error is the runner's, as InWorker's is.
func CheckPipelinesInWorker(ctx context.Context, runner *sandbox.Runner, tree fs.FS) (problem string, err error) {
	var isFine bool
	err = runner.Run(ctx, PipelinesTask, sandbox.Trees{Main: tree}, struct{}{}, &isFine)
	var refused *sandbox.HandlerError
	if errors.As(err, &refused) {
		return refused.Message, nil
	}
	return "", err
}

// checkPipelines is the worker's side of CheckPipelinesInWorker.
func checkPipelines(_ context.Context, trees sandbox.Trees, _ json.RawMessage) (any, error) {
	_, err := pipeline.Load(trees.Main)
	if err == nil || errors.Is(err, pipeline.ErrNoPipeline) {
		return true, nil
	}
	return nil, err
}
