package appset

import (
	"encoding/json"
	"fmt"
)

// RestoreOptions fills in the options of a target's sources from its Application: a target
// that was written down as JSON comes back without them. It needs the target's whole
// manifest; the error says what doesn't fit.
func RestoreOptions(t *Target) error {
	type options struct {
		Kustomize json.RawMessage `json:"kustomize,omitempty"`
		Helm      json.RawMessage `json:"helm,omitempty"`
		Directory json.RawMessage `json:"directory,omitempty"`
		Plugin    json.RawMessage `json:"plugin,omitempty"`
	}
	var app struct {
		Spec struct {
			Source   *options         `json:"source"`
			Sources  []options        `json:"sources"`
			Hydrator *json.RawMessage `json:"sourceHydrator"`
		} `json:"spec"`
	}
	if len(t.Application) == 0 {
		return fmt.Errorf("the Application %s came without its manifest", t.Name)
	}
	if err := json.Unmarshal(t.Application, &app); err != nil {
		return fmt.Errorf("reading the Application %s: %w", t.Name, err)
	}
	if app.Spec.Hydrator != nil {
		return nil // the hydrator's input has none
	}
	all := app.Spec.Sources
	if len(all) == 0 && app.Spec.Source != nil {
		all = []options{*app.Spec.Source}
	}
	if len(all) != len(t.Sources) {
		return fmt.Errorf("the Application %s has %d sources, and %d are known", t.Name, len(all), len(t.Sources))
	}
	for i, o := range all {
		if len(o.Kustomize)+len(o.Helm)+len(o.Directory)+len(o.Plugin) == 0 {
			continue
		}
		raw, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("reading the options of %s: %w", t.Name, err)
		}
		t.Sources[i].Options = raw
	}
	return nil
}
