package policies

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"

	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/wording"
)

// Metric asks a Prometheus server and passes once the answers were right for a while. A wrong
// or missing sample starts over.
type Metric struct {
	// The server's name in the server's file.
	Prometheus string `yaml:"prometheus" json:"prometheus" jsonschema:"required"`
	// PromQL that gives a number, or a vector of which each series counts. {{ .pipeline }}, {{
	// .environment }}, {{ .component }}, {{ .release }} (12 hex digits) and {{ .tag }} (of the
	// release's one image) are written as PromQL strings.
	Query string `yaml:"query" json:"query" jsonschema:"required"`
	// A CEL condition for each value: value < 0.01.
	When string `yaml:"when" json:"when" jsonschema:"required"`
	// For how long: 10m. From 2 to 58 times every.
	For time.Duration `yaml:"for" json:"for" jsonschema:"required"`
	// How often to ask, from 10s to 1h.
	Every time.Duration `yaml:"every" json:"every,omitempty" jsonschema:"default=1m"`
	// The result of an answer without series.
	OnEmpty string `yaml:"onEmpty" json:"onEmpty,omitempty" jsonschema:"enum=wait,enum=pass,default=wait"`
}

// SetDefaults fills in what a metric may leave out.
func (m *Metric) SetDefaults() { m.Every, m.OnEmpty = time.Minute, "wait" }

// MetricReading is what a Prometheus server answered to a query about a promotion.
type MetricReading struct {
	Prometheus string         `json:"prometheus"`
	Query      string         `json:"query"`             // as [Metric.Render] gives it
	Every      time.Duration  `json:"every"`             // how often that is asked
	Samples    []MetricSample `json:"samples,omitempty"` // oldest first, [MaxMetricSamples] at most
	Err        string         `json:"err,omitempty"`     // why it can't be asked now; empty: it can
	NextAt     time.Time      `json:"nextAt,omitzero"`   // when it is asked again; zero: not by itself
}

// MetricSample is one answer.
type MetricSample struct {
	At     time.Time `json:"at"`
	Values []float64 `json:"values,omitempty"` // of all series, finite; none and no Problem: the answer is empty
	// Problem says why the answer is no finite numbers: NaN. Empty: nothing is wrong.
	Problem string `json:"problem,omitempty"`
	Warning string `json:"warning,omitempty"` // the server's own; empty: none
}

// These bound what is kept and taken of answers.
const (
	// MaxMetricSamples is how many samples of a query are kept.
	MaxMetricSamples = 60
	// MaxMetricSeries is how many series an answer may have: a gate is about a few numbers.
	MaxMetricSeries = 50
)

// Bounds on a metric's settings. The times make for 3 samples at least within For, and
// for fewer than are kept, one that is late by its interval included.
const (
	minMetricEvery    = 10 * time.Second
	maxMetricEvery    = time.Hour
	minMetricSamples  = 3
	maxMetricFor      = 58 // in times of Every
	maxMetricQuery    = 4 << 10
	maxMetricWhen     = 512
	maxMetricWhenCost = 1000
	maxMetricText     = 200 // characters of what comes from the server
)

var _ evaluator = (*Metric)(nil)

func (*Metric) kindName() GateName { return GateMetric }

func (m *Metric) describe() string {
	return fmt.Sprintf("%s for %s, of %s on the Prometheus %s", wording.ClipLine(m.When, maxMetricText), formatDuration(m.For),
		wording.ClipLine(m.Query, maxMetricText), m.Prometheus)
}

func (m *Metric) validate() []Problem {
	var problems []Problem
	add := func(key, format string, args ...any) {
		problems = append(problems, Problem{Path: "metric." + key, Message: fmt.Sprintf(format, args...)})
	}
	if m.Prometheus == "" {
		add("prometheus", "which server is asked is missing: its name in the server's file, under prometheus")
	}
	switch {
	case strings.TrimSpace(m.Query) == "":
		add("query", "what is asked is missing")
	case len(m.Query) > maxMetricQuery:
		add("query", "is longer than %d bytes", maxMetricQuery)
	default:
		if _, err := renderQuery(m.Query, func(string) (string, error) { return "x", nil }); err != nil {
			add("query", "%v", err)
		}
	}
	if _, err := m.compile(); err != nil {
		add("when", "%v", err)
	}
	if every := m.Every; every < minMetricEvery || every > maxMetricEvery {
		add("every", "must be from %s to %s; it is %s", formatDuration(minMetricEvery), formatDuration(maxMetricEvery),
			formatDuration(every))
	} else if m.For < (minMetricSamples-1)*every || m.For > maxMetricFor*every {
		add("for", "must be from %s to %s, which is 2 to %d times every; it is %s. For longer, ask less often, or let the query look "+
			"back: max_over_time(…[1d])",
			formatDuration((minMetricSamples-1)*every), formatDuration(maxMetricFor*every), maxMetricFor, formatDuration(m.For))
	}
	if !slices.Contains([]string{"", "wait", "pass"}, m.OnEmpty) {
		add("onEmpty", "must be wait or pass; it is %q", wording.ClipLine(m.OnEmpty, maxMetricText))
	}
	return problems
}

// compiledConditions are what conditions compile to, by their text, as compiledExpressions.
var compiledConditions = cache.New(nil, cache.Options[string, cel.Program]{Name: "conditions", Entries: maxCompiledExpressions})

// compile makes the condition ready to be evaluated.
func (m *Metric) compile() (cel.Program, error) {
	return compiledConditions.GetOrLoad(m.When, m.compileAnew)
}

func (m *Metric) compileAnew() (cel.Program, error) {
	switch {
	case strings.TrimSpace(m.When) == "":
		return nil, errors.New("what must be true is missing, like value < 0.01")
	case len(m.When) > maxMetricWhen:
		return nil, fmt.Errorf("is longer than %d bytes", maxMetricWhen)
	}
	env, err := cel.NewEnv(cel.Variable("value", cel.DoubleType), cel.CrossTypeNumericComparisons(true),
		cel.ParserRecursionLimit(maxExpressionDepth), cel.ClearMacros())
	if err != nil {
		return nil, fmt.Errorf("make the environment of conditions: %w", err)
	}
	checked, issues := env.Compile(m.When)
	if err := issues.Err(); err != nil {
		first := issues.Errors()[0]
		return nil, fmt.Errorf("can't be compiled: line %d, column %d: %s", first.Location.Line(), first.Location.Column()+1,
			wording.ClipLine(first.Message, maxExpressionReason))
	}
	if !checked.OutputType().IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("must give true or false; it gives %s", wording.ClipLine(checked.OutputType().String(), maxMetricText))
	}
	looks := false
	celast.PreOrderVisit(checked.NativeRep().Expr(), celast.NewExprVisitor(func(x celast.Expr) {
		looks = looks || x.AsIdent() == "value" // of what is no name it is empty
	}))
	if !looks {
		return nil, errors.New("doesn't look at value, so that the query would mean nothing; write a condition like value < 0.01")
	}
	if err := checkPatterns(checked); err != nil {
		return nil, fmt.Errorf("can't be compiled: %s", wording.ClipLine(err.Error(), maxExpressionReason))
	}
	return env.Program(checked, cel.CostLimit(maxMetricWhenCost), cel.InterruptCheckFrequency(interruptEvery), boundPatterns())
}

func (m *Metric) evaluate(f Facts) Result {
	r := Result{Gate: m.kindName(), Outcome: Wait}
	if f.Now.IsZero() {
		r.Reason = "what time it is isn't known"
		return r
	}
	query, err := m.Render(f.Promotion)
	if err != nil {
		r.Reason = "the query can't be written: " + err.Error()
		return r
	}
	holds, err := m.newCondition()
	if err != nil {
		r.Reason = "the condition " + err.Error()
		return r
	}
	i := slices.IndexFunc(f.Metrics, func(x MetricReading) bool {
		return x.Prometheus == m.Prometheus && x.Query == query && x.Every == m.Every
	})
	if i < 0 {
		r.Reason = fmt.Sprintf("the Prometheus %s hasn't been asked yet", m.Prometheus)
		return r
	}
	reading := &f.Metrics[i]
	r.Next = reading.NextAt
	switch n := len(reading.Samples); {
	case reading.Err != "":
		r.Reason = fmt.Sprintf("the Prometheus %s can't be asked: %s", m.Prometheus, wording.ClipLine(reading.Err, maxExpressionReason))
	case n == 0:
		r.Reason = fmt.Sprintf("the Prometheus %s hasn't been asked yet", m.Prometheus)
	case isAhead(reading.Samples[n-1].At, f.Now):
		r.Reason = fmt.Sprintf("the Prometheus %s was asked last at %s, by a clock that was ahead; what is so now isn't known",
			m.Prometheus, formatInstant(reading.Samples[n-1].At, time.UTC))
	case f.Now.Sub(reading.Samples[n-1].At) > 2*m.Every:
		r.Reason = fmt.Sprintf("the Prometheus %s was asked last at %s, and what was since isn't known", m.Prometheus,
			formatInstant(reading.Samples[n-1].At, time.UTC))
	default:
		m.countSamples(reading.Samples, holds, f.Now, &r)
		if w := reading.Samples[n-1].Warning; w != "" {
			r.Reason += "; Prometheus warns: " + wording.ClipLine(w, maxMetricText)
		}
	}
	return r
}

// countSamples answers by samples, of which the last is of now.
func (m *Metric) countSamples(samples []MetricSample, holds func(*MetricSample) (why string), now time.Time, r *Result) {
	n := len(samples)
	if why := holds(&samples[n-1]); why != "" {
		first := n - 1
		for first > 0 && holds(&samples[first-1]) != "" {
			first--
		}
		// The text stays while it doesn't hold: each change of it is an edit of a comment.
		since := "since " + formatInstant(samples[first].At, time.UTC)
		if first == 0 && n >= MaxMetricSamples {
			since = fmt.Sprintf("in any of the last %d samples", n)
		} else {
			why = holds(&samples[first])
			since += " (" + why + ")"
		}
		r.Reason = fmt.Sprintf("%s doesn't hold %s", wording.ClipLine(m.When, maxMetricText), since)
		return
	}
	first := n - 1
	for first > 0 && holds(&samples[first-1]) == "" && samples[first].At.Sub(samples[first-1].At) <= 2*m.Every {
		first--
	}
	since := samples[first].At
	if n-first >= minMetricSamples && samples[n-1].At.Sub(since) >= m.For {
		r.Outcome, r.Reason = Pass, fmt.Sprintf("%s has held for %s", wording.ClipLine(m.When, maxMetricText), formatDuration(m.For))
		return
	}
	if full := since.Add(m.For); full.After(now) {
		r.Until = full
	}
	r.Reason = fmt.Sprintf("%s has held since %s, and must until %s", wording.ClipLine(m.When, maxMetricText),
		formatInstant(since, time.UTC), formatInstant(since.Add(m.For), time.UTC))
}

// newCondition gives what says of a sample why it isn't as it should be; empty: it is.
func (m *Metric) newCondition() (func(*MetricSample) string, error) {
	program, err := m.compile()
	if err != nil {
		return nil, err
	}
	return func(s *MetricSample) string {
		switch {
		case s.Problem != "":
			return wording.ClipLine(s.Problem, maxMetricText)
		case len(s.Values) == 0 && m.OnEmpty == "pass":
			return ""
		case len(s.Values) == 0:
			return "the query gives nothing"
		}
		ctx, cancel := context.WithTimeout(context.Background(), maxExpressionTime)
		defer cancel()
		for _, v := range s.Values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return formatValue(v)
			}
			out, _, err := program.ContextEval(ctx, map[string]any{"value": v})
			if err != nil {
				return wording.ClipLine(err.Error(), maxMetricText)
			}
			if ok, _ := out.Value().(bool); !ok {
				return formatValue(v)
			}
		}
		return ""
	}, nil
}

func formatValue(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
