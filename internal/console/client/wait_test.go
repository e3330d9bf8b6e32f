package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/console/api"
)

// serveStates answers with one state of web in prod after the other, the last for ever; a state
// without a name is a server that is away.
func serveStates(t *testing.T, states ...api.Environment) *Client {
	t.Helper()
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e := states[min(n, len(states)-1)]
		n++
		if e.Environment == "" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		p := api.Pipeline{Name: "shop", Environments: []string{"prod"}, Components: []api.Component{{Component: "web", Environments: []api.Environment{e}}}}
		if err := json.NewEncoder(w).Encode(p); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	c, err := New(s.URL, "", "test")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWaitForPromotion(t *testing.T) {
	there := func(release, state string) api.Environment {
		return api.Environment{Environment: "prod", Release: release, Name: release, State: state, Reason: "because"}
	}
	coming := func(release, state string, gates ...api.Gate) api.Environment {
		e := there("1", "verified")
		e.Incoming = &api.Incoming{Release: release, Name: release, State: state, Pull: &api.Pull{Number: 7}, Gates: gates}
		return e
	}
	for name, c := range map[string]struct {
		states []api.Environment
		want   []string
		err    string
	}{
		"all the way": {[]api.Environment{there("1", "verified"), coming("2", "open", api.Gate{Gate: "approvals", Outcome: "wait", Reason: "for ada"}), coming("2", "open", api.Gate{Gate: "approvals", Outcome: "pass"}), there("2", "verifying"), there("2", "verified")},
			[]string{"waiting for the pull request", "2 open #7; approvals: for ada", "2 open #7", "2 is in prod, verifying: because", "2 is verified in prod"}, ""},
		"so fast that nobody saw it come":    {[]api.Environment{there("2", "verified")}, []string{"2 is verified in prod"}, ""},
		"a server that is replaced":          {[]api.Environment{coming("2", "open"), {}, {}, there("2", "verified")}, []string{"2 open #7", "2 is verified in prod"}, ""},
		"a server that stays away":           {[]api.Environment{{}}, nil, "502"},
		"degraded":                           {[]api.Environment{there("2", "degraded")}, []string{"2 is degraded in prod"}, "the release is not verified: because"},
		"closed by a person":                 {[]api.Environment{coming("2", "closed")}, []string{"2 is closed"}, "its pull request is closed"},
		"a newer release takes its place":    {[]api.Environment{coming("2", "open"), coming("3", "open")}, []string{"2 open #7", "3 comes instead"}, "a newer release took its place"},
		"it was on its way, and isn't":       {[]api.Environment{coming("2", "open"), there("1", "verified")}, []string{"2 open #7", "the release isn't on its way any more"}, "nothing is on its way into prod"},
		"what was there before is no answer": {[]api.Environment{there("1", "verified"), there("1", "verified"), there("2", "verified")}, []string{"waiting for the pull request", "2 is verified in prod"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			before := there("1", "verified")
			err := serveStates(t, c.states...).WaitForPromotion(t.Context(), Wait{Pipeline: "shop", Component: "web", Environment: "prod", Every: time.Millisecond, Report: func(s string) { said = append(said, s) }}, &before)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("it ends with %v, not %q", err, c.err)
			}
			if diff := cmp.Diff(c.want, said); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWaitIgnoresTheStateBefore holds that a promotion that was on its way when a command was given
// is no answer to it, until nothing has become of it for a while. A command is recorded before it
// is carried out.
func TestWaitIgnoresTheStateBefore(t *testing.T) {
	coming := func(release, state string, pull int) api.Environment {
		return api.Environment{Environment: "prod", Release: "1", Name: "1", State: "verified", Incoming: &api.Incoming{Release: release, Name: release, State: state, Pull: &api.Pull{Number: pull}}}
	}
	verified := func(release string) api.Environment {
		return api.Environment{Environment: "prod", Release: release, Name: release, State: "verified"}
	}
	for name, c := range map[string]struct {
		before api.Environment
		then   []api.Environment // after two looks at before
		want   []string
		err    string
	}{
		"a closed one is opened again": {coming("2", "closed", 7), []api.Environment{coming("2", "open", 8), verified("2")},
			[]string{"waiting for the pull request", "2 open #8", "2 is verified in prod"}, ""},
		"an older one was on its way": {coming("2", "open", 7), []api.Environment{coming("3", "open", 8), verified("3")},
			[]string{"waiting for the pull request", "3 open #8", "3 is verified in prod"}, ""},
		"it was the one already": {coming("2", "open", 7), []api.Environment{coming("2", "open", 7), coming("2", "open", 7), verified("2")},
			[]string{"waiting for the pull request", "2 open #7", "2 is verified in prod"}, ""},
		"it stays closed": {coming("2", "closed", 7), []api.Environment{coming("2", "closed", 7)},
			[]string{"waiting for the pull request", "2 is closed"}, "its pull request is closed"},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			states := append([]api.Environment{c.before, c.before}, c.then...)
			err := serveStates(t, states...).WaitForPromotion(t.Context(), Wait{Pipeline: "shop", Component: "web", Environment: "prod", Every: time.Millisecond, Grace: 3 * time.Millisecond, Report: func(s string) { said = append(said, s) }}, &c.before)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("it ends with %v, not %q", err, c.err)
			}
			if diff := cmp.Diff(c.want, said); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWaitEnds(t *testing.T) {
	before := api.Environment{Environment: "prod", Release: "1"}
	ctx, cancel := context.WithCancel(t.Context())
	err := serveStates(t, before).WaitForPromotion(ctx, Wait{Pipeline: "shop", Component: "web", Environment: "prod", Every: time.Millisecond, Report: func(string) { cancel() }}, &before)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	if err := serveStates(t, before).WaitForPromotion(t.Context(), Wait{Pipeline: "shop", Component: "api", Environment: "prod", Every: time.Millisecond}, &before); err == nil || !strings.Contains(err.Error(), `no component "api"`) {
		t.Errorf("without the component it ends with %v", err)
	}
}

func TestPrintComparison(t *testing.T) {
	one, two := "1", "2\x1b[31m"
	for name, c := range map[string]struct {
		comparison api.Comparison
		want       []string
	}{
		"the same": {api.Comparison{From: "dev", To: "prod"}, []string{"dev and prod carry the same."}},
		"unknown":  {api.Comparison{Unknown: "what dev carries isn't known: mixed"}, []string{"what dev carries isn't known: mixed"}},
		"behind": {api.Comparison{From: "dev", To: "prod", Common: &api.ArrivedRelease{Name: "1"}, Behind: []api.ArrivedRelease{{Name: "2", By: "person", Who: "ada"}},
			Fields: []api.FieldChange{{File: "values.yaml", Path: "tag", From: &two, To: &one}, {File: "a.yaml", From: &one}}},
			[]string{"Only dev had:", "2", "0001-01-01T00:00:00Z", "person ada", "Both had, last:", "1", "FIELD", "dev", "prod", "values.yaml: tag", "2\ufffd[31m", "1", "a.yaml", "1", "-"}},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := PrintComparison(&b, &c.comparison); err != nil {
				t.Fatal(err)
			}
			var cells []string
			for line := range strings.Lines(b.String()) {
				for cell := range strings.SplitSeq(strings.TrimSpace(line), "   ") {
					if cell = strings.TrimSpace(cell); cell != "" {
						cells = append(cells, cell)
					}
				}
			}
			if !slices.Equal(cells, c.want) {
				t.Errorf("it prints %q, not %q", cells, c.want)
			}
		})
	}
}
