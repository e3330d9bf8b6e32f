package cli

import (
	"strings"
	"testing"
)

// TestPromotions holds which promotions are listed, and that their numbers in the store aren't shown.
func TestPromotions(t *testing.T) {
	serveConsole(t)
	const (
		title  = "PULL   KIND        PIPELINE   COMPONENT   ENVIRONMENT   RELEASE   STATE   CHANGED\n"
		opened = "#14    promotion   shop       web         prod          -         open    2026-03-02T09:00:00Z\n"
		none   = "there are no such promotions\n"
	)
	for args, want := range map[string]string{
		"":                               title + opened,
		"shop":                           title + opened,
		"shop web prod":                  title + opened,
		"shop --environment prod":        title + opened,
		"--repository hub:acme/fleet":    title + opened,
		"shop web dev":                   none,
		"--repository hub:acme/none":     none,
		"--state reverted,merged":        none,
		"--state open --kind promotion":  title + opened,
		"--kind revert":                  none,
		"--limit 1 --all":                "#12    revert   shop       web         dev           -         closed   2026-03-02T09:00:00Z\n",
		"--all":                          "#14    promotion   shop       web         prod          -         open     2026-03-02T09:00:00Z\n",
		"--closed":                       "#12    revert   shop       web         dev           -         closed   2026-03-02T09:00:00Z\n",
		"-o wide":                        "CHANGED                STANDS   OPENED                 REPOSITORY       URL\n",
		"-o wide --closed":               "2026-03-02T09:00:00Z   -        2026-03-01T09:00:00Z   hub:acme/fleet   -\n",
		"shop -o json":                   `"number": 14`,
		"-o yaml":                        "- component: web\n  createdAt: \"2026-03-01T09:00:00Z\"\n  environment: prod\n  kind: promotion\n  pipeline: shop\n  pull:\n    number: 14\n",
		"--state verified -o json":       `"promotions": []`,
		"--all --kind revert --limit 10": "revert",
	} {
		out, err := run(t, append([]string{"promotions"}, strings.Fields(args)...)...)
		if err != nil || !strings.Contains(out, want) || strings.Contains(out, `"id"`) || strings.Contains(out, " id:") {
			t.Errorf("%s: %v\n%s\nwant\n%s", args, err, out, want)
		}
	}
	for args, want := range map[string]string{
		"shp":                              `no pipeline "shp" with a component; did you mean "shop"?`,
		"shop wbe":                         `no component "wbe"; did you mean "web"?`,
		"shop web prd":                     `no environment "prd"; did you mean "prod"?`,
		"shop --environment prd":           `no environment "prd"; did you mean "prod"?`,
		"--all --closed":                   "name one of them",
		"--all --state open":               "name one of them",
		"shop web prod --environment prod": "named twice",
		"--limit 0":                        "1 or more",
		"--kind release":                   "promotion or revert",
		"shop -o text":                     "-o is table, wide, json or yaml",
	} {
		if out, err := run(t, append([]string{"promotions"}, strings.Fields(args)...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\n%s\nwant %s", args, err, out, want)
		}
	}
}
