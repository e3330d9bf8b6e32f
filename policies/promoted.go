package policies

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/cel-go/cel"

	"github.com/liftlock/liftlock/internal/wording"
)

// Promotion is what an expression knows of the promotion that it is asked about.
type Promotion struct {
	Pipeline    string
	Environment string
	Component   string
	// Release is nil where it can't be read; ReleaseErr says why.
	Release    *Release
	ReleaseErr string
	// Commit is what brought the release to its source environment; nil where it isn't
	// known or nothing asks for it. CommitErr says why it isn't known.
	Commit    *Commit `json:",omitempty"`
	CommitErr string  `json:",omitempty"`
	// Diff is what the promotion does to the rendered manifests; nil where that isn't known
	// or nothing asks for it. DiffErr says why it isn't known.
	Diff     *Diff  `json:",omitempty"`
	DiffErr  string `json:",omitempty"`
	Upstream []UpstreamEnvironment
	Pull     PullRequest
	Targets  []Target
}

// Release is what is promoted.
type Release struct {
	ID     string  `cel:"id" json:"id"`       // 64 hex digits
	Short  string  `cel:"short" json:"short"` // the first 12 of them
	Name   string  `cel:"name" json:"name"`
	Images []Image `cel:"images" json:"images,omitempty"`
	Fields []Field `cel:"fields" json:"fields,omitempty"`
	// Authors and Commit are filled in for expressions alone, where they are known.
	Authors []string `cel:"authors" json:"-"` // logins
	Commit  Commit   `cel:"commit" json:"-"`
}

// Image is an image that a kustomization sets.
type Image struct {
	Name   string `cel:"name" json:"name"` // as the kustomization has it
	Tag    string `cel:"tag" json:"tag,omitempty"`
	Digest string `cel:"digest" json:"digest,omitempty"`
	File   string `cel:"file" json:"file,omitempty"`
}

// Field is a carried field with its value in the release and in the environment.
type Field struct {
	File  string `cel:"file" json:"file"`
	Field string `cel:"field" json:"field,omitempty"` // its address; empty: the whole file
	Old   string `cel:"old" json:"old,omitempty"`     // empty: it isn't there
	New   string `cel:"new" json:"new,omitempty"`
}

// Commit is the commit by which a release came to its source environment, as Git has it: anybody
// who may push writes its text.
type Commit struct {
	SHA     string `cel:"sha" json:"sha"`
	Message string `cel:"message" json:"message"` // the whole of it
	// Trailers are the "Key: value" lines at its end, by key in canonical form (Reviewed-By);
	// of several with one key the last.
	Trailers map[string]string `cel:"trailers" json:"trailers,omitempty"`
	Time     time.Time         `cel:"time" json:"time"` // when it was committed, by the committer's clock
}

// Diff are the kinds of the objects that a promotion adds to, changes in and removes from
// the rendered manifests of the environment's targets, sorted, each once: Deployment.
type Diff struct {
	Added   []string `cel:"added" json:"added,omitempty"`
	Changed []string `cel:"changed" json:"changed,omitempty"`
	Removed []string `cel:"removed" json:"removed,omitempty"`
}

// UpstreamEnvironment is an environment that the promoted one comes after.
type UpstreamEnvironment struct {
	Name       string    `cel:"name" json:"name"`
	Verified   bool      `cel:"verified" json:"verified"`     // the release, and it hasn't degraded there since
	VerifiedAt time.Time `cel:"verifiedAt" json:"verifiedAt"` // where it is
	// HealthyFor is for how long the release was verified there without a break: the
	// longest stretch, counted as [Soak] counts it.
	HealthyFor time.Duration `cel:"healthyFor" json:"healthyFor,omitempty"`
}

// PullRequest is the promotion's pull request.
type PullRequest struct {
	Number int64    `cel:"number" json:"number"`
	Labels []string `cel:"labels" json:"labels,omitempty"`
	Draft  bool     `cel:"draft" json:"draft,omitempty"`
}

// Target is a target of the environment.
type Target struct {
	Name      string `cel:"name" json:"name"`
	Cluster   string `cel:"cluster" json:"cluster,omitempty"`
	Namespace string `cel:"namespace" json:"namespace,omitempty"` // where it is deployed to; empty: its manifests say
}

// Words of expressions about what isn't gathered where nothing asks for it.
const (
	wordAuthors = "authors"
	wordCommit  = "commit"
	wordDiff    = "diff"
	wordHealthy = "healthyFor"
)

// RequiresAuthors says that the gate needs to know who made the release.
func (g *Gate) RequiresAuthors() bool {
	return g.Approvals != nil || g.Expression.mentions(wordAuthors)
}

// RequiresCommit says that the gate needs to know which commit brought the release.
func (g *Gate) RequiresCommit() bool { return g.Expression.mentions(wordCommit) }

// RequiresDiff says that the gate needs to know what the rendered manifests gain and lose.
func (g *Gate) RequiresDiff() bool { return g.Expression.mentions(wordDiff) }

// RequiresSoak says that the gate needs to know for how long the release was verified in an
// environment that is, or isn't, in the promoted one's after.
func (g *Gate) RequiresSoak(environment string, direct bool) bool {
	if s := g.Soak; s != nil && (s.Environment == environment || s.Environment == "" && direct) {
		return true
	}
	return g.Expression.mentions(wordHealthy)
}

// mentions says that a word is in the expression. One that has it in a text only is said
// to mention it too: then more is gathered than it takes, and nothing else comes of it.
func (e *Expression) mentions(word string) bool {
	if e == nil {
		return false
	}
	return slices.Contains(strings.FieldsFunc(string(*e), func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), word)
}

// unknownFact is something that an expression may ask for and that nobody knows.
type unknownFact struct{ word, why string }

// newExpressionVariables are what an expression is evaluated over, and what of it isn't
// known. The facts have a promotion with its release.
func newExpressionVariables(f *Facts) (cel.Activation, []unknownFact, error) {
	p := f.Promotion
	release, diff := *p.Release, Diff{}
	var unknown []unknownFact
	var patterns []*cel.AttributePatternType
	mark := func(word, why, otherwise string, pattern *cel.AttributePatternType) {
		if why == "" {
			why = otherwise
		}
		unknown, patterns = append(unknown, unknownFact{word, why}), append(patterns, pattern)
	}
	release.Authors = listLogins(f.Authors)
	if f.AuthorsErr != "" || len(release.Authors) == 0 {
		// Nobody made it is never so: an expression about all authors would be true of nobody.
		mark(wordAuthors, f.AuthorsErr, "who made the release isn't known", cel.AttributePattern("release").QualString(wordAuthors))
	}
	if p.Commit != nil {
		release.Commit = *p.Commit
	} else {
		mark(wordCommit, p.CommitErr, "which commit brought the release isn't known",
			cel.AttributePattern("release").QualString(wordCommit))
	}
	if p.Diff != nil {
		diff = *p.Diff
	} else {
		mark(wordDiff, p.DiffErr, "what the rendered manifests gain and lose isn't known", cel.AttributePattern(wordDiff))
	}
	vars, err := cel.PartialVars(map[string]any{
		"pipeline": p.Pipeline, "environment": p.Environment, "component": p.Component, "release": release,
		"upstream": p.Upstream, "pull": p.Pull, "targets": p.Targets, "diff": diff, "now": f.Now.UTC(),
	}, patterns...)
	return vars, unknown, err
}

// listLogins are accounts' names, each once.
func listLogins(accounts []Account) []string {
	var out []string
	for _, a := range accounts {
		if a.Login != "" && !slices.Contains(out, a.Login) {
			out = append(out, a.Login)
		}
	}
	return out
}

// explainUnknown says why what an expression asks for isn't known.
func explainUnknown(expression string, unknown []unknownFact) string {
	var reasons []string
	e := Expression(expression)
	for _, u := range unknown {
		if e.mentions(u.word) {
			reasons = append(reasons, u.why)
		}
	}
	if len(reasons) == 0 { // it takes a whole of which this is a part
		for _, u := range unknown {
			reasons = append(reasons, u.why)
		}
	}
	return wording.ClipLine(strings.Join(reasons, "; "), maxExpressionReason)
}
