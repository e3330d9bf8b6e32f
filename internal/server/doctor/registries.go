package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// ListOutcome is how a registry, or a chart repository, answered for a list.
type ListOutcome string

// The outcomes. Another one is of a list that couldn't be read.
const (
	Listed      ListOutcome = "ok"
	ListUnnamed ListOutcome = "unlisted" // the server's file doesn't have the registry
	ListRefused ListOutcome = "refused"
	ListMissing ListOutcome = "missing"
	ListTooLong ListOutcome = "too many"
	ListPlain   ListOutcome = "plain" // the registry speaks no TLS
	ListLimited ListOutcome = "limited"
)

// limitReserve says when a limit is nearly used up: when one of so many requests is left.
const limitReserve = 10

// TriedList is the list of an image's tags, or of a chart's versions.
type TriedList struct {
	Registry, Name string
	Tags           int
	Outcome        ListOutcome
	Err            error // nil with Listed
}

// RegistryLimit is how many requests of how many a registry still takes.
type RegistryLimit struct{ Remaining, Limit int }

// Discovered is what a pipeline lets come in by itself, tried at the registries.
type Discovered struct {
	Lists  []TriedList
	Limits map[string]RegistryLimit // by registry, of those that say so
	Chosen int                      // images and charts that a rule is about, at all places
	// Refused say where a rule can't be used, Barren where it chooses none of the tags that there are, Unmatched
	// which entry is about nothing that is carried.
	Refused, Barren, Unmatched []string
	LeftOut                    int // places that weren't tried
	Err                        error
}

// checkDiscovered checks what a pipeline lets come in by itself.
func (d *doctor) checkDiscovered(ctx context.Context, where string, try func(context.Context) *Discovered) (found findings) {
	ctx, cancel := d.limit(ctx)
	defer cancel()
	tried := try(ctx)
	for _, registry := range namesOfRegistries(tried.Lists) {
		found = append(found, judgeRegistry(registry, tried)...)
	}
	return append(found, judgeRules(where, tried)...)
}

func namesOfRegistries(all []TriedList) []string {
	var out []string
	for i := range all {
		out = append(out, all[i].Registry)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// judgeRegistry judges the lists of one registry: each kind of failure once.
func judgeRegistry(name string, t *Discovered) (found findings) {
	where := "registry " + name
	if strings.Contains(name, "://") {
		where = "charts of " + redactURL(name)
	}
	byOutcome := map[ListOutcome][]TriedList{}
	tags := 0
	for _, l := range t.Lists {
		if l.Registry == name {
			byOutcome[l.Outcome], tags = append(byOutcome[l.Outcome], l), tags+l.Tags
		}
	}
	limit := ""
	if l, ok := t.Limits[name]; ok {
		limit = fmt.Sprintf("; %d of %d requests are left", l.Remaining, l.Limit)
		if l.Remaining <= l.Limit/limitReserve && byOutcome[ListLimited] == nil {
			byOutcome[ListLimited] = []TriedList{{Name: "its limit is nearly used up"}}
		}
	}
	for _, outcome := range slices.Sorted(maps.Keys(byOutcome)) {
		if outcome != Listed {
			addRegistry(&found, where, outcome, describeLists(byOutcome[outcome])+limit)
		}
	}
	found.addOK(0, CodeRegistry, where, fmt.Sprintf("it lists %s of %s%s", wording.Count(tags, "tag"),
		wording.Plural(len(byOutcome[Listed]), "repository", "repositories"), limit))
	return found
}

func addRegistry(found *findings, where string, outcome ListOutcome, message string) {
	switch outcome {
	case ListUnnamed:
		found.add("registry-unlisted", where, message, "add it under registries in the server's file, or a chart repository under charts: "+
			"nothing of it comes in until then")
	case ListRefused:
		found.add("registry-refused", where, message, "check its username and password, or dockerConfig, in the server's file, and that "+
			"they may pull what is named")
	case ListMissing:
		found.add("registry-missing", where, message, "correct the name where it is carried, or let the account pull it")
	case ListTooLong:
		found.add("registry-tags", where, message, "have the registry delete old tags: of so many none is chosen")
	case ListPlain:
		found.add("registry-plain", where, message, "give it TLS, or set plainHTTP: true for it in the server's file where the network is "+
			"trusted")
	case ListLimited:
		found.add("registry-limited", where, message, "log in with an account that has a higher limit, or raise "+
			"repositories[].discoverInterval; new tags come in later until then")
	default:
		found.add("registry-unread", where, message, "check that this machine reaches it, and its tls in the server's file; nothing of it "+
			"comes in until then")
	}
}

// describeLists says what is wrong with lists, and which they are.
func describeLists(all []TriedList) string {
	var names []string
	why := ""
	for i := range all {
		names = append(names, all[i].Name)
		if all[i].Err != nil {
			why = ": " + all[i].Err.Error()
		}
	}
	slices.Sort(names)
	return wording.JoinFew(slices.Compact(names), maxErrorsShown) + why
}

// judgeRules judges whether the rules can choose.
func judgeRules(where string, t *Discovered) (found findings) {
	show := func(all []string) string {
		if n := len(all) - maxErrorsShown; n > 0 {
			all = append(slices.Clone(all[:maxErrorsShown]), fmt.Sprintf("and %d more", n))
		}
		return strings.Join(all, "; ")
	}
	if t.Err != nil {
		found.add("discover-unread", where, t.Err.Error(), "try again; liftlock discover in a checkout says what would come in")
	}
	if len(t.Refused) > 0 {
		found.add("discover-refused", where, show(t.Refused), "correct it in the pipeline file or where the version is carried; liftlock "+
			"discover in a checkout tries it out")
	}
	if len(t.Barren) > 0 {
		found.add("discover-nothing", where, show(t.Barren), "correct the rule under choose, or push a tag that it can choose")
	}
	if len(t.Unmatched) > 0 {
		found.add("discover-unmatched", where, show(t.Unmatched), "carry a field that has its version beside its name, or remove the entry")
	}
	more := ""
	if t.LeftOut > 0 {
		more = fmt.Sprintf("; %s weren't tried", wording.Count(t.LeftOut, "more component"))
	}
	found.addOK(0, CodeDiscover, where, fmt.Sprintf("its rules choose for %s%s", wording.Plural(t.Chosen, "image or chart",
		"images and charts"), more))
	return found
}
