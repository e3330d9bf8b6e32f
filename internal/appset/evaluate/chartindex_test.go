package evaluate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
)

// TestFindChartInWorker finds versions in an index, in a process that may die of it.
func TestFindChartInWorker(t *testing.T) {
	index := "entries:\n  web:\n"
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0-rc.1", "not-one"} {
		index += fmt.Sprintf("  - {version: %s, urls: [web-%s.tgz], digest: d%s}\n", version, version, version)
	}
	r := runner(t, sandbox.Limits{})
	for constraint, want := range map[string]string{"1.0.0": "1.0.0", "": "1.1.0", "^1.0": "1.1.0", ">=2.0.0-0": "2.0.0-rc.1", "not-one": "not-one"} {
		got, err := FindChartInWorker(t.Context(), r, []byte(index), "web", constraint)
		if (err != nil || got != render.ChartVersion{Version: want, URL: "web-" + want + ".tgz", Digest: "d" + want}) {
			t.Errorf("%q: %+v, %v; want %s", constraint, got, err, want)
		}
	}
	for what, want := range map[string][2]string{"the index has no chart api": {index, "api"}, "no version of web that fits": {index, "web"}, "can't be read": {"entries: [", "web"}} {
		if _, err := FindChartInWorker(t.Context(), r, []byte(want[0]), want[1], "9"); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	bomb := "a: &a [x, x, x, x, x, x, x, x]\n"
	for i := 'b'; i < 'n'; i++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", i, i, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1)
	}
	var limited *sandbox.Error
	_, err := FindChartInWorker(t.Context(), runner(t, sandbox.Limits{Time: 10 * time.Second}), []byte(bomb), "web", "1")
	if err == nil || !errors.As(err, &limited) && !strings.Contains(err.Error(), "aliases") {
		t.Errorf("an index that grows: %v", err)
	}
}
