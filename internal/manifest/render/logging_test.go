package render

import (
	"io"
	"log"
	"os"
	"testing"
)

// silenceLogs swallows what kustomize writes to standard error about deprecated
// fields, and Helm to the standard log about values.
func silenceLogs(t testing.TB) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stderr
	os.Stderr = null
	log.SetOutput(io.Discard)
	t.Cleanup(func() { os.Stderr = old; log.SetOutput(old); null.Close() })
}
