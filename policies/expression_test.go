package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

func promotionFacts() Facts {
	return Facts{
		Now: time.Date(2026, 11, 23, 10, 30, 0, 0, time.UTC),
		Promotion: &Promotion{
			Pipeline: "shop", Environment: "prod", Component: "web",
			Release: &Release{ID: strings.Repeat("a", 64), Short: "aaaaaaaaaaaa", Name: "v1.5.0",
				Images: []Image{{Name: "registry.example/web", Tag: "v1.5.0", File: "kustomization.yaml"}},
				Fields: []Field{{File: "kustomization.yaml", Field: "images[name=registry.example/web].newTag", Old: "v1.4.2", New: "v1.5.0"}}},
			Commit: &Commit{SHA: strings.Repeat("b", 40), Message: "Release 1.5.0\n\nTicket: CHG-7\n", Trailers: map[string]string{"Ticket": "CHG-7"},
				Time: time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)},
			Diff:     &Diff{Added: []string{"ConfigMap"}, Changed: []string{"ConfigMap", "Deployment"}},
			Upstream: []UpstreamEnvironment{{Name: "qa", Verified: true, VerifiedAt: time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC), HealthyFor: 150 * time.Minute}},
			Pull:     PullRequest{Number: 14, Labels: []string{"env/prod", "liftlock"}},
			Targets:  []Target{{Name: "web-prod-eu", Cluster: "eu-1", Namespace: "shop"}},
		},
		Authors: []Account{{ID: 1, Login: "ada"}, {ID: 2, Login: "bob"}, {Login: "ada"}},
	}
}

func TestExpression(t *testing.T) {
	for expression, want := range map[string]Result{
		`true`:  {Outcome: Pass, Reason: "the expression is true"},
		`false`: {Outcome: Wait, Reason: "the expression is false"},
		`size(release.images) > 0 && release.images.all(i, i.tag.matches("^v[0-9.]+$"))`:                     {Outcome: Pass, Reason: "the expression is true"},
		`release.images.all(i, i.tag != "")`:                                                                 {Outcome: Pass, Reason: "the expression is true"},
		`release.images.all(i, i.digest != "")`:                                                              {Outcome: Wait, Reason: "the expression is false"},
		`release.fields.exists(f, f.field.endsWith("newTag") && f.old == "v1.4.2" && f.new.startsWith("v"))`: {Outcome: Pass, Reason: "the expression is true"},
		`pipeline == "shop" && environment == "prod" && component == "web" && release.short == "aaaaaaaaaaaa" && release.id.startsWith(release.short) && release.name == "v1.5.0"`: {Outcome: Pass, Reason: "the expression is true"},
		`"hotfix" in pull.labels || pull.number == 14`:                                                                                            {Outcome: Pass, Reason: "the expression is true"},
		`targets.all(t, t.cluster == "eu-1" && t.name.lowerAscii() == t.name)`:                                                                    {Outcome: Pass, Reason: "the expression is true"},
		`upstream.all(u, u.verified && now - u.verifiedAt > duration("2h"))`:                                                                      {Outcome: Pass, Reason: "the expression is true"},
		`upstream.all(u, u.healthyFor >= duration("2h30m"))`:                                                                                      {Outcome: Pass, Reason: "the expression is true"},
		`release.authors == ["ada", "bob"] && !("eve" in release.authors)`:                                                                        {Outcome: Pass, Reason: "the expression is true"},
		`release.commit.message.startsWith("Release") && release.commit.trailers["Ticket"].startsWith("CHG-") && release.commit.sha.size() == 40`: {Outcome: Pass, Reason: "the expression is true"},
		`release.commit.trailers["Reviewed-By"] == "ada"`:                                                                                         {Outcome: Wait, Reason: "the expression can't be evaluated: no such key: Reviewed-By"},
		`"Reviewed-By" in release.commit.trailers`:                                                                                                {Outcome: Wait, Reason: "the expression is false"},
		`now - release.commit.time > duration("3h")`:                                                                                              {Outcome: Pass, Reason: "the expression is true"},
		`diff.removed.size() == 0 && "Deployment" in diff.changed && diff.added == ["ConfigMap"]`:                                                 {Outcome: Pass, Reason: "the expression is true"},
		`!diff.changed.exists(k, k in ["CustomResourceDefinition", "PersistentVolumeClaim"])`:                                                     {Outcome: Pass, Reason: "the expression is true"},
		`!pull.draft && targets.all(t, t.namespace == "shop")`:                                                                                    {Outcome: Pass, Reason: "the expression is true"},
		`now.getHours("Europe/Berlin") < 11`:                                                                                                      {Outcome: Wait, Reason: "the expression is false"},
		`{"outcome": "wait", "reason": "ask " + component}`:                                                                                       {Outcome: Wait, Reason: "ask web"},
		`{"outcome": "fail", "reason": "never\non a Monday"}`:                                                                                     {Outcome: Fail, Reason: "never on a Monday"},
		`{"outcome": "pass"}`:           {Outcome: Pass, Reason: "the expression says pass"},
		`{"outcome": "maybe"}`:          {Outcome: Wait, Reason: `the expression gives the outcome "maybe"; it must be pass, wait or fail`},
		`{"reason": "none"}`:            {Outcome: Wait, Reason: `the expression gives the outcome ""; it must be pass, wait or fail`},
		`release.images[7].tag == "v1"`: {Outcome: Wait, Reason: "the expression can't be evaluated: index out of bounds: 7"},
		`release.fields[0].new.split("v")[1].split(".").map(n, int(n)) == [1, 5, 0]`: {Outcome: Pass, Reason: "the expression is true"},
		`int(release.name) == 1`: {Outcome: Wait, Reason: `the expression can't be evaluated: type conversion error from 'string' to 'int'`},
	} {
		t.Run(expression, func(t *testing.T) {
			e := Expression(expression)
			gate, facts := Gate{Expression: &e}, promotionFacts()
			got := gate.Evaluate(facts)
			if got.Gate != "expression" || got.Outcome != want.Outcome || got.Reason != want.Reason {
				t.Errorf("it says %+v, want %+v", got, want)
			}
			next := time.Time{}
			if strings.Contains(expression, "now") || strings.Contains(expression, "healthyFor") {
				next = facts.Now.Add(time.Minute)
			}
			if !got.Next.Equal(next) || !got.Until.IsZero() {
				t.Errorf("it looks again at %s and shows %s, want %s and nothing", got.Next, got.Until, next)
			}
		})
	}
}

// TestExpressionOverTheUnknown holds that an expression waits for what nobody knows, with
// the reason, and only where its answer hangs on it.
func TestExpressionOverTheUnknown(t *testing.T) {
	const authors, commit, diff = "the forge doesn't tell who pushed it", "no history tells which commit brought it", "web-prod: the chart can't be rendered"
	for expression, want := range map[string]string{
		`"ada" in release.authors`:                                            authors,
		`release.authors.all(a, a != "bob")`:                                  authors,
		`!release.authors.exists(a, a == "bob")`:                              authors,
		`[release].all(r, r.authors.size() < 3)`:                              authors,
		`size(release.authors) == 0`:                                          authors,
		`has(release.authors)`:                                                authors,
		`release.commit.time < now`:                                           commit,
		`release.commit.trailers["Ticket"] != ""`:                             commit,
		`has(release.commit.message)`:                                         commit,
		`diff.removed.size() == 0`:                                            diff,
		`!("Deployment" in diff.changed)`:                                     diff,
		`diff == diff`:                                                        diff,
		`{"outcome": "pass", "reason": release.authors[0]}`:                   authors,
		`{"outcome": diff.removed.size() == 0 ? "pass" : "fail"}`:             diff,
		`"ada" in release.authors && diff.removed.size() == 0`:                authors + "; " + diff,
		`component == "web" || "ada" in release.authors`:                      "",
		`diff.removed.size() == 0 || environment == "prod"`:                   "",
		`environment == "prod" ? release.name == "v1.5.0" : diff.added == []`: "",
		`release.name == "diff" || release.short == "aaaaaaaaaaaa"`:           "",
	} {
		e, facts := Expression(expression), promotionFacts()
		facts.AuthorsErr, facts.Promotion.CommitErr, facts.Promotion.DiffErr = authors, commit, diff
		facts.Promotion.Commit, facts.Promotion.Diff = nil, nil
		got := (&Gate{Expression: &e}).Evaluate(facts)
		switch {
		case want == "" && got.Outcome != Pass:
			t.Errorf("%s: it says %+v, and hangs on nothing unknown", expression, got)
		case want != "" && (got.Outcome != Wait || got.Reason != "the expression can't be evaluated: "+want):
			t.Errorf("%s: it says %+v, want %q", expression, got, want)
		}
	}
	for expression, want := range map[string]string{
		`release.authors.all(a, a != "bob")`: "who made the release isn't known",
		`release.commit.sha != ""`:           "which commit brought the release isn't known",
		`diff.added == []`:                   "what the rendered manifests gain and lose isn't known",
	} {
		e, facts := Expression(expression), promotionFacts()
		facts.Authors, facts.Promotion.Commit, facts.Promotion.Diff = nil, nil, nil
		if got := (&Gate{Expression: &e}).Evaluate(facts); got.Outcome != Wait || got.Reason != "the expression can't be evaluated: "+want {
			t.Errorf("%s: it says %+v, want %q", expression, got, want)
		}
	}
}

// TestFactsThatGatesRequire holds what has to be gathered for a gate.
func TestFactsThatGatesRequire(t *testing.T) {
	expression := func(text Expression) Gate { return Gate{Expression: &text} }
	for name, c := range map[string]struct {
		gate                                         Gate
		authors, commit, diff, soakQA, soakFartherUp bool
	}{
		"approvals":                   {gate: Gate{Approvals: &Approvals{Count: 1}}, authors: true},
		"a soak in each before":       {gate: Gate{Soak: &Soak{For: time.Hour}}, soakQA: true},
		"a soak farther up":           {gate: Gate{Soak: &Soak{Environment: "dev", For: time.Hour}}, soakFartherUp: true},
		"a window":                    {gate: Gate{Window: &Window{Cron: "0 9 * * *"}}},
		"an expression":               {gate: expression(`release.name == "v1" && commits != authored`)},
		"one about authors":           {gate: expression(`"ada" in release.authors`), authors: true},
		"one about the commit":        {gate: expression("release.commit.sha != ''"), commit: true},
		"one about the difference":    {gate: expression("size(diff.removed)==0"), diff: true},
		"one about how long":          {gate: expression("upstream.all(u,u.healthyFor>duration('1h'))"), soakQA: true, soakFartherUp: true},
		"one with the word in a text": {gate: expression(`release.name != "diff"`), diff: true},
	} {
		got := []bool{c.gate.RequiresAuthors(), c.gate.RequiresCommit(), c.gate.RequiresDiff(), c.gate.RequiresSoak("qa", true), c.gate.RequiresSoak("dev", false)}
		if want := []bool{c.authors, c.commit, c.diff, c.soakQA, c.soakFartherUp}; !slices.Equal(got, want) {
			t.Errorf("%s: authors, commit, difference, soak in qa and dev are %v, want %v", name, got, want)
		}
	}
}

// TestExpressionIsStopped holds that one that costs more than what it goes through was taken
// to have waits.
func TestExpressionIsStopped(t *testing.T) {
	e, facts := Expression(`targets.all(a, targets.all(b, a.name + b.name != release.name))`), promotionFacts()
	for len(facts.Promotion.Targets) < 2000 {
		facts.Promotion.Targets = append(facts.Promotion.Targets, facts.Promotion.Targets...)
	}
	if got := (&Gate{Expression: &e}).Evaluate(facts); got.Outcome != Wait || !strings.HasPrefix(got.Reason, "the expression can't be evaluated: operation ") {
		t.Errorf("it says %+v", got)
	}
}

// TestExpressionTexts holds that no function makes a text that is longer than is fit for a
// gate, however short the expression is, and that usual ones are made.
func TestExpressionTexts(t *testing.T) {
	tenfold := strings.Repeat(`.replace("a", "aaaaaaaaaa")`, 40)
	for expression, want := range map[string]string{
		`"a"` + tenfold + ` != component`:                                                                                                                       "replace makes a text of more than 65536 bytes",
		`"a"` + strings.ReplaceAll(tenfold, `")`, `", 10)`) + ` != component`:                                                                                   "", // the first ten only
		`"a"` + strings.Repeat(`.replace("", "aaaaaaaaaa")`, 40) + ` != component`:                                                                              "replace makes a text of more than 65536 bytes",
		`"aa"` + strings.Repeat(`.split("").join("aaaaaaaaaa")`, 20) + ` != component`:                                                                          "join makes a text of more than 65536 bytes",
		`targets.map(x, "` + strings.Repeat("a", 1000) + `").map(x, x.split("")).all(x, x.join("` + strings.Repeat("b", 100) + `") != component)`:               "join makes a text of more than 65536 bytes",
		`["` + strings.Repeat("a", 1000) + `"].map(x, "` + strings.Repeat("%s", 100) + `".format([x` + strings.Repeat(", x", 99) + `])).all(x, x != component)`: "format makes a text of more than 65536 bytes",
		`"%s".format([[[[[[[[[[[[component]]]]]]]]]]]]) != component`:                                                                                           "format makes a text of more than 65536 bytes",
		`"%s %s %d".format([component, {"a": [release.name]}, 7]) == "web {\"a\":[\"v1.5.0\"]} 7"`:                                                              "",
		`[component, release.name].join("-") == "web-v1.5.0" && [component, "x"].join() == "webx"`:                                                              "",
		`component.replace("", "-") == "-w-e-b-" && release.name.replace(".", "", 1) == "v15.0"`:                                                                "",
		`strings.quote(component) == "\"web\"" && release.name.upperAscii() == "V1.5.0"`:                                                                        "",
		`release.name.replace("v", "` + strings.Repeat("v", 1500) + `").replace("x", "y").size() == 1505`:                                                       "",
	} {
		e := Expression(expression)
		got := (&Gate{Expression: &e}).Evaluate(promotionFacts())
		if want == "" && got.Outcome != Pass || want != "" && (got.Outcome != Wait || got.Reason != "the expression can't be evaluated: "+want) {
			t.Errorf("%.100s\nsays %s: %s, want %q", expression, got.Outcome, got.Reason, want)
		}
	}
	long := promotionFacts()
	long.Promotion.Commit.Message = strings.Repeat("m", maxExpressionText+1)
	for expression, want := range map[Expression]Outcome{`release.commit.message.replace("a", "b") != ""`: Wait, `strings.quote(release.commit.message) != ""`: Wait, `release.commit.message.size() > 65536`: Pass} {
		if got := (&Gate{Expression: &expression}).Evaluate(long); got.Outcome != want {
			t.Errorf("%s says %+v", expression, got)
		}
	}
}

// TestExpressionPatterns holds that no pattern that is written small, and matches large, takes an
// evaluation past its time. That goes for one that an expression spells out and for one that it
// builds.
func TestExpressionPatterns(t *testing.T) {
	hundredfold := func(last string) string {
		return `"a".replace("a", "aaaaaaaaaa").replace("a", "aaaaaaaaaa").replace("a", ` + last + `)`
	}
	const cannot = "the expression can't be evaluated: "
	for name, c := range map[string]struct{ expression, want string }{
		"a usual one":      {`release.name.matches("^v[0-9]{1,3}([.][0-9]{1,3}){2}$")`, "the expression is true"},
		"one that is told": {`release.name.matches(component)`, "the expression is false"},
		"repeats":          {`component.matches("` + strings.Repeat("(?:a{1000})", 100) + `")`, "the gate is not valid: expression: can't be compiled: the pattern "},
		"nested repeats":   {`component.matches("(?:(?:\\pL?){30}){30}(?:a{100}){10}")`, "the gate is not valid: expression: can't be compiled: the pattern "},
		"built once":       {`component.matches(` + hundredfold(`"[^a]{999}"`) + `)`, cannot + "the pattern "},
		"built for each":   {`"aaaaaaaaaa".replace("a", "aaaaaaaaaa").split("").all(x, !component.matches(` + hundredfold(`x + "{999}"`) + `))`, cannot + "the pattern "},
		"a long one":       {`component.matches(` + hundredfold(`"0123456789012345678901234567890"`) + `)`, cannot + "a pattern is longer than 2048 bytes"},
		"a long text":      {`["aaaaaaaaaa"].map(x, x.replace("a", "aaaaaaaaaa").replace("a", "aaaaaaaaaa").replace("a", "aaaaaaaaaa")).all(x, x.matches("(?:a?){600}b"))`, cannot + "the pattern "},
		"a broken one":     {`component.matches(component.replace("web", "["))`, cannot + "error parsing regexp"},
		"of the unknown":   {`release.commit.message.matches("^Release")`, cannot + "no history tells"},
	} {
		t.Run(name, func(t *testing.T) {
			e, facts := Expression(c.expression), promotionFacts()
			facts.Promotion.Commit, facts.Promotion.CommitErr = nil, "no history tells"
			if got := (&Gate{Expression: &e}).Evaluate(facts); !strings.HasPrefix(got.Reason, c.want) {
				t.Errorf("it says %s: %s, want %q", got.Outcome, got.Reason, c.want)
			}
		})
	}
	when := Metric{When: `string(value).matches("(?:a{1000})(?:a{1000})(?:a{1000})")`}
	if _, err := when.compileAnew(); err == nil || !strings.Contains(err.Error(), "is too large") {
		t.Errorf("a metric's condition: %v", err)
	}
}

// TestTextsAreAddedUp holds that what is as long as a text may be, and goes on, is too long.
func TestTextsAreAddedUp(t *testing.T) {
	full := types.String(strings.Repeat("a", maxExpressionText))
	rest := types.DefaultTypeAdapter.NativeToValue([]string{strings.Repeat("a", maxExpressionText-2), "b"}) // an entry counts 2 besides
	for name, values := range map[string][]ref.Val{"one after the other": {full, types.String("b")}, "in a list": {rest}} {
		if got := addSizes(values...); got <= maxExpressionText {
			t.Errorf("%s: %d", name, got)
		}
	}
	if got := addSizes(full); got != maxExpressionText {
		t.Errorf("it counts %d of %d", got, maxExpressionText)
	}
}

// TestExpressionCost holds which expressions are refused for what they may cost, and that no
// usual one is.
func TestExpressionCost(t *testing.T) {
	semver := `"^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)(?:-((?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\\.(?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?$"`
	for expression, refused := range map[string]bool{
		`release.images.all(i, i.tag.matches(` + semver + `))`:                                                        false,
		`upstream.all(u, u.verified && release.images.all(i, i.tag != "" || targets.exists(t, t.cluster == u.name)))`: false,
		`release.images.all(i, release.fields.exists(f, f.new == i.tag))`:                                             false,
		`release.commit.message.matches("(?m)^Ticket: CHG-[0-9]+$")`:                                                  false,
		`upstream.filter(u, u.verified).map(u, u.name).all(n, n != "")`:                                               false,
		`diff == diff`: false,
		`targets.all(a, targets.all(b, targets.all(c, (a.name + b.name + c.name).matches("(a*)*b"))))`:                                                                               true,
		`release.fields.all(f, release.images.all(i, f.new.matches(` + semver + `)))`:                                                                                                true,
		`release.fields.filter(f, f.new != "").filter(f, f.old != "").all(f, (f.new + f.new + f.new + f.new).matches(` + semver + `))`:                                               true,
		`[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, (release.name+release.id+release.id).matches("(a*)*(b*)*c(a*)*")))).size() == 10`: true,
	} {
		e := Expression(expression)
		err := (&Gate{Expression: &e}).Validate()
		if (err != nil) != refused || refused && !strings.HasPrefix(err.Error(), "expression: costs too much: up to ") {
			t.Errorf("%s: %v, want it refused: %t", expression, err, refused)
		}
	}
}

// TestExpressionWarnings holds which expressions are told to mean nothing: those whose answer
// hangs on nothing that is promoted.
func TestExpressionWarnings(t *testing.T) {
	const passes, waits, fails = "expression: is true whatever is promoted, so this gate keeps nothing from merging", "expression: gives wait whatever is promoted, so nothing ever merges", "expression: gives fail whatever is promoted, so nothing ever merges"
	for expression, want := range map[string]string{
		`true`:                                     passes,
		`1 < 2 || environment == "prod"`:           passes,
		`component == "web" || !false`:             passes,
		`{"outcome": "pass", "reason": "later"}`:   passes,
		`[1, 2].all(n, n > 0)`:                     passes,
		`false`:                                    waits,
		`component == "web" && 1 > 2`:              waits,
		`{"outcome": "maybe"}`:                     waits,
		`{"outcome": "fail"}`:                      fails,
		`component == "web"`:                       "",
		`now > timestamp("2026-01-01T00:00:00Z")`:  "",
		`size(release.images) >= 0`:                "",
		`[1][7] == 1`:                              "", // it can't be evaluated, which the gate says itself
		`{"outcome": "pass", "reason": component}`: "",
		`1 +`: "",
	} {
		e, got := Expression(expression), ""
		for _, w := range (&Gate{Expression: &e}).Warnings() {
			got += w.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
	if got := (&Gate{Soak: &Soak{For: time.Hour}}).Warnings(); got != nil {
		t.Errorf("a soak is warned of: %v", got)
	}
}

// TestExpressionIsCompiledOnce holds that an evaluation compiles nothing that was compiled
// before, and that no more than a few are remembered.
func TestExpressionIsCompiledOnce(t *testing.T) {
	e := Expression(`release.name == "compiled once"`)
	first, err := e.compile()
	if err != nil {
		t.Fatal(err)
	}
	again := Expression(string(e))
	if second, err := again.compile(); err != nil || second != first {
		t.Errorf("it is compiled again: %v", err)
	}
	for i := range maxCompiledExpressions + 1 {
		other := Expression(fmt.Sprintf("pull.number == %d", i))
		if _, err := other.compile(); err != nil {
			t.Fatal(err)
		}
	}
	if n := compiledExpressions.Stats().Entries; n != maxCompiledExpressions {
		t.Errorf("%d are remembered", n)
	}
	if third, err := e.compile(); err != nil || third == first {
		t.Errorf("it is remembered past the bound: %v", err)
	}
}

// TestExpressionOverNothing holds that an expression about all images isn't true where
// there is none, unless it says that this is meant.
func TestExpressionOverNothing(t *testing.T) {
	const nothing = "no image in this release, so the expression would be true of nothing; where that is meant, say so with size(release.images) == 0"
	for expression, want := range map[string]string{
		`release.images.all(i, i.tag != "")`:                                    nothing,
		`!release.images.exists(i, i.tag == "")`:                                nothing,
		`environment == "prod" && release.images.all(i, i.tag != "")`:           nothing,
		`release.images.all(i, i.tag != "") ? {"outcome": "pass"} : {"a": "b"}`: nothing,
		`size(release.images) == 0 && targets.all(t, t.cluster != "none")`:      "the expression is true",
		`size(release.images) == 0 || release.images.all(i, i.tag != "")`:       "the expression is true",
		`size(release.images) > 0 && release.images.all(i, i.tag != "")`:        "the expression is false",
		`release.images.exists(i, i.tag == "")`:                                 "the expression is false",
		`release.fields.all(f, f.new != "")`:                                    "the expression is true",
	} {
		e, facts := Expression(expression), promotionFacts()
		facts.Promotion.Release.Images = nil
		got := (&Gate{Expression: &e}).Evaluate(facts)
		if got.Reason != want || (got.Outcome == Pass) != (want == "the expression is true") {
			t.Errorf("%s says %+v, want %q", expression, got, want)
		}
	}
}

func TestExpressionWaitsOnDoubt(t *testing.T) {
	for want, change := range map[string]func(*Facts){
		"what time it is isn't known":                       func(f *Facts) { f.Now = time.Time{} },
		"what is promoted isn't known":                      func(f *Facts) { f.Promotion = nil },
		"what is promoted can't be read: the head is foggy": func(f *Facts) { f.Promotion.Release, f.Promotion.ReleaseErr = nil, "the head is foggy" },
	} {
		e, facts := Expression("true"), promotionFacts()
		change(&facts)
		if got := (&Gate{Expression: &e}).Evaluate(facts); got.Outcome != Wait || got.Reason != want {
			t.Errorf("it says %+v, want %q", got, want)
		}
	}
}

func TestExpressionProblems(t *testing.T) {
	for expression, want := range map[string]string{
		"":                              "is empty; write a condition, like size(release.images) > 0",
		strings.Repeat("x", 2049):       "is longer than 2048 bytes",
		`1 + 1`:                         `must give true or false, or {"outcome": …, "reason": …}; it gives int`,
		`release.commit.author != ""`:   "can't be compiled: line 1, column 15: undefined field 'author'",
		`diff.moved == []`:              "can't be compiled: line 1, column 5: undefined field 'moved'",
		`upstream[0].healthyFor > 3600`: "can't be compiled: line 1, column 24: found no matching overload for '_>_' applied to '(duration, int)'",
		`release.imagez.size()`:         "can't be compiled: line 1, column 8: undefined field 'imagez'",
		"true &&\n  relase.id":          "can't be compiled: line 2, column 3: undeclared reference to 'relase' (in container '')",
		`release.id.matches("[")`:       "can't be compiled: line 1, column 20: invalid matches argument",
		`upstream.all(a, upstream.all(b, upstream.all(c, upstream.all(d, d.verified))))`: "can't be compiled: line 1, column 61: comprehension exceeds nesting limit",
		`["a", 1].size() == 2`:             "can't be compiled: line 1, column 7: expected type 'string' but found 'int'",
		`dyn(release.id)`:                  `must give true or false, or {"outcome": …, "reason": …}; it gives dyn`,
		strings.Repeat("(", 1000):          "",
		strings.Repeat("!", 2000) + "true": "",
		"true":                             "none",
	} {
		e := Expression(expression)
		got := "none"
		if err := (&Gate{Expression: &e}).Validate(); err != nil {
			got = strings.TrimPrefix(err.Error(), "expression: ")
		}
		if got != want && (want != "" || got == "none" && !strings.HasPrefix(expression, "!")) {
			t.Errorf("%.40s: it says\n%q, want\n%q", expression, got, want)
		}
	}
}

// TestExpressionMentions holds which words are in an expression: whole ones.
func TestExpressionMentions(t *testing.T) {
	for expression, want := range map[Expression]bool{`u.healthyFor > duration("1h")`: true, `healthyFor`: true, `u.healthyFor2 > 1`: false, `u.un_healthyFor > 1`: false, `u.UnhealthyFor > 1`: false} {
		if got := expression.mentions(wordHealthy); got != want {
			t.Errorf("%s mentions it: %t", expression, got)
		}
	}
	broken := Expression("1 +")
	if constant, is := broken.findConstant(); is {
		t.Errorf("what can't be compiled is always %+v", constant)
	}
}

func FuzzExpression(f *testing.F) {
	f.Add(`release.images.all(i, i.tag.matches("^v[0-9.]+$"))`, "v1", "web")
	f.Add(`{"outcome": pull.labels[0]}`, "pass", "")
	f.Add(`now > timestamp("2026-01-01T00:00:00Z") && "x" in pull.labels`, "", "x")
	f.Fuzz(func(t *testing.T, expression, tag, label string) {
		e, facts := Expression(expression), promotionFacts()
		facts.Promotion.Release.Images[0].Tag = tag
		facts.Promotion.Pull.Labels = []string{label}
		gate := Gate{Expression: &e}
		got := gate.Evaluate(facts)
		if (gate.Validate() != nil) && got.Outcome != Fail || got.Reason == "" || len(got.Reason) > 4*maxExpressionReason {
			t.Fatalf("it says %+v", got)
		}
	})
}

func BenchmarkExpression(b *testing.B) {
	e, facts := Expression(`size(release.images) > 0 && release.images.all(i, i.tag.matches("^v[0-9.]+$"))`), promotionFacts()
	for b.Loop() {
		(&Gate{Expression: &e}).Evaluate(facts)
	}
}
