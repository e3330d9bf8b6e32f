package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/store"
)

// serveConsole runs a real console and points the commands at it.
func serveConsole(t *testing.T, more ...any) *[]console.Command {
	t.Helper()
	address, commands := startConsole(t, more...)
	t.Setenv(serverVariable, address)
	t.Setenv(tokenVariable, consoleToken)
	return commands
}

// consoleToken may do everything there.
const consoleToken = "do"

// startConsole runs a real console with one component and two promotions, and more units and promotions.
func startConsole(t *testing.T, more ...any) (address string, commands *[]console.Command) {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite://"+filepath.Join(t.TempDir(), "liftlock.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	data := `{"unit":{"repo":"hub:acme/fleet","pipeline":"shop","component":"web"},"decision":{"envs":[
		{"environment":"dev","state":"verified","promotion":"idle","name":"1.5.0"},{"environment":"prod","state":"baseline","promotion":"idle","name":"1.4.2","why":[{"code":"manual","text":"open: manual"}]}]}}`
	if err := s.Tx(t.Context(), "records", func(tx *store.Tx) error {
		if err := tx.PutUnit(t.Context(), store.Unit{Key: "hub:acme/fleet|shop|web", Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web", Digest: "1", Data: []byte(data)}); err != nil {
			return err
		}
		promotions := []store.Promotion{{Environment: "prod", Kind: "promotion", Pull: 14, State: "open"}, {Environment: "dev", Kind: "revert", Pull: 12, State: "closed"}}
		for _, m := range more {
			switch m := m.(type) {
			case store.Promotion:
				promotions = append(promotions, m)
			case store.Unit:
				if err := tx.PutUnit(t.Context(), m); err != nil {
					return err
				}
			}
		}
		for _, p := range promotions {
			p.Unit, p.Repo, p.Pipeline, p.Component = "hub:acme/fleet|shop|web", "hub:acme/fleet", "shop", "web"
			p.CreatedAt, p.UpdatedAt = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
			if _, err := tx.PutPromotion(t.Context(), p); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	entry := store.Audit{At: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), Actor: "ada", Via: "comment", Verb: "hold", Subject: "hub:acme/fleet|shop|web #14 hold pr", Reason: "odd", Outcome: "taken"}
	if err := s.AddAudit(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	merge := store.Audit{At: entry.At.AddDate(-1, 0, 0), Actor: "lock", Via: "server", Verb: "merge", Subject: "hub:acme/fleet|shop|web #13 merge", Environment: "qa", Reason: "soak skipped by ada", Outcome: "merged as c",
		Data: []byte(`{"kind":"promotion","inputs":"00ff","gates":[{"gate":"soak","outcome":"pass","reason":"skipped by ada"}]}`)}
	if err := s.AddAudit(t.Context(), merge); err != nil {
		t.Fatal(err)
	}
	orders := &[]console.Command{}
	h, err := console.New(console.Options{Store: s, Tokens: []console.Token{{Name: "ci", Role: "breakglass", Secret: consoleToken}},
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

// run runs a command line and returns what it prints.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := Root()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestRemoteQuestions(t *testing.T) {
	serveConsole(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"status"}, "web         1.5.0 verified   1.4.2 baseline"},
		{[]string{"status", "shop"}, "shop (hub:acme/fleet): 1 component,"},
		{[]string{"status", "-o", "json"}, `"component": "web"`},
		{[]string{"status", "shop", "web"}, "prod carries 1.4.2: baseline\n- open: manual"},
		{[]string{"why", "shop", "web", "prod"}, "- open: manual"},
		{[]string{"why", "shop", "web", "-o", "json"}, `"text": "dev carries`},
		{[]string{"status", "-o", "wide"}, "web         prod          1.4.2     baseline   -       0 of 0     -          -              open: manual\n"},
		{[]string{"status", "-o", "yaml"}, "    component: web\n"},
		{[]string{"why", "web", "prod"}, "prod carries 1.4.2: baseline\n- open: manual\n"},
		{[]string{"why", "14"}, "prod carries 1.4.2: baseline\n- open: manual\n"},
		{[]string{"why", "https://git.example/acme/fleet/pull/12"}, "dev carries 1.5.0: verified\n"},
		{[]string{"why", "shop", "web", "-o", "wide"}, "prod carries 1.4.2: baseline\n"},
		{[]string{"why", "shop", "web", "-o", "yaml"}, "  text: |-\n    prod carries 1.4.2: baseline\n"},
		{[]string{"compare", "shop", "web", "dev", "prod"}, "what dev carries isn't known"},
		{[]string{"compare", "shop", "web", "dev", "prod", "-o", "json"}, `"unknown": "what dev carries`},
	} {
		out, err := run(t, c.args...)
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%v: %v\n%s\nwant %q", c.args, err, out, c.want)
		}
	}
}

// Programs get what a command was answered, in the API's shape; a format that there isn't
// gives no command.
func TestRepliesAsJSON(t *testing.T) {
	given := serveConsole(t)
	for _, args := range [][]string{{"promote", "shop", "web", "prod"}, {"hold", "shop", "web"}} {
		out, err := run(t, append(args, "-o", "json")...)
		var reply api.CommandReply
		if err != nil || json.Unmarshal([]byte(out), &reply) != nil || reply.Text == "" {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	if out, err := run(t, "hold", "shop", "web", "-o", "yaml"); err != nil || out != "answer: noted\n" {
		t.Errorf("%v\n%s", err, out)
	}
	before := len(*given)
	for _, args := range [][]string{{"promote", "shop", "web", "prod"}, {"retry", "#14"}} {
		if out, err := run(t, append(args, "-o", "xml")...); err == nil || !strings.Contains(err.Error(), `-o is text, json or yaml, not "xml"`) || len(*given) != before {
			t.Errorf("%q: %v\n%s%v", args, err, out, *given)
		}
	}
}

// TestEveryCommandHasJSON: each that answers has -o json and -o yaml.
func TestEveryCommandHasJSON(t *testing.T) {
	runsOrHelps := []string{"serve", "demo", "playground", "sandbox", "propose", "completion", "help"}
	for _, c := range Root().Commands() {
		if slices.Contains(runsOrHelps, c.Name()) {
			continue
		}
		if f := c.Flags().Lookup("output"); f == nil || f.Shorthand != "o" || !strings.Contains(f.Usage, "json") || !strings.Contains(f.Usage, "yaml") {
			t.Errorf("liftlock %s has no -o json and yaml", c.Name())
		}
	}
}

// TestPromoteWaits holds that a promotion that isn't verified in time is no success, and that the
// command is given all the same.
func TestPromoteWaits(t *testing.T) {
	given := serveConsole(t)
	out, err := run(t, "promote", "shop", "web", "prod", "--wait", "--timeout", "1ns")
	if err == nil || !strings.Contains(err.Error(), "not verified after 1ns") || !strings.Contains(out, "noted") || len(*given) != 1 {
		t.Errorf("%v\n%s%v", err, out, *given)
	}
	if out, err = run(t, "promote", "shop", "nobody", "prod", "--wait"); err == nil || !strings.Contains(err.Error(), `no component "nobody"`) || len(*given) != 1 {
		t.Errorf("%v\n%s%v", err, out, *given)
	}
	if out, err = run(t, "diff", "#99"); err == nil || !strings.Contains(err.Error(), "no promotion is known with the pull request #99") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The server says what there is to complete.
func TestCompletion(t *testing.T) {
	serveConsole(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"promote", ""}, "shop\n12\tweb into dev, closed\n14\tweb into prod, open\n:"},
		{[]string{"skip", ""}, "shop\n14\tweb into prod, open\n:"},
		{[]string{"revert", ""}, "shop\n:"},
		{[]string{"revert", "14", ""}, ":"},
		{[]string{"diff", "shop", "web", ""}, "dev\nprod\n:"},
		{[]string{"promote", "shop", ""}, "web\n:"},
		{[]string{"promote", "other", ""}, ":"},
		{[]string{"why", "shop", "web", ""}, "dev\nprod\n:"},
		{[]string{"why", ""}, "shop\n14\tweb into prod, open\n:"},
		{[]string{"unhold", "--promotion", ""}, "14\tweb into prod, open\n:"},
		{[]string{"audit", "shop", "--environment", ""}, "dev\nprod\n:"},
	} {
		out, err := run(t, append([]string{"__complete"}, c.args...)...)
		if err != nil || !strings.HasPrefix(out, c.want) {
			t.Errorf("%v: %v\n%s\nwant %q", c.args, err, out, c.want)
		}
	}
}

func TestAudit(t *testing.T) {
	serveConsole(t)
	const entry = "hub:acme/fleet|shop|web #14 hold pr"
	for _, c := range []struct {
		args []string
		want string
		err  string
	}{
		{[]string{"audit"}, "ada    comment   " + entry + "   taken         odd\n", ""},
		{[]string{"audit", "shop", "web", "--by", "ada", "--verb", "hold", "--since", "2000-01-01"}, entry, ""},
		{[]string{"audit", "shop", "web", "--environment", "prod"}, "nothing is on record\n", ""},
		{[]string{"audit", "--since", "1h"}, "nothing is on record\n", ""},
		{[]string{"audit", "--until", "2000-01-01"}, "nothing is on record\n", ""},
		{[]string{"audit", "-o", "jsonl"}, `"verb":"hold","subject":"` + entry + `","reason":"odd","outcome":"taken","repository":"hub:acme/fleet","pipeline":"shop","component":"web","pull":{"number":14},"command":"hold pr"}` + "\n", ""},
		{[]string{"audit", "-o", "json"}, `"actor": "ada"`, ""},
		{[]string{"audit", "--verb", "merge"}, "merged as c   soak skipped by ada\n                                         gate soak                         pass          skipped by ada\n                                         inputs                            sha256        00ff\n", ""},
		{[]string{"audit", "-o", "yaml"}, "- actor: ada\n", ""},
		{[]string{"audit", "-o", "wide", "--verb", "hold"}, "REASON   ENVIRONMENT   PULL REQUEST\n", ""},
		{[]string{"audit", "-o", "wide", "--verb", "hold"}, "taken     odd      -             #14\n", ""},
		{[]string{"audit", "-o", "xml"}, "", `-o is table, wide, json, yaml or jsonl, not "xml"`},
		{[]string{"audit", "--since", "ever"}, "", "--since is how long ago (24h)"},
		{[]string{"audit", "--limit", "0"}, "", "1 or more"},
		{[]string{"audit", "pay"}, "", "no pipeline"},
	} {
		out, err := run(t, c.args...)
		if c.err == "" && (err != nil || !strings.Contains(out, c.want)) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%v: %v\n%s\nwant %q %s", c.args, err, out, c.want, c.err)
		}
	}
}

func TestRemoteCommands(t *testing.T) {
	orders := serveConsole(t)
	for _, c := range []struct {
		args string
		want console.Command
	}{
		{"promote shop web prod", console.Command{Verb: "promote", Component: "web", Environment: "prod"}},
		{"hold shop web --reason later", console.Command{Verb: "hold", Scope: "component", Component: "web", Reason: "later"}},
		{"hold shop web --for 2h", console.Command{Verb: "hold", Scope: "component", Component: "web", For: 2 * time.Hour}},
		{"hold --promotion #14 --until 2027-01-03", console.Command{Verb: "hold", Scope: "pr", Component: "web", Environment: "prod", Pull: 14, Until: time.Date(2027, 1, 3, 0, 0, 0, 0, time.UTC)}},
		{"hold shop --environment prod", console.Command{Verb: "hold", Scope: "environment", Environment: "prod"}},
		{"unhold shop --all --repository hub:acme/fleet", console.Command{Verb: "unhold", Scope: "pipeline"}},
		{"hold --promotion #14", console.Command{Verb: "hold", Scope: "pr", Component: "web", Environment: "prod", Pull: 14}},
		{"retry 14", console.Command{Verb: "retry", Component: "web", Environment: "prod", Pull: 14}},
		{"revert #14 --reason slow", console.Command{Verb: "revert", Component: "web", Environment: "prod", Pull: 14, Reason: "slow"}},
	} {
		*orders = nil
		out, err := run(t, strings.Fields(c.args)...)
		if err != nil || out != "noted\n" || len(*orders) != 1 {
			t.Errorf("%s: %v, %q, %d orders", c.args, err, out, len(*orders))
			continue
		}
		c.want.Repo, c.want.Pipeline, c.want.By, c.want.Role, c.want.Via, c.want.Source = "hub:acme/fleet", "shop", "ci", "breakglass", "api", (*orders)[0].Source
		if (*orders)[0] != c.want {
			t.Errorf("%s gives %+v, want %+v", c.args, (*orders)[0], c.want)
		}
	}
}

func TestRemoteCommandsThatAreRefused(t *testing.T) {
	orders := serveConsole(t)
	for args, want := range map[string]string{
		"hold":                               "name a pipeline",
		"hold shop":                          "say what it is about",
		"hold shop web --for ever":           "write it like 90m, 2h or 3d",
		"hold shop web --environment prod":   "name one of them",
		"hold shop --promotion 1":            "stands alone",
		"promote shop web qa":                `no environment "qa"`,
		"promote shop":                       "takes (PULL [ENVIRONMENT] | [PIPELINE] COMPONENT ENVIRONMENT)",
		"promote 14 prod now":                "takes (PULL [ENVIRONMENT] | [PIPELINE] COMPONENT ENVIRONMENT)",
		"retry web":                          "takes (PULL | [PIPELINE] COMPONENT ENVIRONMENT)",
		"why 14 prod":                        "takes (PULL | PIPELINE COMPONENT [ENVIRONMENT] | COMPONENT ENVIRONMENT)",
		"why web prdo":                       "no pipeline \"web\"",
		"retry 14 prod":                      "takes (PULL | [PIPELINE] COMPONENT ENVIRONMENT)",
		"retry 1":                            "no promotion is known with the pull request 1",
		"skip 14 soak":                       "takes (PULL | [PIPELINE] COMPONENT ENVIRONMENT) GATE REASON",
		"hold 14 --reverts":                  "14 stands alone",
		"hold shop web prod --reverts":       "held by its pull request",
		"hold shpo web":                      `did you mean "shop"?`,
		"hold web dev":                       "no pull request into dev is open for web; name the component alone",
		"skip web prod soak quickly,please":  "no pull request into prod is open for web; see liftlock why",
		"revert web prod":                    "what prod carries of web came by no pull request of Liftlock's",
		"revert web prdo":                    `no environment "prdo"; did you mean "prod"?`,
		"retry #15":                          "no promotion is known",
		"skip 14 soak hurry":                 "at least 10 characters",
		"status none":                        `no pipeline "none"`,
		"status shp":                         `no pipeline "shp" with a component; did you mean "shop"?`,
		"why shpo web":                       `no pipeline "shpo" with a component; did you mean "shop"?`,
		"why shop wbe":                       `no component "wbe"; did you mean "web"?`,
		"hold shop --environment prd":        `no environment "prd"; did you mean "prod"?`,
		"promote shop web prdo --wait":       `no environment "prdo"; did you mean "prod"?`,
		"promote shop wep prod --wait":       `no component "wep"; did you mean "web"?`,
		"status -o xml":                      "-o is table, wide, json or yaml",
		"status --server liftlock.example":   "the server's address",
		"retry 14 --token-file /nonexistent": "read the API token",
	} {
		if out, err := run(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %q; want an error with %q", args, err, out, want)
		}
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, "retry", "14", "--token-file", file); err == nil || !strings.Contains(err.Error(), "none of this server's API tokens") {
		t.Errorf("a wrong token in a file: %v", err)
	}
	if len(*orders) > 0 {
		t.Errorf("orders were given: %+v", *orders)
	}
}

// TestJSONIsAsWritten: what a shell shows has no escapes for HTML.
func TestJSONIsAsWritten(t *testing.T) {
	var b strings.Builder
	if err := printJSON(&b, map[string]string{"cure": "<a> & b"}); err != nil || !strings.Contains(b.String(), `"cure": "<a> & b"`) {
		t.Errorf("%v\n%s", err, &b)
	}
}
