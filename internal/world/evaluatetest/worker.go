// Package evaluatetest has tests evaluate what strangers wrote in a program of its own, as the
// server does: their own, started once more.
package evaluatetest

import (
	"context"
	"fmt"
	"os"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// ServeIfWorker is for the beginning of TestMain. Where a test has started the program as a
// worker, it is one, and ends it; else it does nothing.
func ServeIfWorker() {
	if len(os.Args) < 2 || os.Args[1] != evaluate.Command {
		return
	}
	serve := func() error {
		return sandbox.Serve(context.Background(), os.Stdin, os.Stdout, evaluate.Handlers(zap.NewNop()))
	}
	if len(os.Args) > 2 && os.Args[2] == evaluate.PoolArgument {
		serve = func() error {
			return sandbox.ServeBatches(context.Background(), os.Stdin, os.Stdout, evaluate.ItemHandlers())
		}
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
