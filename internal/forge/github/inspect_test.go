package github

import (
	"testing"

	"github.com/liftlock/liftlock/internal/forge"
)

// TestInspectGuard reads rulesets that the emulated GitHub doesn't make: those of a part of what
// guards a branch, and every bypass.
func TestInspectGuard(t *testing.T) {
	rule := func(kind string, id int) jsonObject { return jsonObject{"type": kind, "ruleset_id": id} }
	for _, c := range []struct {
		name     string
		rules    []jsonObject
		bypasses map[string]string // by ruleset; one that is left out can't be seen
		want     forge.BranchGuard
	}{
		{"no rules", []jsonObject{}, nil, forge.BranchGuard{}},
		{"rules of something else", []jsonObject{rule("deletion", 1), rule("non_fast_forward", 1)}, nil, forge.BranchGuard{}},
		{"creation alone: everybody moves it", []jsonObject{rule("creation", 1)}, map[string]string{"1": "always"}, forge.BranchGuard{}},
		{"update alone: everybody makes it", []jsonObject{rule("update", 1)}, map[string]string{"1": "always"}, forge.BranchGuard{}},
		{"both", []jsonObject{rule("creation", 1), rule("update", 1)}, map[string]string{"1": "always"}, forge.BranchGuard{Guarded: true}},
		{"each in a ruleset", []jsonObject{rule("update", 2), rule("creation", 1)}, map[string]string{"1": "always", "2": "exempt"}, forge.BranchGuard{Guarded: true}},
		{"no bypass", []jsonObject{rule("creation", 1), rule("update", 1)}, map[string]string{"1": "never"}, forge.BranchGuard{Guarded: true, Excluded: true}},
		{"a bypass of merges alone", []jsonObject{rule("creation", 1), rule("update", 1)}, map[string]string{"1": "pull_requests_only"}, forge.BranchGuard{Guarded: true, Excluded: true}},
		{"past one of two", []jsonObject{rule("creation", 1), rule("update", 2)}, map[string]string{"1": "always", "2": "never"}, forge.BranchGuard{Guarded: true, Excluded: true}},
		{"creation alone, and not past it", []jsonObject{rule("creation", 1)}, map[string]string{"1": "never"}, forge.BranchGuard{Excluded: true}},
		{"a ruleset that isn't seen", []jsonObject{rule("creation", 1), rule("update", 1)}, nil, forge.BranchGuard{Guarded: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, d := newReplayServer(t)
			r.on("GET repos/acme/fleet/rules/branches/liftlock%2Fshop%2Fqa%2Fweb", okResponse(c.rules))
			for id, bypass := range c.bypasses {
				r.on("GET repos/acme/fleet/rulesets/"+id, okResponse(jsonObject{"name": "ours", "current_user_can_bypass": bypass}))
			}
			if got, err := d.InspectGuard(ctx, testRepoName, "liftlock/shop/qa/web"); err != nil || got != c.want {
				t.Errorf("it is %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}
