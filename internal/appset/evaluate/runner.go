package evaluate

import (
	"fmt"
	"os"
	"runtime"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// Command is the argument that makes our program a worker: it calls
// [sandbox.Serve] with [Handlers].
const Command = "sandbox"

// NewRunner makes a runner whose workers are this very program, also when its
// file was replaced since it started.
func NewRunner(l sandbox.Limits, log *zap.Logger) (*sandbox.Runner, error) {
	program, err := OwnProgram()
	if err != nil {
		return nil, err
	}
	return sandbox.New(sandbox.Options{Program: program, Args: []string{Command}, Limits: l, Log: log}), nil
}

// OwnProgram is the file of this very program, also when it was replaced since it started.
func OwnProgram() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program, to start it for evaluations: %w", err)
	}
	return program, nil
}
