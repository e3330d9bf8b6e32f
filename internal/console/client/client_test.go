package client_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/console/client"
	"github.com/liftlock/liftlock/internal/store"
)

// startConsole runs a real console over a store with one component and two promotions.
func startConsole(t *testing.T) (address string, orders *[]console.Command) {
	t.Helper()
	ctx := t.Context()
	s, err := store.Open(ctx, "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	data := `{"unit":{"repo":"hub:acme/fleet","pipeline":"shop","component":"a/b"},"decision":{"envs":[
		{"environment":"dev","state":"verified","promotion":"idle","reason":"synced and healthy","release":"aa","name":"1.5.0"},
		{"environment":"prod","state":"verified","promotion":"open","reason":"synced and healthy","release":"bb","name":"1.4.2\u001b[2J","candidate":"aa","candidateName":"1.5.0","pull":14,
		 "gates":[{"gate":"approvals","outcome":"wait","reason":"1 of 2"}]}]}}`
	if err := s.Tx(ctx, "records", func(tx *store.Tx) error {
		for _, repo := range []string{"hub:acme/fleet", "hub:acme/data"} {
			if _, err := tx.PutPromotion(ctx, store.Promotion{Unit: repo + "|shop|a/b", Repo: repo, Pipeline: "shop", Component: "a/b", Environment: "prod", Kind: "promotion", Release: "aa", Pull: 14, State: "open"}); err != nil {
				return err
			}
		}
		return tx.PutUnit(ctx, store.Unit{Key: "hub:acme/fleet|shop|a/b", Repo: "hub:acme/fleet", Pipeline: "shop", Component: "a/b", Digest: "1", Data: []byte(data)})
	}); err != nil {
		t.Fatal(err)
	}
	orders = &[]console.Command{}
	h, err := console.New(console.Options{Store: s, Tokens: []console.Token{{Name: "ci", Role: "operator", Secret: "do"}},
		Health: func(context.Context) []api.Trouble { return []api.Trouble{{Part: "argocd hub", Message: "refused"}} },
		Command: func(_ context.Context, o console.Command) (string, error) {
			*orders = append(*orders, o)
			return "noted", nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL, orders
}

func newClient(t *testing.T, address, token string) *client.Client {
	t.Helper()
	c, err := client.New(address, token, "test")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestReads(t *testing.T) {
	address, _ := startConsole(t)
	c := newClient(t, address+"/", "")
	all, err := c.Pipelines(t.Context())
	if err != nil || len(all.Pipelines) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	p, err := c.Pipeline(t.Context(), "hub:acme/fleet", "shop")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	client.PrintTroubles(&b, all.Troubles)
	if err := client.PrintPipeline(&b, p); err != nil {
		t.Fatal(err)
	}
	y, err := c.Why(t.Context(), "", "shop", "a/b", "prod")
	if err != nil {
		t.Fatal(err)
	}
	client.PrintWhy(&b, y)
	want := "! argocd hub: refused\n" +
		"shop (hub:acme/fleet): 1 component, 0 moving, 1 waits for you, 0 held, 0 broken\n" +
		"COMPONENT   DEV              PROD\n" +
		"a/b         1.5.0 verified   1.4.2\uFFFD[2J verified, 1.5.0 open #14\n" +
		"prod carries 1.4.2\uFFFD[2J: verified, synced and healthy\n1.5.0 is in #14: waiting for approvals: 1 of 2\n- approvals: 1 of 2\n"
	if b.String() != want {
		t.Errorf("printed is\n%s\nwant\n%s", b.String(), want)
	}
	if d, err := c.Promotion(t.Context(), 1); err != nil || d.Detail == nil {
		t.Errorf("the promotion is %+v, %v", d, err)
	}
}

func TestFindingPromotions(t *testing.T) {
	address, _ := startConsole(t)
	c := newClient(t, address, "")
	for _, k := range []struct {
		name, repository string
		want             int64
		says             string
	}{
		{"14", "hub:acme/data", 2, ""}, {"#14", "hub:acme/data", 2, ""}, {"!14", "hub:acme/data", 2, ""}, {"#14", "", 0, "several repositories have a pull request #14: hub:acme/data, hub:acme/fleet"},
		{"https://git.example/acme/fleet/pull/14", "", 1, ""}, {"https://git.example/acme/data/-/merge_requests/14/diffs?x=1#note_3", "", 2, ""},
		{"https://git.example/forge/acme/fleet/pulls/14", "", 1, ""}, {"https://git.example/acme/other/pull/14", "", 0, "no promotion is known"},
		{"https://git.example/acme/fleet/issues/14", "", 0, "is no address of a pull request"}, {"https://git.example/%zz", "", 0, "is no address of a pull request"},
		{"#15", "", 0, "no promotion is known"}, {"1", "", 0, "no promotion is known"}, {"web", "", 0, "is no pull request"}, {"#0", "", 0, "is no pull request"}, {"-1", "", 0, "is no pull request"}, {"#!14", "", 0, "is no pull request"},
	} {
		found, err := c.FindPull(t.Context(), k.repository, k.name)
		if k.says != "" {
			if err == nil || !strings.Contains(err.Error(), k.says) {
				t.Errorf("%s in %q is %+v, %v", k.name, k.repository, found, err)
			}
			continue
		}
		if err != nil || len(found) != 1 || found[0].ID != k.want {
			t.Errorf("%s in %q is %+v, %v", k.name, k.repository, found, err)
		}
	}
}

// TestFindingLocations holds that a pipeline need not be named where one alone can be meant.
func TestFindingLocations(t *testing.T) {
	address, _ := startConsole(t)
	c := newClient(t, address, "")
	for _, k := range []struct{ pipeline, component, environment, says string }{
		{"shop", "a/b", "prod", ""}, {"", "a/b", "prod", ""}, {"", "a/b", "dev", ""}, {"", "a/c", "prod", `no component "a/c"; did you mean "a/b"?`},
		{"", "a/b", "prdo", `no environment "prdo"; did you mean "prod"?`}, {"shpo", "a/b", "prod", `did you mean "shop"?`},
	} {
		at, err := c.FindLocation(t.Context(), "", k.pipeline, k.component, k.environment)
		if k.says != "" {
			if err == nil || !strings.Contains(err.Error(), k.says) {
				t.Errorf("%+v is %+v, %v", k, at, err)
			}
			continue
		}
		if err != nil || at.Repository != "hub:acme/fleet" || at.Pipeline != "shop" || at.Environment.Environment != k.environment {
			t.Errorf("%+v is %+v, %v", k, at, err)
		}
	}
}

func TestCommands(t *testing.T) {
	address, orders := startConsole(t)
	c := newClient(t, address, "do")
	if a, err := c.SendPipelineCommand(t.Context(), "shop", "hold", api.PipelineCommand{Component: "a/b", Reason: "later"}); err != nil || a != "noted" {
		t.Fatalf("%q, %v", a, err)
	}
	if a, err := c.SendPromotionCommand(t.Context(), 1, "revert", api.PromotionCommand{}); err != nil || a != "noted" {
		t.Fatalf("%q, %v", a, err)
	}
	if o := *orders; o[0].Scope != "component" || o[0].Reason != "later" || o[1].Pull != 14 || o[0].Source == o[1].Source {
		t.Errorf("the orders are %+v", o)
	}
	var refused *client.Refused
	if _, err := c.SendPromotionCommand(t.Context(), 1, "skip", api.PromotionCommand{Gate: "soak"}); !errors.As(err, &refused) || refused.Status != 403 {
		t.Errorf("skip: %v", err)
	}
	if _, err := newClient(t, address, "").SendPromotionCommand(t.Context(), 1, "retry", api.PromotionCommand{}); err == nil || !strings.Contains(err.Error(), "LIFTLOCK_TOKEN") {
		t.Errorf("without a token: %v", err)
	}
	if _, err := newClient(t, address, "wrong").SendPromotionCommand(t.Context(), 1, "retry", api.PromotionCommand{}); err == nil || !strings.Contains(err.Error(), "none of this server's API tokens") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with a wrong token: %v", err)
	}
}

func TestUnexpectedServers(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"a page":    {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }, "not as Liftlock does"},
		"not there": {http.NotFound, "404"},
		"sends away": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/login", http.StatusFound)
		}, "https://elsewhere.example/login"},
		"a plain error": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", http.StatusBadGateway) }, "502 Bad Gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(c.handler)
			defer srv.Close()
			if _, err := newClient(t, srv.URL, "secret").SendPromotionCommand(t.Context(), 1, "retry", api.PromotionCommand{}); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("the error is %v", err)
			}
		})
	}
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := newClient(t, srv.URL, "").Pipelines(ctx); err == nil || !strings.Contains(err.Error(), "reach the server") {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := newClient(t, srv.URL, "").Pipeline(ctx, "", ".."); err == nil || !strings.Contains(err.Error(), "can't be a name") {
		t.Errorf("a name that climbs: %v", err)
	}
	for _, bad := range []string{"", "liftlock.example", "ftp://liftlock.example", "https://", "https://user:pw@liftlock.example", "https://liftlock.example?x=1"} {
		if _, err := client.New(bad, "", ""); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
