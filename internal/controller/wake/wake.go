// Package wake names the work of the controller: a key says where to look again,
// never what happened there. Keys are strings only in the store; here is the one
// place that writes and reads them.
package wake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/promotion"
)

// Kind says what a key is about.
type Kind string

// The kinds.
const (
	Repository  Kind = "repo"     // fetch, resolve and wake the units that changed
	Sweep       Kind = "sweep"    // look at everything that is open
	Hook        Kind = "hook"     // create or repair the webhook, and find what was missed by it
	PullRequest Kind = "pr"       // read one pull request again, with the commands in it
	Unit        Kind = "unit"     // evaluate one component, or all of a pipeline's that move by one pull request
	Rules       Kind = "rules"    // read anew what the forge demands of merges
	MergeGroup  Kind = "group"    // say of a merge group of the forge's whether it may land
	Checks      Kind = "checks"   // find whom the statuses of a commit concern, where that may be many
	Source      Kind = "source"   // wake the units with targets that have a source in a listed repository
	Merge       Kind = "merge"    // one a repository: evaluate again and merge, one after the other
	Onboarding  Kind = "onboard"  // propose a pipeline file to a repository without one, and keep that up to date
	Discovery   Kind = "discover" // look for new tags and versions, and commit those that come in by themselves
)

// Key names one piece of work. Keys are comparable.
type Key struct {
	Kind       Kind
	Repository string // "forge:owner/name"
	Pipeline   string // Unit
	Component  string // Unit
	Number     int    // PullRequest
	Branch     string // MergeGroup: the forge builds it on
	Commit     string // Checks
	Source     string // Source: the listed repository's address
}

// ForRepository is the key of a repository.
func ForRepository(repo string) Key { return Key{Kind: Repository, Repository: repo} }

// ForSweep is the key of a repository's sweep.
func ForSweep(repo string) Key { return Key{Kind: Sweep, Repository: repo} }

// ForHook is the key of a repository's webhook.
func ForHook(repo string) Key { return Key{Kind: Hook, Repository: repo} }

// ForRules is the key of what the forge demands of merges into a repository's branches.
func ForRules(repo string) Key { return Key{Kind: Rules, Repository: repo} }

// ForMergeGroup is the key of what the forge is about to merge as one, by the branch that it builds
// that on.
func ForMergeGroup(repo, branch string) Key {
	return Key{Kind: MergeGroup, Repository: repo, Branch: branch}
}

// ForChecks is the key of what a forge says of a commit.
func ForChecks(repo, commit string) Key { return Key{Kind: Checks, Repository: repo, Commit: commit} }

// ForSource is the key of what a repository's targets read in a listed repository.
func ForSource(repo, source string) Key { return Key{Kind: Source, Repository: repo, Source: source} }

// ForMerge is the key of a repository's merges.
func ForMerge(repo string) Key { return Key{Kind: Merge, Repository: repo} }

// ForOnboarding is the key of the pipeline file that a repository is proposed.
func ForOnboarding(repo string) Key { return Key{Kind: Onboarding, Repository: repo} }

// ForDiscovery is the key of what comes into a repository's source environments by itself.
func ForDiscovery(repo string) Key { return Key{Kind: Discovery, Repository: repo} }

// ForPull is the key of a pull request.
func ForPull(repo string, number int) Key {
	return Key{Kind: PullRequest, Repository: repo, Number: number}
}

// ForUnit is the key of a unit.
func ForUnit(u promotion.Unit) Key {
	return Key{Kind: Unit, Repository: u.Repo, Pipeline: u.Pipeline, Component: u.Component}
}

// Unit is what a key of kind Unit is about.
func (k Key) Unit() promotion.Unit {
	return promotion.Unit{Repo: k.Repository, Pipeline: k.Pipeline, Component: k.Component}
}

// String is the key as the store has it.
func (k Key) String() string {
	switch k.Kind {
	case PullRequest:
		return fmt.Sprintf("%s:%s#%d", k.Kind, k.Repository, k.Number)
	case Unit:
		return string(k.Kind) + ":" + UnitName(k.Unit())
	case MergeGroup:
		return string(k.Kind) + ":" + k.Repository + "|" + k.Branch
	case Checks:
		return string(k.Kind) + ":" + k.Repository + "|" + k.Commit
	case Source:
		return string(k.Kind) + ":" + k.Repository + "|" + k.Source
	}
	return string(k.Kind) + ":" + k.Repository
}

// Parse reads what String wrote; false for anything else.
func Parse(s string) (Key, bool) {
	kind, rest, _ := strings.Cut(s, ":")
	switch k := (Key{Kind: Kind(kind), Repository: rest}); k.Kind {
	case Repository, Sweep, Hook, Rules, Merge, Onboarding, Discovery:
		return k, rest != ""
	case PullRequest:
		i := strings.LastIndexByte(rest, '#')
		if i <= 0 {
			return Key{}, false
		}
		n, err := strconv.Atoi(rest[i+1:])
		return ForPull(rest[:i], n), err == nil && n > 0
	case MergeGroup:
		repo, branch, ok := strings.Cut(rest, "|")
		return ForMergeGroup(repo, branch), ok && repo != "" && branch != ""
	case Checks:
		repo, commit, ok := strings.Cut(rest, "|")
		return ForChecks(repo, commit), ok && repo != "" && commit != ""
	case Source:
		repo, source, ok := strings.Cut(rest, "|")
		return ForSource(repo, source), ok && repo != "" && source != ""
	case Unit:
		u, ok := ParseUnitName(rest)
		return ForUnit(u), ok
	}
	return Key{}, false
}

// UnitName is a unit's name in the store.
func UnitName(u promotion.Unit) string { return u.Repo + "|" + u.Pipeline + "|" + u.Component }

// ParseUnitName reads what UnitName wrote; false for anything else.
func ParseUnitName(s string) (promotion.Unit, bool) {
	p := strings.Split(s, "|")
	if len(p) != 3 {
		return promotion.Unit{}, false
	}
	return promotion.Unit{Repo: p[0], Pipeline: p[1], Component: p[2]}, true
}

// Strings are keys as the store has them, sorted, each once.
func Strings(keys ...Key) []string {
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		out = append(out, k.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}
