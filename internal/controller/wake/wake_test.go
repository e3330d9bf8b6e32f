package wake

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/promotion"
)

// TestKeysAreKept holds the keys' text: the store of a running server has them.
func TestKeysAreKept(t *testing.T) {
	t.Parallel()
	for want, k := range map[string]Key{
		"repo:hub:acme/fleet":                                        ForRepository("hub:acme/fleet"),
		"sweep:hub:acme/fleet":                                       ForSweep("hub:acme/fleet"),
		"hook:hub:acme/fleet":                                        ForHook("hub:acme/fleet"),
		"rules:hub:acme/fleet":                                       ForRules("hub:acme/fleet"),
		"group:hub:acme/fleet|q/main/pr-7-0":                         ForMergeGroup("hub:acme/fleet", "q/main/pr-7-0"),
		"merge:hub:acme/fleet":                                       ForMerge("hub:acme/fleet"),
		"onboard:hub:acme/fleet":                                     ForOnboarding("hub:acme/fleet"),
		"discover:hub:acme/fleet":                                    ForDiscovery("hub:acme/fleet"),
		"checks:hub:acme/fleet|c0ffee":                               ForChecks("hub:acme/fleet", "c0ffee"),
		"source:hub:acme/fleet|https://git.example:8443/acme/charts": ForSource("hub:acme/fleet", "https://git.example:8443/acme/charts"),
		"pr:hub:acme/fleet#12":                                       ForPull("hub:acme/fleet", 12),
		"unit:hub:acme/fleet|shop|web":                               ForUnit(promotion.Unit{Repo: "hub:acme/fleet", Pipeline: "shop", Component: "web"}),
	} {
		if got := k.String(); got != want {
			t.Errorf("%+v is written %q, want %q", k, got, want)
		}
		if back, ok := Parse(want); !ok || back != k {
			t.Errorf("%q is read as %+v, %t", want, back, ok)
		}
	}
}

// TestUnknownKeysAreRefused holds that what a newer or broken server left in the store is
// dropped rather than taken for something else.
func TestUnknownKeysAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "repo", "repo:", "pr:hub:acme/fleet", "pr:#1", "pr:hub:acme/fleet#x", "pr:hub:acme/fleet#0", "pr:hub:acme/fleet#-1", "unit:a|b", "unit:a|b|c|d", "checks:hub:acme/fleet", "checks:hub:acme/fleet|", "checks:|c0ffee", "source:hub:acme/fleet", "source:hub:acme/fleet|", "later:hub:acme/fleet"} {
		if k, ok := Parse(s); ok {
			t.Errorf("%q is read as %+v", s, k)
		}
	}
}

// TestKeysCanBeReadAgain holds that a key means the same after a restart.
func TestKeysCanBeReadAgain(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(`[a-z0-9.:/#-]{1,20}`)
	rapid.Check(t, func(t *rapid.T) {
		repo := name.Draw(t, "repo")
		k := rapid.SampledFrom([]Key{ForRepository(repo), ForSweep(repo), ForHook(repo), ForRules(repo), ForMerge(repo), ForOnboarding(repo), ForDiscovery(repo), ForMergeGroup(repo, "gh-readonly-queue/main/pr-7-0"), ForChecks(repo, "c0ffee"), ForPull(repo, rapid.IntRange(1, 1<<30).Draw(t, "number")),
			ForUnit(promotion.Unit{Repo: repo, Pipeline: name.Draw(t, "pipeline"), Component: name.Draw(t, "component")})}).Draw(t, "key")
		if back, ok := Parse(k.String()); !ok || back != k {
			t.Fatalf("%+v is read again as %+v, %t", k, back, ok)
		}
	})
}

func TestStringsAreSortedAndOnce(t *testing.T) {
	t.Parallel()
	got := Strings(ForSweep("b"), ForRepository("b"), ForRepository("a"), ForSweep("b"))
	if want := []string{"repo:a", "repo:b", "sweep:b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
