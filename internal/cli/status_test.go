package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/store"
)

// degradedUnit is a component that needs a look.
func degradedUnit() store.Unit {
	return store.Unit{Key: "hub:acme/fleet|shop|cart", Repo: "hub:acme/fleet", Pipeline: "shop", Component: "cart", Digest: "1", Data: []byte(
		`{"unit":{"repo":"hub:acme/fleet","pipeline":"shop","component":"cart"},"decision":{"envs":[
		{"environment":"dev","state":"verified","promotion":"idle","name":"2"},
		{"environment":"prod","state":"degraded","promotion":"idle","name":"2","reason":"cart-prod: Degraded for 40 s"}]}}`)}
}

// TestStatusFilters holds what of the pipelines is shown.
func TestStatusFilters(t *testing.T) {
	serveConsole(t, degradedUnit())
	const cause = "1 component in prod: degraded: …-…: Degraded for … s\n    shop: cart\n"
	for args, want := range map[string]string{
		"--needs-look":                         cause,
		"shop --needs-look --environment pr*":  cause,
		"shop cart --needs-look":               cause,
		"shop web --needs-look":                "nothing needs a look\n",
		"--needs-look --environment dev":       "nothing needs a look\n",
		"--needs-look -l team=pay":             "nothing needs a look\n",
		"--label team=pay":                     "there are no such components\n",
		"--environment prod":                   "COMPONENT   PROD\ncart        2 degraded\nweb         1.4.2 baseline\n",
		"shop web --environment prod":          "prod carries 1.4.2: baseline\n",
		"--needs-look -o json":                 `"causes": [`,
		"shop web --needs-look -o yaml":        "causes: []\npipelines: []\n",
		"--repository hub:acme/fleet -o json":  `"pipelines": [`,
		"--repository hub:acme/other -o json":  `"pipelines": []`,
		"shop cart --needs-look -o wide":       cause,
		"--environment prod --needs-look -o j": "",
	} {
		out, err := run(t, append([]string{"status"}, strings.Fields(args)...)...)
		if want == "" {
			if err == nil {
				t.Errorf("%s is no error", args)
			}
			continue
		}
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", args, err, out, want)
		}
	}
	for args, want := range map[string]string{
		"--environment prd":         `there is no environment "prd"; did you mean "prod"?`,
		"shop crat --needs-look":    `no component "crat"; did you mean "cart"?`,
		"--label team=pay,":         "--label: ",
		"shp --needs-look":          `did you mean "shop"?`,
		"shp --needs-look --watch":  `did you mean "shop"?`,
		"shop --needs-look -o text": "-o is table, wide, json or yaml",
	} {
		if out, err := run(t, append([]string{"status"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\n%s\nwant %s", args, err, out, want)
		}
	}
}

// TestWatch holds that an answer is shown again when it has changed, that a server that is away is
// said once, and that the end of the context is no error.
func TestWatch(t *testing.T) {
	answers := []any{"a", "a", "b", errors.New("no answer"), errors.New("no answer"), "b", "c"}
	tick := make(chan time.Time, len(answers))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	var out, log bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	shown := 0
	err := watchAnswer(cmd, tick, "--\n", func(w io.Writer) error {
		if shown == len(answers) {
			cancel()
			return ctx.Err()
		}
		shown++
		tick <- time.Time{}
		if err, is := answers[shown-1].(error); is {
			return err
		}
		_, err := fmt.Fprintln(w, answers[shown-1])
		return err
	})
	if want := "a\n--\nb\n--\nb\n--\nc\n"; err != nil || out.String() != want || log.String() != "liftlock: no answer\n" {
		t.Errorf("%v\n%s\n%s", err, out.String(), log.String())
	}
}
