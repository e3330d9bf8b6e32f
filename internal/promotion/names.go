package promotion

import (
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/wording"
)

// The branches of Liftlock's own pull requests start with these.
const (
	BranchPrefix = "liftlock/"
	RevertPrefix = "liftlock-revert/"
	// OnboardingBranch is that of the pull request that proposes a pipeline file. It is no promotion's.
	OnboardingBranch = BranchPrefix + "onboarding"
	// IncomingPrefix begins the branches of pull requests that bring new versions into a source environment. They are no
	// promotions'.
	IncomingPrefix = "liftlock-incoming/"
)

// The labels that mean something to Liftlock.
const (
	LabelOurs       = "liftlock"
	LabelHold       = "liftlock/hold"
	LabelSuperseded = "liftlock/superseded"
	// LabelSkipped is followed by the kind of a gate that somebody skipped. It informs people.
	LabelSkipped = "liftlock/skipped-"
)

// The trailers of our commits. They inform people; they may restrain, never loosen.
const (
	TrailerPipeline    = "Liftlock-Pipeline"
	TrailerEnvironment = "Liftlock-Environment"
	TrailerComponent   = "Liftlock-Component"
	TrailerRelease     = "Liftlock-Release"
	TrailerKind        = "Liftlock-Kind"
	TrailerMembers     = "Liftlock-Passengers"   // of a pull request that moves several components
	TrailerRequesters  = "Liftlock-Requested-By" // of a promotion: the accounts of who gave the commands for it

	KindPromotion = "promotion"
	KindRevert    = "revert"
)

// BranchRef is what the name of one of our branches says.
type BranchRef struct {
	Pipeline, Environment, Component string
	Short                            string // a revert's release, 12 hex digits
	Revert                           bool
}

// Branch is the branch of the promotion into an environment.
func Branch(pipeline, environment, component string) string {
	return BranchPrefix + pipeline + "/" + environment + "/" + component
}

// RevertBranch is the branch of the revert of a release from an environment.
func RevertBranch(pipeline, environment, component, release string) string {
	return RevertPrefix + pipeline + "/" + environment + "/" + component + "/" + wording.Short(release)
}

// IncomingBranch is the branch of the pull request that brings new versions of a component into a source environment.
func IncomingBranch(pipeline, environment, component string) string {
	return IncomingPrefix + pipeline + "/" + environment + "/" + component
}

// ParseBranch reads a branch name; false when it isn't one of ours.
func ParseBranch(name string) (BranchRef, bool) {
	rest, revert := strings.CutPrefix(name, RevertPrefix)
	if !revert {
		var promotes bool
		if rest, promotes = strings.CutPrefix(name, BranchPrefix); !promotes {
			return BranchRef{}, false
		}
		rest += "/-" // a promotion's has no release
	}
	p := strings.Split(rest, "/")
	if len(p) != 4 || slices.Contains(p, "") {
		return BranchRef{}, false
	}
	out := BranchRef{Pipeline: p[0], Environment: p[1], Component: p[2], Revert: revert}
	if revert {
		out.Short = p[3]
	}
	return out, true
}

// MembersTrailer writes who moves together, for a commit's trailer: each
// component with its short release, a line each.
func MembersTrailer(members []Member) string {
	lines := make([]string, len(members))
	for i, p := range members {
		lines[i] = p.Component + " " + wording.Short(p.Release)
	}
	return strings.Join(lines, ",\n ")
}

// ParseMembers reads what MembersTrailer wrote, with its lines joined. The
// releases are short.
func ParseMembers(text string) []Member {
	var out []Member
	for part := range strings.SplitSeq(text, ",") {
		if name, release, ok := strings.Cut(strings.TrimSpace(part), " "); ok {
			out = append(out, Member{Component: name, Release: strings.TrimSpace(release)})
		}
	}
	return out
}

// ReleaseFromTrailers is the release that a commit's trailers name for a component in
// an environment: its own, or, of several that move together, its part in short.
// "" when they are about something else.
func ReleaseFromTrailers(trailers map[string]string, u Unit, environment string) string {
	if trailers[TrailerPipeline] != u.Pipeline || trailers[TrailerEnvironment] != environment {
		return ""
	}
	if members, ok := trailers[TrailerMembers]; ok && trailers[TrailerComponent] == BatchName {
		p, _ := FindMember(ParseMembers(members), u.Component)
		return p.Release
	}
	if trailers[TrailerComponent] != u.Component {
		return ""
	}
	return trailers[TrailerRelease]
}
