package promotion

import (
	"bytes"
	"encoding/json"
	"slices"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// pureEvery is how many decisions come for one that is checked for being pure: the check costs more
// than all the rest.
const pureEvery = 16

// isPure holds that facts and decisions can be written down, that deciding again
// gives the same and leaves the facts as they were.
func isPure(t *rapid.T, f Facts) {
	before, first := asJSON(t, f), asJSON(t, Decide(f))
	if again := asJSON(t, Decide(f)); !bytes.Equal(first, again) {
		t.Fatalf("the same facts gave two decisions\n%s\n%s", first, again)
	}
	if after := asJSON(t, f); !bytes.Equal(before, after) {
		t.Fatalf("Decide changed its facts\nbefore %s\nafter  %s", before, after)
	}
	var read Facts
	if err := json.Unmarshal(before, &read); err != nil {
		t.Fatal(err)
	}
	if again := asJSON(t, Decide(read)); !bytes.Equal(first, again) {
		t.Fatalf("decided otherwise after being written down\n%s\n%s", first, again)
	}
}

// observesOnly holds that nothing is changed in the mode observe.
func observesOnly(t *rapid.T, f ComponentFacts) {
	p := *f.Pipeline
	p.Spec.Mode = pipeline.ModeDryRun
	f.Pipeline = &p
	for _, a := range decideAlone(t, f).Actions {
		switch a := a.(type) {
		case FactRequest, Record:
			continue
		case FinishCommand:
			if !a.Done {
				continue
			}
		}
		t.Fatalf("in mode observe: %s", a.Describe())
	}
}

// waitsOnDoubt holds that nothing moves into, or is taken back from, an
// environment of which something can't be read, and that nothing merges past it.
func waitsOnDoubt(t *rapid.T, f ComponentFacts) {
	for i := range f.Envs {
		for what, blur := range map[string]func(*Env){
			"release": func(e *Env) { e.Release = Unsure[Release]("a file can't be read") },
			"landed":  func(e *Env) { e.Landed = Unsure[Landed]("the log can't be read") },
			"targets": func(e *Env) {
				e.Targets = slices.Clone(e.Targets)
				for k := range e.Targets {
					e.Targets[k].Verdict = verification.Verdict{State: verification.Unclear}
				}
			},
		} {
			g := f
			g.Envs = slices.Clone(f.Envs)
			e := &g.Envs[i]
			blur(e)
			for _, a := range decideAlone(t, g).Actions {
				m, merges := a.(Merge)
				_, opens := a.(Open)
				_, reverts := a.(OpenRevert)
				past := merges && !m.Revert && slices.Contains(upstreamOf(&g, m.Environment), e.Name) &&
					(what == "release" || what == "targets" && e.Release.Value.ID == simEnv(&g, m.Environment).Open.Release)
				into := EnvironmentOf(a) == e.Name && what != "targets" && (merges || opens || reverts)
				if past || into {
					t.Fatalf("%s, with the %s of %s unknown", a.Describe(), what, e.Name)
				}
			}
		}
	}
}

func asJSON(t *rapid.T, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
