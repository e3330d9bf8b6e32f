package facts

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/liftlock/liftlock/internal/store/record"
	"github.com/liftlock/liftlock/policies"
)

func TestAddSample(t *testing.T) {
	began := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	at := func(minute int, values ...float64) policies.MetricSample {
		return policies.MetricSample{At: began.Add(time.Duration(minute) * time.Minute), Values: values}
	}
	var all []policies.MetricSample
	for i := range policies.MaxMetricSamples + 5 {
		all = addSample(all, at(i, float64(i)))
	}
	if len(all) != policies.MaxMetricSamples || !all[0].At.Equal(began.Add(5*time.Minute)) {
		t.Fatalf("%d are kept, from %s", len(all), all[0].At)
	}
	// Another process's sample in between stays in its place, whichever writes last.
	between := addSample(addSample(addSample(nil, at(3, 3)), at(1, 1)), at(2, 0.5))
	if len(between) != 3 || between[1].Values[0] != 0.5 {
		t.Errorf("the order is %+v", between)
	}
	if again := addSample(between, at(2, 9)); len(again) != 3 || again[1].Values[0] != 0.5 {
		t.Errorf("the same sample twice gives %+v", again)
	}
	raw, err := json.Marshal(between)
	if err != nil {
		t.Fatal(err)
	}
	parse := func(raw string) []policies.MetricSample {
		about := record.InPull{Pull: record.OfPull("r", 7), Name: "m"}
		samples, err := readSamples(t.Context(), storedRecords{metricSamples.Key(about): raw}, about)
		if err != nil {
			t.Fatal(err)
		}
		return samples
	}
	if read := parse(string(raw)); len(read) != 3 || !read[2].At.Equal(between[2].At) {
		t.Errorf("it is read as %+v", read)
	}
	if left := forgetFuture(parse(string(raw)), at(2).At.Add(-policies.MaxClockAhead)); len(left) != 2 {
		t.Errorf("of a clock that was ahead is left %+v", left)
	}
	for name, raw := range map[string]string{
		"nothing": "", "no list": "{}", "no list of samples": `[{"at":"2026-11-23T12:01:00Z"}, 7]`, "the wrong order": `[{"at":"2026-11-23T12:01:00Z"},{"at":"2026-11-23T12:00:00Z"}]`, "too many": "[" + strings.Repeat(`{"at":"2026-11-23T12:00:00Z"},`, policies.MaxMetricSamples) + `{"at":"2026-11-23T12:00:00Z"}]`,
	} {
		if read := parse(raw); read != nil {
			t.Errorf("%s is read as %+v", name, read)
		}
	}
}

// TestMetricKeys holds that what was measured counts for one release, query and interval of
// one pull request only.
func TestMetricKeys(t *testing.T) {
	m := policies.Metric{Prometheus: "main", Every: time.Minute}
	other, slower := m, m
	other.Prometheus, slower.Every = "other", time.Hour
	seen := map[record.InPull]bool{}
	for _, key := range []record.InPull{
		ofMetric("hub:acme/fleet", 1, "r1", &m, "up"), ofMetric("hub:acme/fleet", 11, "r1", &m, "up"), ofMetric("hub:acme/fleet", 1, "r2", &m, "up"),
		ofMetric("hub:acme/fleet", 1, "r1", &other, "up"), ofMetric("hub:acme/fleet", 1, "r1", &slower, "up"), ofMetric("hub:acme/fleet", 1, "r1", &m, "down"),
	} {
		if seen[key] {
			t.Errorf("%v is for two", key)
		}
		seen[key] = true
	}
}
