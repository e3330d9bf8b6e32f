package pipeline

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestOnDegraded reads both ways of writing it, and writes them back.
func TestOnDegraded(t *testing.T) {
	for text, c := range map[string]struct {
		want        OnDegraded
		shown, json string
	}{
		"hold":             {OnDegraded{Action: "hold"}, "hold", `"hold"`},
		"revert-and-merge": {OnDegraded{Action: "revert-and-merge"}, "revert-and-merge", `"revert-and-merge"`},
		"{}":               {OnDegraded{Action: "revert"}, "revert", `"revert"`},
		"{action: hold}":   {OnDegraded{Action: "hold"}, "hold", `"hold"`},
		"{quorum: 50%}":    {OnDegraded{"revert", Quorum{Percent: 50}}, "{action: revert, quorum: 50%}", `{"action":"revert","quorum":"50%"}`},
		"{action: revert-and-merge, quorum: 100%}": {OnDegraded{"revert-and-merge", Quorum{Percent: 100}}, "{action: revert-and-merge, quorum: 100%}", `{"action":"revert-and-merge","quorum":"100%"}`},
		"{action: revert, quorum: 2}":              {OnDegraded{"revert", Quorum{Targets: 2}}, "{action: revert, quorum: 2}", `{"action":"revert","quorum":"2"}`},
		"{action: revert, quorum: \"1\"}":          {OnDegraded{"revert", Quorum{Targets: 1}}, "{action: revert, quorum: 1}", `{"action":"revert","quorum":"1"}`},
		"{action: revert, quorum: 1000000}":        {OnDegraded{"revert", Quorum{Targets: 1_000_000}}, "{action: revert, quorum: 1000000}", `{"action":"revert","quorum":"1000000"}`},
	} {
		t.Run(text, func(t *testing.T) {
			all, err := Parse("p", []byte(minimalPipeline+"      onDegraded: "+text+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			got := all[0].Spec.Environments[2].OnDegraded
			if got != c.want || got.String() != c.shown {
				t.Errorf("it is %+v, shown as %s", got, got)
			}
			data, err := json.Marshal(got)
			if err != nil || string(data) != c.json {
				t.Errorf("as JSON it is %s, %v", data, err)
			}
			back := OnDegraded{"x", Quorum{Percent: 7}}
			if err := json.Unmarshal(data, &back); err != nil || back != got {
				t.Errorf("JSON brings back %+v, %v", back, err)
			}
		})
	}
	if got := (OnDegraded{}); json.Unmarshal([]byte(`{"action":"revert","quorum":"0"}`), &got) == nil {
		t.Errorf("JSON with a quorum of 0 is %+v", got)
	}
	if s := (Quorum{}).String(); s != "1" {
		t.Errorf("without one it is %s", s)
	}
}

// TestQuorumOf counts how many targets a quorum takes.
func TestQuorumOf(t *testing.T) {
	for _, c := range []struct {
		quorum   Quorum
		of, want int
	}{
		{Quorum{}, 12, 1},
		{Quorum{Targets: 2}, 12, 2},
		{Quorum{Targets: 12}, 12, 12},
		{Quorum{Targets: 13}, 12, 12}, // all of them
		{Quorum{Targets: 2}, 1, 1},
		{Quorum{Targets: 2}, 0, 1}, // nothing is degraded where there is nothing
		{Quorum{Percent: 50}, 12, 6},
		{Quorum{Percent: 50}, 3, 2},
		{Quorum{Percent: 50}, 1, 1},
		{Quorum{Percent: 1}, 12, 1},
		{Quorum{Percent: 34}, 3, 2},
		{Quorum{Percent: 33}, 3, 1},
		{Quorum{Percent: 67}, 3, 3}, // two are a little less
		{Quorum{Percent: 100}, 12, 12},
		{Quorum{Percent: 100}, 0, 1},
	} {
		if got := c.quorum.Of(c.of); got != c.want {
			t.Errorf("%s of %d is %d, want %d", c.quorum, c.of, got, c.want)
		}
	}
}

// TestQuorumCanBeReached holds of every quorum that may be written that some number of targets
// reaches it. A share of them is one, and its text says it.
func TestQuorumCanBeReached(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprint(rapid.IntRange(-2, 150).Draw(t, "n"), rapid.SampledFrom([]string{"", "%"}).Draw(t, "unit"))
		text = strings.ReplaceAll(text, " ", "")
		var q Quorum
		if q.UnmarshalText([]byte(text)) != nil {
			return
		}
		total := rapid.IntRange(1, 200).Draw(t, "targets")
		if n := q.Of(total); n < 1 || n > total || q.String() != text || n*100 < total*q.Percent || q.Percent > 0 && n > 1 && (n-1)*100 >= total*q.Percent {
			t.Fatalf("%s of %d is %d, shown as %s", text, total, n, q)
		}
	})
}
