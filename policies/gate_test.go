package policies

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDescribe has what people read of a gate before anything is known.
func TestDescribe(t *testing.T) {
	expression := Expression("size(release.images) > 0")
	nightly := Window{Cron: "0 22 * * *", Duration: 8 * time.Hour, Timezone: "Europe/Berlin"}
	for want, gate := range map[string]Gate{
		"": {},
		"1 approval from anybody who may write to the repository; not from the release's authors":         {Approvals: &Approvals{Count: 1}},
		"2 approvals from the owners of the changed files, acme/sre, ada; not from the release's authors": {Approvals: &Approvals{Count: 2, From: From{Codeowners: true, Teams: []string{"acme/sre"}, Users: []string{"ada"}}}},
		"a window: daily 22:00–06:00 Europe/Berlin":                                                       {Window: &nightly},
		"one of several windows: daily 22:00–06:00 Europe/Berlin, or Argo CD's sync windows":              {Windows: Windows{nightly, {ArgoCD: true}}},
		"no freeze: from 2026-12-20 to 2027-01-03":                                                        {Freeze: &Freeze{From: "2026-12-20", To: "2027-01-03"}},
		"no freeze: from 2026-12-20 to 2027-01-03 (UTC): holidays":                                        {Freeze: &Freeze{From: "2026-12-20", To: "2027-01-03", Timezone: "UTC", Reason: "holidays"}},
		"checks that pass: ci/*, e2e":                                                                     {Checks: &Checks{Require: []string{"ci/*", "e2e"}}},
		"checks that pass: ci/* from ci-bot, e2e-bot":                                                     {Checks: &Checks{Require: []string{"ci/*"}, From: []string{"ci-bot", "e2e-bot"}}},
		"an expression: size(release.images) > 0":                                                         {Expression: &expression},
	} {
		if got := gate.Describe(); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
}

// TestLimits has the largest that each setting may be, and what is one more.
func TestLimits(t *testing.T) {
	names := func(n int, prefix string) (out []string) {
		for i := range n {
			out = append(out, prefix+strings.Repeat("x", i))
		}
		return out
	}
	expression := func(length int) *Expression {
		e := Expression("true" + strings.Repeat(" ", length-len("true")))
		return &e
	}
	window := func(d time.Duration) Window { return Window{Cron: "0 9 * * *", Duration: d, Timezone: "UTC"} }
	metric := func(change func(*Metric)) *Metric { m := newMetric(); change(&m); return &m }
	http := func(change func(*HTTP)) *HTTP { h := newHTTP(); change(&h); return &h }
	for name, c := range map[string]struct {
		valid, invalid Gate
		want           string
	}{
		"users":                    {Gate{Approvals: &Approvals{Count: 1, From: From{Users: names(maxFromEntries, "a")}}}, Gate{Approvals: &Approvals{Count: 1, From: From{Users: names(maxFromEntries+1, "a")}}}, "approvals.from.users: 101 are too many; at most 100"},
		"as many as asked for":     {Gate{Approvals: &Approvals{Count: 2, From: From{Users: names(2, "a")}}}, Gate{Approvals: &Approvals{Count: 3, From: From{Users: names(2, "a")}}}, "approvals.count: 3 approvals can't come from 2 people"},
		"owners beside users":      {Gate{Approvals: &Approvals{Count: 2, From: From{Users: names(1, "a"), Codeowners: true}}}, Gate{Approvals: &Approvals{Count: 2, From: From{Users: names(1, "a")}}}, "approvals.count: 2 approvals can't come from 1 person"},
		"checks":                   {Gate{Checks: &Checks{Require: names(maxCheckPatterns, "c")}}, Gate{Checks: &Checks{Require: names(maxCheckPatterns+1, "c")}}, "checks.require: 51 names are too many; at most 50"},
		"a check":                  {Gate{Checks: &Checks{Require: []string{strings.Repeat("c", maxCheckLength)}}}, Gate{Checks: &Checks{Require: []string{strings.Repeat("c", maxCheckLength+1)}}}, "is not a check's name"},
		"accounts":                 {Gate{Checks: &Checks{Require: []string{"ci"}, From: names(maxCheckPatterns, "c")}}, Gate{Checks: &Checks{Require: []string{"ci"}, From: names(maxCheckPatterns+1, "c")}}, "checks.from: 51 logins are too many; at most 50"},
		"an account":               {Gate{Checks: &Checks{Require: []string{"ci"}, From: []string{strings.Repeat("c", maxCheckLength)}}}, Gate{Checks: &Checks{Require: []string{"ci"}, From: []string{strings.Repeat("c", maxCheckLength+1)}}}, "is not a login"},
		"expressions":              {Gate{Expression: expression(maxExpressionLength)}, Gate{Expression: expression(maxExpressionLength + 1)}, "expression: is longer than 2048 bytes"},
		"windows":                  {Gate{Windows: slices.Repeat(Windows{window(time.Hour)}, maxWindows)}, Gate{Windows: slices.Repeat(Windows{window(time.Hour)}, maxWindows+1)}, "windows: 21 windows are too many; at most 20"},
		"a window":                 {Gate{Windows: Windows{window(maxWindowDuration)}}, Gate{Windows: Windows{window(maxWindowDuration + 1)}}, "windows[0].duration: must be at most seven days (168h)"},
		"a soak":                   {Gate{Soak: &Soak{For: maxSoak}}, Gate{Soak: &Soak{For: maxSoak + time.Second}}, "soak.for: must be at most 90 days (2160h)"},
		"a query":                  {Gate{Metric: metric(func(m *Metric) { m.Query = strings.Repeat("x", maxMetricQuery) })}, Gate{Metric: metric(func(m *Metric) { m.Query = strings.Repeat("x", maxMetricQuery+1) })}, "metric.query: is longer than 4096 bytes"},
		"a condition":              {Gate{Metric: metric(func(m *Metric) { m.When = "value < 1" + strings.Repeat(" ", maxMetricWhen-len("value < 1")) })}, Gate{Metric: metric(func(m *Metric) { m.When = "value < 1" + strings.Repeat(" ", maxMetricWhen+1-len("value < 1")) })}, "metric.when: is longer than 512 bytes"},
		"often":                    {Gate{Metric: metric(func(m *Metric) { m.Every, m.For = minMetricEvery, time.Minute })}, Gate{Metric: metric(func(m *Metric) { m.Every, m.For = minMetricEvery-1, time.Minute })}, "metric.every: must be from 10s to 1h"},
		"rarely":                   {Gate{Metric: metric(func(m *Metric) { m.Every, m.For = maxMetricEvery, 2*time.Hour })}, Gate{Metric: metric(func(m *Metric) { m.Every, m.For = maxMetricEvery+1, 3*time.Hour })}, "metric.every: must be from 10s to 1h"},
		"for a short while":        {Gate{Metric: metric(func(m *Metric) { m.For = 2 * time.Minute })}, Gate{Metric: metric(func(m *Metric) { m.For = 2*time.Minute - 1 })}, "metric.for: must be from 2m to 58m"},
		"for long":                 {Gate{Metric: metric(func(m *Metric) { m.For = 58 * time.Minute })}, Gate{Metric: metric(func(m *Metric) { m.For = 58*time.Minute + 1 })}, "metric.for: must be from 2m to 58m"},
		"a path":                   {Gate{HTTP: http(func(h *HTTP) { h.Path = "/" + strings.Repeat("x", maxHTTPPath-1) })}, Gate{HTTP: http(func(h *HTTP) { h.Path = "/" + strings.Repeat("x", maxHTTPPath) })}, "is not a path like /change/approve"},
		"an endpoint, often":       {Gate{HTTP: http(func(h *HTTP) { h.Every = minHTTPEvery })}, Gate{HTTP: http(func(h *HTTP) { h.Every = minHTTPEvery - 1 })}, "http.every: must be from 10s to 1h"},
		"an endpoint, rarely":      {Gate{HTTP: http(func(h *HTTP) { h.Every, h.MaxAge = maxHTTPEvery, 2*time.Hour })}, Gate{HTTP: http(func(h *HTTP) { h.Every, h.MaxAge = maxHTTPEvery+1, 2*time.Hour })}, "http.every: must be from 10s to 1h"},
		"an endpoint in a hurry":   {Gate{HTTP: http(func(h *HTTP) { h.Timeout = minHTTPTimeout })}, Gate{HTTP: http(func(h *HTTP) { h.Timeout = minHTTPTimeout - 1 })}, "http.timeout: must be from 1s to 30s"},
		"an endpoint that thinks":  {Gate{HTTP: http(func(h *HTTP) { h.Timeout = maxHTTPTimeout })}, Gate{HTTP: http(func(h *HTTP) { h.Timeout = maxHTTPTimeout + 1 })}, "http.timeout: must be from 1s to 30s"},
		"a pass for a short while": {Gate{HTTP: http(func(h *HTTP) { h.MaxAge = h.Every })}, Gate{HTTP: http(func(h *HTTP) { h.MaxAge = h.Every - 1 })}, "http.maxAge: must be from every"},
		"a pass for long":          {Gate{HTTP: http(func(h *HTTP) { h.MaxAge = maxHTTPAge })}, Gate{HTTP: http(func(h *HTTP) { h.MaxAge = maxHTTPAge + 1 })}, "http.maxAge: must be from every"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.valid.Validate(); err != nil {
				t.Errorf("as much as may be: %v", err)
			}
			if err := c.invalid.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("one more: %v, want %q", err, c.want)
			}
		})
	}
}

// TestListTeams has each team once of which somebody must know who is in it.
func TestListTeams(t *testing.T) {
	gates := []Gate{
		{Soak: &Soak{For: time.Hour}},
		{Approvals: &Approvals{Count: 1, From: From{Teams: []string{"acme/sre"}}}},
		{Approvals: &Approvals{Count: 1, From: From{Teams: []string{"Acme/SRE", "acme/db"}, Codeowners: true}}},
	}
	files := []OwnedFile{{Path: "a", Owners: []string{"ada", "acme/web", "acme/DB"}}, {Path: "b", Owners: []string{"acme/web"}}}
	if diff := cmp.Diff([]string{"acme/sre", "acme/db", "acme/web"}, ListTeams(gates, files)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := ListTeams(gates[:2], files); !slices.Equal(got, []string{"acme/sre"}) {
		t.Errorf("where nobody asks for owners: %q", got)
	}
}

// TestAgeNeedsATime doesn't take an approval for young where nobody knows what time it is.
func TestAgeNeedsATime(t *testing.T) {
	gate := Gate{Approvals: &Approvals{Count: 1, MaxAge: time.Hour}}
	if got := gate.Evaluate(Facts{Approvals: approved("ada")}); got.Outcome != Wait || got.Reason != "what time it is isn't known" {
		t.Errorf("it says %+v", got)
	}
}

// TestDistinctSpeaksLast says of a gate that waits for people only that.
func TestDistinctSpeaksLast(t *testing.T) {
	a := &Approvals{Count: 1, Distinct: true}
	got := (&Gate{Approvals: a}).Evaluate(Facts{ApprovalGates: []*Approvals{a, {Count: 1}}})
	if want := "0 of 1 approval; waiting for 1 more from people who may write to the repository"; got.Reason != want {
		t.Errorf("it says %q, want %q", got.Reason, want)
	}
}

// TestFreezeProblemsAlone has the paths of a freeze that is no gate's.
func TestFreezeProblemsAlone(t *testing.T) {
	f := Freeze{From: "2026-12-20", To: "2026-12-19", Timezone: "UTC"}
	if diff := cmp.Diff([]Problem{{Path: "to", Message: "2026-12-19 is not after from, 2026-12-20"}}, f.Problems()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestIsWithin tells whether one group of people is a part of another.
func TestIsWithin(t *testing.T) {
	owners, strict := From{Codeowners: true}, From{Codeowners: true, Strict: true}
	ada, both := From{Users: []string{"ada"}}, From{Users: []string{"Ada", "grace"}}
	sre, web := From{Teams: []string{"acme/sre"}}, From{Teams: []string{"acme/web"}}
	ownersOrAda := From{Codeowners: true, Users: []string{"ada"}}
	for _, c := range []struct {
		name     string
		f, other From
		want     bool
	}{
		{"anybody in anybody", From{}, From{}, true},
		{"one in anybody", ada, From{}, true},
		{"anybody in one", From{}, ada, false},
		{"one in two", ada, both, true},
		{"two in one", both, ada, false},
		{"a team in itself", sre, sre, true},
		{"a team in another", sre, web, false},
		{"one and a team in the team and another", From{Users: []string{"ken"}, Teams: []string{"acme/sre"}}, From{Users: []string{"ada"}, Teams: []string{"acme/sre"}}, false},
		{"owners in owners", owners, owners, true},
		{"owners in those of all files", owners, strict, false},
		{"those of all files in owners", strict, owners, true},
		{"those of all files in themselves", strict, strict, true},
		{"one in owners", ada, owners, false},
		{"one in owners or her", ada, ownersOrAda, false},
		{"owners in owners or one", owners, ownersOrAda, false}, // of what nobody owns anybody may approve
		{"owners or one in themselves", ownersOrAda, ownersOrAda, true},
		{"owners or one in owners", ownersOrAda, owners, false},
	} {
		if got := c.f.isWithin(c.other); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// TestIsAsStrict tells whether one gate takes nothing for an approval that another doesn't.
func TestIsAsStrict(t *testing.T) {
	no := false
	plain, noVeto, distinct := &Approvals{}, &Approvals{Veto: &no}, &Approvals{Distinct: true}
	young := func(age time.Duration) *Approvals { return &Approvals{MaxAge: age} }
	for _, c := range []struct {
		name     string
		a, floor *Approvals
		want     bool
	}{
		{"the same", plain, plain, true},
		{"without a veto", noVeto, plain, false},
		{"with a veto that isn't asked for", plain, noVeto, true},
		{"both without a veto", noVeto, noVeto, true},
		{"not distinct", plain, distinct, false},
		{"distinct", distinct, distinct, true},
		{"distinct where that isn't asked for", distinct, plain, true},
		{"of any age", plain, young(time.Hour), false},
		{"too old", young(time.Hour + 1), young(time.Hour), false},
		{"just as old", young(time.Hour), young(time.Hour), true},
		{"younger", young(time.Hour - 1), young(time.Hour), true},
		{"young where any age is fine", young(time.Hour), plain, true},
	} {
		if got := c.a.isAsStrict(c.floor); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// TestHTTPThatWaitedLong repeats what an endpoint said, however long ago: only a pass is forgotten.
func TestHTTPThatWaitedLong(t *testing.T) {
	h, now := newHTTP(), time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	got := (&Gate{HTTP: &h}).Evaluate(Facts{Now: now, Endpoints: []EndpointReading{{Endpoint: h.Endpoint, Path: h.Path, Answered: true, Outcome: Wait, Reason: "the board meets", At: now.Add(-48 * time.Hour)}}})
	if want := h.Endpoint + " says wait: the board meets"; got.Outcome != Wait || got.Reason != want {
		t.Errorf("it says %+v, want %q", got, want)
	}
}
