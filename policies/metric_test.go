package policies

import (
	"cmp"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func newMetric() Metric {
	return Metric{Prometheus: "main", Query: "errors", When: "value < 0.01", For: 10 * time.Minute, Every: time.Minute}
}

func TestMetric(t *testing.T) {
	now := promotionFacts().Now
	at := func(ago time.Duration, values ...float64) MetricSample {
		return MetricSample{At: now.Add(-ago), Values: values}
	}
	// good is one sample a minute from ago until now.
	good := func(ago int) (out []MetricSample) {
		for ; ago >= 0; ago-- {
			out = append(out, at(time.Duration(ago)*time.Minute, 0.001))
		}
		return out
	}
	replaced := func(all []MetricSample, i int, with MetricSample) []MetricSample {
		with.At = all[i].At
		all[i] = with
		return all
	}
	later := func(all []MetricSample, by time.Duration) []MetricSample {
		for i := range all {
			all[i].At = all[i].At.Add(by)
		}
		return all
	}
	without := func(all []MetricSample, from, to int) []MetricSample { return append(all[:from], all[to:]...) }
	bad := func(n int) (out []MetricSample) {
		for i := range n {
			out = append(out, at(time.Duration(n-1-i)*time.Minute, 0.5+float64(i)))
		}
		return out
	}
	const holds = "value < 0.01 has held for 10m"
	empty := newMetric()
	empty.OnEmpty = "pass"
	for name, c := range map[string]struct {
		gate    Metric
		reading MetricReading
		want    Outcome
		reason  string
	}{
		"it has held":                        {newMetric(), MetricReading{Samples: good(10)}, Pass, holds},
		"it has held for longer":             {newMetric(), MetricReading{Samples: good(40)}, Pass, holds},
		"not for long enough":                {newMetric(), MetricReading{Samples: good(9)}, Wait, "value < 0.01 has held since Mon 2026-11-23 10:21 UTC, and must until Mon 2026-11-23 10:31 UTC"},
		"one sample":                         {newMetric(), MetricReading{Samples: good(0)}, Wait, "value < 0.01 has held since Mon 2026-11-23 10:30 UTC, and must until Mon 2026-11-23 10:40 UTC"},
		"two samples are too few":            {Metric{Prometheus: "main", Query: "errors", When: "value < 0.01", For: 2 * time.Minute, Every: time.Minute}, MetricReading{Samples: without(good(2), 1, 2)}, Wait, "value < 0.01 has held since Mon 2026-11-23 10:28 UTC, and must until Mon 2026-11-23 10:30 UTC"},
		"a value that is no number, let in":  {Metric{Prometheus: "main", Query: "errors", When: "value != 1.0", For: 2 * time.Minute, Every: time.Minute}, MetricReading{Samples: replaced(good(10), 10, at(0, math.NaN()))}, Wait, "value != 1.0 doesn't hold since Mon 2026-11-23 10:30 UTC (NaN)"},
		"bad, where nothing is well":         {empty, MetricReading{Samples: replaced(good(10), 10, at(0, 0.5))}, Wait, "value < 0.01 doesn't hold since Mon 2026-11-23 10:30 UTC (0.5)"},
		"a condition that can't be answered": {Metric{Prometheus: "main", Query: "errors", When: "[true][int(value)]", For: 2 * time.Minute, Every: time.Minute}, MetricReading{Samples: bad(9)}, Wait, "[true][int(value)] doesn't hold since Mon 2026-11-23 10:23 UTC (index out of bounds: 1)"},
		"three samples are enough":           {Metric{Prometheus: "main", Query: "errors", When: "value < 0.01", For: 2 * time.Minute, Every: time.Minute}, MetricReading{Samples: good(2)}, Pass, "value < 0.01 has held for 2m"},
		"the last is as old as may be":       {newMetric(), MetricReading{Samples: without(good(14), 13, 15)}, Pass, holds},
		"bad as far as is known but for one": {newMetric(), MetricReading{Samples: append([]MetricSample{at(time.Hour, 0)}, bad(MaxMetricSamples-1)...)}, Wait, "value < 0.01 doesn't hold since Mon 2026-11-23 09:32 UTC (0.5)"},
		"one bad in the middle":              {newMetric(), MetricReading{Samples: replaced(good(10), 4, at(0, 0.02))}, Wait, "value < 0.01 has held since Mon 2026-11-23 10:25 UTC, and must until Mon 2026-11-23 10:35 UTC"},
		"bad now":                            {newMetric(), MetricReading{Samples: replaced(good(10), 10, at(0, 0.02))}, Wait, "value < 0.01 doesn't hold since Mon 2026-11-23 10:30 UTC (0.02)"},
		"bad for a while":                    {newMetric(), MetricReading{Samples: append([]MetricSample{at(5*time.Minute, 0)}, bad(3)...)}, Wait, "value < 0.01 doesn't hold since Mon 2026-11-23 10:28 UTC (0.5)"},
		"bad as far as is known":             {newMetric(), MetricReading{Samples: bad(MaxMetricSamples)}, Wait, "value < 0.01 doesn't hold in any of the last 60 samples"},
		"the border":                         {newMetric(), MetricReading{Samples: replaced(good(10), 10, at(0, 0.01))}, Wait, "value < 0.01 doesn't hold since Mon 2026-11-23 10:30 UTC (0.01)"},
		"one missing sample":                 {newMetric(), MetricReading{Samples: without(good(10), 3, 4)}, Pass, holds},
		"two missing samples":                {newMetric(), MetricReading{Samples: without(good(10), 3, 5)}, Wait, "value < 0.01 has held since Mon 2026-11-23 10:25 UTC, and must until Mon 2026-11-23 10:35 UTC"},
		"the last is of long ago":            {newMetric(), MetricReading{Samples: without(good(14), 12, 15)}, Wait, "the Prometheus main was asked last at Mon 2026-11-23 10:27 UTC, and what was since isn't known"},
		"the last is of a moment from now":   {newMetric(), MetricReading{Samples: append(good(10), at(-MaxClockAhead, 0.001))}, Wait, "value < 0.01 has held since Mon 2026-11-23 10:35 UTC, and must until Mon 2026-11-23 10:45 UTC"},
		"all are of tomorrow":                {newMetric(), MetricReading{Samples: later(good(10), 24*time.Hour)}, Wait, "the Prometheus main was asked last at Tue 2026-11-24 10:30 UTC, by a clock that was ahead; what is so now isn't known"},
		"several series, all well":           {newMetric(), MetricReading{Samples: replaced(good(10), 5, at(0, 0, 0.002, 0.003))}, Pass, holds},
		"several series, one bad":            {newMetric(), MetricReading{Samples: replaced(good(10), 10, at(0, 0, 0.5, 0.003))}, Wait, "value < 0.01 doesn't hold since Mon 2026-11-23 10:30 UTC (0.5)"},
		"nothing":                            {newMetric(), MetricReading{Samples: replaced(good(10), 10, at(0))}, Wait, "value < 0.01 doesn't hold since Mon 2026-11-23 10:30 UTC (the query gives nothing)"},
		"nothing in the middle":              {newMetric(), MetricReading{Samples: replaced(good(10), 8, at(0))}, Wait, "value < 0.01 has held since Mon 2026-11-23 10:29 UTC, and must until Mon 2026-11-23 10:39 UTC"},
		"nothing, which is well":             {empty, MetricReading{Samples: replaced(good(10), 10, at(0))}, Pass, holds},
		"not a number":                       {newMetric(), MetricReading{Samples: replaced(good(10), 10, MetricSample{Problem: "the query gives NaN"})}, Wait, "value < 0.01 doesn't hold since Mon 2026-11-23 10:30 UTC (the query gives NaN)"},
		"not a number, and nothing is well":  {empty, MetricReading{Samples: replaced(good(10), 10, MetricSample{Problem: "the query gives NaN"})}, Wait, "value < 0.01 doesn't hold since Mon 2026-11-23 10:30 UTC (the query gives NaN)"},
		"an infinite value that was let in":  {newMetric(), MetricReading{Samples: replaced(good(10), 10, at(0, math.Inf(-1)))}, Wait, "value < 0.01 doesn't hold since Mon 2026-11-23 10:30 UTC (-Inf)"},
		"the server can't be asked":          {newMetric(), MetricReading{Samples: good(10), Err: "it answers 503"}, Wait, "the Prometheus main can't be asked: it answers 503"},
		"a warning":                          {newMetric(), MetricReading{Samples: replaced(good(10), 10, MetricSample{Values: []float64{0}, Warning: "a store is away"})}, Pass, holds + "; Prometheus warns: a store is away"},
		"not asked yet":                      {newMetric(), MetricReading{}, Wait, "the Prometheus main hasn't been asked yet"},
		"another query":                      {newMetric(), MetricReading{Query: "other", Samples: good(10)}, Wait, "the Prometheus main hasn't been asked yet"},
		"another interval":                   {newMetric(), MetricReading{Every: time.Hour, Samples: good(10)}, Wait, "the Prometheus main hasn't been asked yet"},
		"another server":                     {newMetric(), MetricReading{Prometheus: "other", Samples: good(10)}, Wait, "the Prometheus main hasn't been asked yet"},
		"a condition that is not about size": {Metric{Prometheus: "main", Query: "errors", When: "value >= 1 && value != 2.0", For: 2 * time.Minute, Every: time.Minute}, MetricReading{Samples: bad(1)}, Wait, "value >= 1 && value != 2.0 doesn't hold since Mon 2026-11-23 10:30 UTC (0.5)"},
	} {
		t.Run(name, func(t *testing.T) {
			facts := promotionFacts()
			if c.reading.Query == "" {
				c.reading.Query = "errors"
			}
			if c.reading.Prometheus == "" {
				c.reading.Prometheus = "main"
			}
			c.reading.Every = cmp.Or(c.reading.Every, c.gate.Every)
			c.reading.NextAt = now.Add(time.Minute)
			facts.Metrics = []MetricReading{{Prometheus: "main", Query: "x"}, c.reading}
			got := (&Gate{Metric: &c.gate}).Evaluate(facts)
			if got.Gate != "metric" || got.Outcome != c.want || got.Reason != c.reason {
				t.Errorf("it says %+v, want %s: %s", got, c.want, c.reason)
			}
			if wanted := c.reading.Query == "errors" && c.reading.Prometheus == "main" && c.reading.Every == c.gate.Every; wanted && !got.Next.Equal(c.reading.NextAt) {
				t.Errorf("it looks again at %s", got.Next)
			}
			if got := (&Gate{Metric: &c.gate}).Evaluate(Facts{Metrics: facts.Metrics}); got.Outcome != Wait {
				t.Errorf("without a time it says %+v", got)
			}
		})
	}
}

func TestMetricQuery(t *testing.T) {
	for query, want := range map[string]string{
		`up`: `up`,
		`e{env="{{ .environment }}",c='{{.component}}',p=~` + "`{{ .pipeline }}.*`}": `e{env="prod",c='web',p=~` + "`shop.*`}",
		`e{env={{ .environment }}, version="{{ .tag }}", r="{{ .release }}"}`:        `e{env="prod", version="v1.5.0", r="aaaaaaaaaaaa"}`,
		`e{a="x",b={{ .environment }}}`:                                              `e{a="x",b="prod"}`,
		"e{a=`x\\`,b={{ .environment }}}":                                            "e{a=`x\\`,b=\"prod\"}",
		`e{a="x",b="{{ .environment }}"}`:                                            `e{a="x",b="prod"}`,
		`e{a="\"{{ .environment }}"} # it's "` + "\n" + `+ {x={{.component}}}`:       `e{a="\"prod"} # it's "` + "\n" + `+ {x="web"}`,
	} {
		m := newMetric()
		m.Query = query
		if got, err := m.Render(promotionFacts().Promotion); err != nil || got != want {
			t.Errorf("%s\ngives %s, %v\nwant  %s", query, got, err, want)
		}
	}
	m := newMetric()
	m.Query = `e{env={{ .environment }}}`
	if got, err := m.Render(nil); err == nil || err.Error() != "what is promoted isn't known" {
		t.Errorf("of nothing it gives %s, %v", got, err)
	}
	for query, want := range map[string]string{
		`{{ .environment`:         "a {{ has no }}",
		`{{ .secret }}`:           "knows only {{ .pipeline }}, {{ .environment }}, {{ .component }}, {{ .release }} and {{ .tag }}, not {{ .secret }}",
		`{{ environment }}`:       "knows only ",
		`{{ .environment | x }}`:  "knows only ",
		`up # {{ .environment }}`: "{{ .environment }} stands in a comment",
		`e{a="\`:                  `a string that begins with " has no end`,
		`e{a="x}`:                 `a string that begins with " has no end`,
	} {
		m := newMetric()
		m.Query = query
		if err := (&Gate{Metric: &m}).Validate(); err == nil || !strings.Contains(err.Error(), "metric.query: "+want) {
			t.Errorf("%s is validated: %v", query, err)
		}
	}
}

// TestMetricQueryEscapes holds that a value stays within the string that it is written in.
func TestMetricQueryEscapes(t *testing.T) {
	for query, want := range map[string]string{
		`{a="{{.tag}}"}`:       `{a="x'\"\\"}`,
		`{a='{{.tag}}'}`:       `{a='x\'"\\'}`,
		`{a={{.tag}}}`:         `{a="x'\"\\"}`,
		"{a=`{{.tag}}`}":       "{a=`x'\"\\`}",
		`{b="\\", a={{.tag}}}`: `{b="\\", a="x'\"\\"}`,
	} {
		if got, err := renderQuery(query, func(string) (string, error) { return `x'"\`, nil }); err != nil || got != want {
			t.Errorf("%s gives %s, %v; want %s", query, got, err, want)
		}
	}
	for name, value := range map[string]string{"a line's end": "a\nb", "nothing": "", "no text": "\xff", "a backtick": "`"} {
		if got, err := renderQuery("{a=`{{.tag}}`}", func(string) (string, error) { return value, nil }); err == nil {
			t.Errorf("%s gives %s", name, got)
		}
	}
	if _, err := renderQuery("{{.tag}}", func(string) (string, error) { return "", errors.New("none") }); err == nil || err.Error() != "none" {
		t.Errorf("it says %v", err)
	}
}

// TestMetricTag holds which tag a query is about, and that none waits.
func TestMetricTag(t *testing.T) {
	for name, c := range map[string]struct {
		release *Release
		want    string
	}{
		"nothing known":     {nil, "the query can't be written: what is promoted can't be read: its file is gone"},
		"no image":          {&Release{}, "the query can't be written: the release has no image with a tag, so that there is no {{ .tag }}"},
		"a digest":          {&Release{Images: []Image{{Digest: "sha256:1"}}}, "the query can't be written: the release has no image with a tag, so that there is no {{ .tag }}"},
		"several":           {&Release{Images: []Image{{Tag: "a"}, {Tag: "b"}}}, "the query can't be written: the release has several images with different tags, so that {{ .tag }} is none of them"},
		"several alike":     {&Release{Images: []Image{{Tag: "a"}, {Tag: "a"}}}, "the Prometheus main hasn't been asked yet"},
		"what is no tag":    {&Release{Images: []Image{{Tag: `x"} or vector(0)`}}}, `the query can't be written: "x\"} or vector(0)" is not an image's tag`},
		"what matches all":  {&Release{Images: []Image{{Tag: "a|.*"}}}, `the query can't be written: "a|.*" is not an image's tag`},
		"every character":   {&Release{Images: []Image{{Tag: "azAZ09_.-"}}}, "the Prometheus main hasn't been asked yet"},
		"a long tag":        {&Release{Images: []Image{{Tag: strings.Repeat("a", 128)}}}, "the Prometheus main hasn't been asked yet"},
		"a longer tag":      {&Release{Images: []Image{{Tag: strings.Repeat("a", 129)}}}, `the query can't be written: "` + strings.Repeat("a", 125) + `…" is not an image's tag`},
		"beside a":          {&Release{Images: []Image{{Tag: "`"}}}, "the query can't be written: \"`\" is not an image's tag"},
		"beside z":          {&Release{Images: []Image{{Tag: "{"}}}, `the query can't be written: "{" is not an image's tag`},
		"beside A":          {&Release{Images: []Image{{Tag: "@"}}}, `the query can't be written: "@" is not an image's tag`},
		"beside Z":          {&Release{Images: []Image{{Tag: "["}}}, `the query can't be written: "[" is not an image's tag`},
		"beside 0":          {&Release{Images: []Image{{Tag: "/"}}}, `the query can't be written: "/" is not an image's tag`},
		"beside 9":          {&Release{Images: []Image{{Tag: ":"}}}, `the query can't be written: ":" is not an image's tag`},
		"a tag with a sign": {&Release{Images: []Image{{Tag: "v1.0_rc-1"}}}, "the Prometheus main hasn't been asked yet"},
	} {
		t.Run(name, func(t *testing.T) {
			m, facts := newMetric(), promotionFacts()
			m.Query = `e{version=~"{{ .tag }}"}`
			facts.Promotion.Release, facts.Promotion.ReleaseErr = c.release, "its file is gone"
			if got := (&Gate{Metric: &m}).Evaluate(facts); got.Outcome != Wait || got.Reason != c.want {
				t.Errorf("it says %+v", got)
			}
		})
	}
}

func TestMetricIsValidated(t *testing.T) {
	for want, change := range map[string]func(*Metric){
		"metric.prometheus: which server is asked is missing: its name in the server's file, under prometheus": func(m *Metric) { m.Prometheus = "" },
		"metric.query: what is asked is missing":                                                                        func(m *Metric) { m.Query = " " },
		"metric.query: is longer than 4096 bytes":                                                                       func(m *Metric) { m.Query = strings.Repeat("x", 4097) },
		"metric.when: what must be true is missing, like value < 0.01":                                                  func(m *Metric) { m.When = "" },
		"metric.when: is longer than 512 bytes":                                                                         func(m *Metric) { m.When = "value < 1" + strings.Repeat(" ", 600) },
		"metric.when: must give true or false; it gives double":                                                         func(m *Metric) { m.When = "value + 1.0" },
		"metric.when: doesn't look at value, so that the query would mean nothing; write a condition like value < 0.01": func(m *Metric) { m.When = "true" },
		"metric.when: can't be compiled: line 1, column 1: undeclared reference to 'vlaue' (in container '')":           func(m *Metric) { m.When = "vlaue < 1" },
		"metric.every: must be from 10s to 1h; it is 5s":                                                                func(m *Metric) { m.Every = 5 * time.Second },
		"metric.every: must be from 10s to 1h; it is 2h":                                                                func(m *Metric) { m.Every = 2 * time.Hour },
		"metric.for: must be from 2m to 58m, which is 2 to 58 times every; it is 1m. For longer, ask less often, or let the query look back: max_over_time(…[1d])": func(m *Metric) { m.For = time.Minute },
		"metric.for: must be from 2m to 58m, which is 2 to 58 times every; it is 1h. For longer, ask less often, or let the query look back: max_over_time(…[1d])": func(m *Metric) { m.For = time.Hour },
		`metric.onEmpty: must be wait or pass; it is "fail"`: func(m *Metric) { m.OnEmpty = "fail" },
	} {
		m := newMetric()
		change(&m)
		if err := (&Gate{Metric: &m}).Validate(); err == nil || err.Error() != want {
			t.Errorf("it says  %v\nwant     %s", err, want)
		}
	}
	m := newMetric()
	if err := (&Gate{Metric: &m}).Validate(); err != nil {
		t.Error(err)
	}
	if got := (&Gate{Metric: &m}).Describe(); got != "value < 0.01 for 10m, of errors on the Prometheus main" {
		t.Error(got)
	}
	// A condition's cost is bounded, whatever it is.
	m.When = "value < 1 " + strings.Repeat("&& value < 1 ", 35)
	if err := (&Gate{Metric: &m}).Validate(); err != nil {
		t.Error(err)
	}
}

// FuzzMetricQuery holds that whatever a query and a value are, nothing of the value is
// outside of a string.
func FuzzMetricQuery(f *testing.F) {
	f.Add(`{a="{{.tag}}"}`, `"} or vector(0)`)
	f.Add("{a=`{{.tag}}`} # {{", "x")
	f.Fuzz(func(t *testing.T, query, value string) {
		if strings.ContainsAny(query, "\uE000") || len(query) > maxMetricQuery {
			t.Skip()
		}
		if strings.Contains(value, "\uE000") {
			t.Skip()
		}
		rendered, err := renderQuery(query, func(string) (string, error) { return "\uE000" + value + "\uE000", nil })
		if err != nil {
			return
		}
		var quote rune
		inside, escaped := false, false
		for _, r := range rendered {
			switch {
			case r == '\uE000':
				if quote == 0 || quote == '#' {
					t.Fatalf("a value stands outside of a string in %q", rendered)
				}
				inside = !inside
			case escaped:
				escaped = false
			case r == '\\' && (quote == '"' || quote == '\''):
				escaped = true
			case quote == 0 && strings.ContainsRune("\"'`#", r):
				quote = r
			case quote == '#' && r == '\n', r == quote && quote != '#':
				if inside {
					t.Fatalf("a value ends its string in %q", rendered)
				}
				quote = 0
			}
		}
	})
}

// TestMetricAlone finds the one reading that there is.
func TestMetricAlone(t *testing.T) {
	m, facts := newMetric(), promotionFacts()
	facts.Metrics = []MetricReading{{Prometheus: "main", Query: "errors", Every: m.Every, Err: "it answers 503"}}
	if got := (&Gate{Metric: &m}).Evaluate(facts); got.Reason != "the Prometheus main can't be asked: it answers 503" {
		t.Errorf("it says %+v", got)
	}
}

// TestMetricSaysWhen tells when it may have held for long enough, as long as that is to come.
func TestMetricSaysWhen(t *testing.T) {
	m, facts := newMetric(), promotionFacts()
	for ago, want := range map[time.Duration]time.Time{9 * time.Minute: facts.Now.Add(time.Minute), 10 * time.Minute: {}, 11 * time.Minute: {}} {
		m.Every = 10 * time.Minute // so that two samples are too few
		m.For = 10 * time.Minute
		facts.Metrics = []MetricReading{{Prometheus: "main", Query: "errors", Every: m.Every, Samples: []MetricSample{{At: facts.Now.Add(-ago), Values: []float64{0}}, {At: facts.Now, Values: []float64{0}}}}}
		if got := m.evaluate(facts); got.Outcome != Wait || !got.Until.Equal(want) {
			t.Errorf("since %s: it is %s until %s, want %s", ago, got.Outcome, got.Until, want)
		}
	}
}
