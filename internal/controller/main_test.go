package controller

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/sandbox"
)

// TestMain is also the program that evaluates what strangers wrote, as the server's own is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == evaluate.Command {
		if err := sandbox.Serve(context.Background(), os.Stdin, os.Stdout, evaluate.Handlers(zap.NewNop())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
