package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/store"
)

// movingUnit has a release in dev that #12 brought and one that comes into prod by #14.
func movingUnit() store.Unit {
	return store.Unit{Key: "hub:acme/fleet|shop|web", Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web", Digest: "2", Data: []byte(
		`{"unit":{"repo":"hub:acme/fleet","pipeline":"shop","component":"web"},"decision":{"envs":[
		{"environment":"dev","state":"failed","promotion":"idle","name":"1.5.0","landedPull":12},
		{"environment":"prod","state":"verified","promotion":"open","name":"1.4.2","candidateName":"1.5.0","pull":14,"landedPull":12}]},
		"environments":[{"name":"dev"},{"name":"prod","after":["dev"]}]}`)}
}

// TestPromotionArguments holds that all commands take a pull request's number, its address, and a
// component and an environment, with and without a pipeline.
func TestPromotionArguments(t *testing.T) {
	given := serveConsole(t, movingUnit(), store.Promotion{Environment: "dev", Kind: "promotion", Pull: 10, State: "verified"},
		store.Promotion{Environment: "prod", Kind: "promotion", Pull: 11, State: "verified"})
	for args, want := range map[string]console.Command{
		"revert 12":              {Verb: "revert", Environment: "dev", Pull: 12},
		"revert #12 --yes":       {Verb: "revert", Environment: "dev", Pull: 12},
		"revert web dev":         {Verb: "revert", Environment: "dev", Pull: 12},
		"revert shop web dev -y": {Verb: "revert", Environment: "dev", Pull: 12},
		"revert https://git.example/acme/fleet/pull/14": {Verb: "revert", Environment: "prod", Pull: 14},
		"retry web dev":                     {Verb: "retry", Environment: "dev", Pull: 12},
		"retry web prod":                    {Verb: "retry", Environment: "prod", Pull: 14},
		"skip web prod soak quickly,please": {Verb: "skip", Environment: "prod", Pull: 14, Gate: "soak", Reason: "quickly,please"},
		"skip 14 soak quickly,please":       {Verb: "skip", Environment: "prod", Pull: 14, Gate: "soak", Reason: "quickly,please"},
		"hold 14":                           {Verb: "hold", Scope: "pr", Environment: "prod", Pull: 14},
		"hold web prod --reason odd":        {Verb: "hold", Scope: "pr", Environment: "prod", Pull: 14, Reason: "odd"},
		"unhold shop web prod":              {Verb: "unhold", Scope: "pr", Environment: "prod", Pull: 14},
		"hold --promotion 14":               {Verb: "hold", Scope: "pr", Environment: "prod", Pull: 14},
		"hold shop web":                     {Verb: "hold", Scope: "component"},
		"promote web prod":                  {Verb: "promote", Environment: "prod"},
		"promote 14":                        {Verb: "promote", Environment: "prod"},
		"promote 10":                        {Verb: "promote", Environment: "prod"}, // it is merged, so that the next one is meant
		"promote 14 dev":                    {Verb: "promote", Environment: "dev"},
		"promote !12":                       {Verb: "promote", Environment: "dev"}, // it was closed
		"promote web prod --repository hub:acme/fleet": {Verb: "promote", Environment: "prod"},
	} {
		*given = nil
		out, err := run(t, strings.Fields(args)...)
		if err != nil || len(*given) != 1 {
			t.Errorf("%s: %v\n%s", args, err, out)
			continue
		}
		got := (*given)[0]
		want.Repo, want.Pipeline, want.Component = "hub:acme/fleet", "shop", "web"
		want.By, want.Role, want.Via, want.Source = "ci", "breakglass", "api", got.Source
		if got != want {
			t.Errorf("%s gives %+v, want %+v", args, got, want)
		}
	}
}

// TestNextEnvironment holds that a merged promotion with nothing behind it is promoted nowhere.
func TestNextEnvironment(t *testing.T) {
	serveConsole(t, movingUnit(), store.Promotion{Environment: "prod", Kind: "promotion", Pull: 11, State: "verified"})
	if out, err := run(t, "promote", "11"); err == nil || !strings.Contains(err.Error(), "#11 is merged into prod, after which no environment comes") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestConfirmation holds that only yes is yes.
func TestConfirmation(t *testing.T) {
	for text, want := range map[string]error{"y\n": nil, "Yes\n": nil, "yes": nil, "n\n": errNotConfirmed, "\n": errNotConfirmed, "": errNotConfirmed,
		"yesterday\n": errNotConfirmed} {
		var b strings.Builder
		if err := confirmCommand(strings.NewReader(text), &b, "Revert web 1.5.0 in prod (#14)"); !errors.Is(err, want) ||
			b.String() != "Revert web 1.5.0 in prod (#14)? [y/N] " {
			t.Errorf("%q: %v, %q", text, err, b.String())
		}
	}
}
