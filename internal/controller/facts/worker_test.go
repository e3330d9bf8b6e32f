package facts

import (
	"os"
	"testing"

	"github.com/liftlock/liftlock/internal/world/evaluatetest"
)

func TestMain(m *testing.M) {
	evaluatetest.ServeIfWorker()
	os.Exit(m.Run())
}
