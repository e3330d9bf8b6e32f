package discover

import (
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Bounds of a rule, far above any real one.
const (
	maxRuleText = 1000
	maxIgnored  = 100
)

// Choose says which tag of an image, or which version of a chart, comes in. Exactly one of semver, newest and digest is
// set.
type Choose struct {
	// The highest version in a range, as Masterminds' semver reads both: ">=1.0.0 <2.0.0", "~3.2" or "*".
	SemVer string `yaml:"semver" json:"semver,omitempty" jsonschema:"minLength=1"`
	// With semver: pre-releases such as 1.0.0-rc.1 count. Not set: only where the range names one.
	Prerelease bool `yaml:"prerelease" json:"prerelease,omitempty"`
	// With semver: a regular expression for the tags that count. Its named group, if any, is the version.
	Tags string `yaml:"tags" json:"tags,omitempty" jsonschema:"minLength=1"`
	// The newest tag by a number, by the alphabet or by when the image was made.
	Newest *Newest `yaml:"newest" json:"newest,omitempty"`
	// The digest that one tag has now.
	Digest *FollowedTag `yaml:"digest" json:"digest,omitempty"`
	// Globs of tags that never come in.
	Ignore []string `yaml:"ignore" json:"ignore,omitempty" jsonschema:"minItems=1"`
	// What is chosen may be older than what is there, such as after a tag was deleted.
	Downgrade bool `yaml:"downgrade" json:"downgrade,omitempty"`
}

// Newest orders tags that have no versions.
type Newest struct {
	// A regular expression for the tags that count. Its named group, if any, is compared.
	Tags string `yaml:"tags" json:"tags" jsonschema:"required,minLength=1"`
	// number: such as a build's. alphabet: the text. created: when the image was made.
	By string `yaml:"by" json:"by" jsonschema:"required,enum=number,enum=alphabet,enum=created"`
}

// FollowedTag names the one tag of which the digest is written.
type FollowedTag struct {
	// The tag, such as latest.
	Tag string `yaml:"tag" json:"tag" jsonschema:"required,minLength=1"`
}

// By what the newest tag is found.
const (
	ByNumber   = "number"
	ByAlphabet = "alphabet"
	ByCreated  = "created"
)

// Problem is what is wrong with a rule, and at which of its keys; an empty one is the rule's own.
type Problem struct{ Key, Message string }

// validTag is what registries take for a tag (distribution-spec: "Pulling manifests"), and the plus that
// charts' versions have in its place.
var validTag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}$`)

// attachedTag is what lies beside images under tags of its own: what refers to an image (distribution-spec: "Referrers Tag
// Schema"), and cosign's signatures, attestations and bills of materials.
var attachedTag = regexp.MustCompile(`^sha256-[0-9a-f]{64}(\.[a-z]+)?$`)

// Problems says all that is wrong with a rule; none: [Compile] takes it.
func (c *Choose) Problems() []Problem {
	var out []Problem
	add := func(key, format string, args ...any) { out = append(out, Problem{key, fmt.Sprintf(format, args...)}) }
	kinds := 0
	for _, is := range []bool{c.SemVer != "", c.Newest != nil, c.Digest != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		add("", "exactly one of semver, newest and digest is needed; this rule has %d", kinds)
		return out
	}
	if c.SemVer == "" {
		if c.Prerelease {
			add("prerelease", "belongs to semver; other rules know no pre-releases: remove it")
		}
		if c.Tags != "" {
			add("tags", "belongs to semver; write it into newest")
		}
	} else {
		out = append(out, c.semverProblems()...)
	}
	if c.Newest != nil {
		out = append(out, c.Newest.problems()...)
	}
	if c.Digest != nil && !validTag.MatchString(c.Digest.Tag) {
		add("digest.tag", "%q can't be a tag; write it like latest", c.Digest.Tag)
	}
	if c.Digest != nil && len(c.Ignore) > 0 {
		add("ignore", "does nothing with digest, which follows one tag: remove it")
	}
	if c.Digest != nil && c.Downgrade {
		add("downgrade", "does nothing with digest, as digests have no order: remove it")
	}
	if len(c.Ignore) > maxIgnored {
		add("ignore", "%d are too many; at most %d", len(c.Ignore), maxIgnored)
		return out
	}
	for i, glob := range c.Ignore {
		if _, err := path.Match(glob, ""); err != nil || glob == "" || len(glob) > maxRuleText {
			add(fmt.Sprintf("ignore[%d]", i), "%q is not a valid glob on tags, like *-debug", glob)
		}
	}
	return out
}

func (c *Choose) semverProblems() []Problem {
	var out []Problem
	if len(c.SemVer) > maxRuleText {
		out = append(out, Problem{"semver", fmt.Sprintf("the range is longer than %d characters", maxRuleText)})
	} else if _, err := semver.NewConstraint(c.SemVer); err != nil {
		out = append(out, Problem{"semver", fmt.Sprintf("%q is no range of versions; write it like \">=1.0.0 <2.0.0\", ~3.2 or \"*\"",
			c.SemVer)})
	}
	if c.Tags != "" {
		if _, _, err := compilePattern(c.Tags); err != nil {
			out = append(out, Problem{"tags", err.Error()})
		}
	}
	return out
}

func (n *Newest) problems() []Problem {
	var out []Problem
	switch n.By {
	case ByNumber, ByAlphabet, ByCreated:
	case "":
		out = append(out, Problem{"newest", "by is missing: number, alphabet or created; without it nothing orders the tags"})
	default:
		out = append(out, Problem{"newest.by", fmt.Sprintf("%q is not number, alphabet or created", n.By)})
	}
	if n.Tags == "" {
		return append(out, Problem{"newest", `tags is missing: a regular expression for the tags that count, like ^main-(?P<n>\d+)$`})
	}
	pattern, group, err := compilePattern(n.Tags)
	switch {
	case err != nil:
		out = append(out, Problem{"newest.tags", err.Error()})
	case n.By == ByCreated && group > 0:
		out = append(out, Problem{"newest.tags", fmt.Sprintf("the group %s does nothing with by: created; leave its name out",
			pattern.SubexpNames()[group])})
	case n.By == ByNumber && !matchesOnlyDigits(n.Tags, group):
		out = append(out, Problem{"newest.tags", fmt.Sprintf("%q can't be ordered by number, because what is compared may be something "+
			"else; "+`give the number a named group of digits, like ^main-(?P<n>\d+)$`, n.Tags)})
	}
	return out
}

// compilePattern compiles a rule's expression, and gives the group that is compared; 0 is the whole tag.
func compilePattern(text string) (pattern *regexp.Regexp, group int, err error) {
	if len(text) > maxRuleText {
		return nil, 0, fmt.Errorf("the expression is longer than %d characters", maxRuleText)
	}
	if pattern, err = regexp.Compile(text); err != nil {
		return nil, 0, fmt.Errorf("%q is no regular expression (%s): write it as Go's regexp reads it, like ^main-(?P<n>\\d+)$", text,
			strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	for i, name := range pattern.SubexpNames() {
		switch {
		case name == "":
		case group > 0:
			return nil, 0, fmt.Errorf("%q has the named groups %s and %s, and one can be compared; leave the name of the other out", text,
				pattern.SubexpNames()[group], name)
		default:
			group = i
		}
	}
	return pattern, group, nil
}

// matchesOnlyDigits says that a group, or the whole tag, is nothing but digits wherever the expression matches.
func matchesOnlyDigits(text string, group int) bool {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return false
	}
	parsed = parsed.Simplify()
	if group == 0 {
		// The whole tag is compared, so that the expression has to be about all of it.
		prefix := parsed.Op == syntax.OpConcat && parsed.Sub[0].Op == syntax.OpBeginText
		suffix := parsed.Op == syntax.OpConcat && parsed.Sub[len(parsed.Sub)-1].Op == syntax.OpEndText
		return prefix && suffix && isDigits(parsed)
	}
	found := findCapture(parsed, group)
	return found != nil && isDigits(found)
}

func findCapture(of *syntax.Regexp, group int) *syntax.Regexp {
	if of.Op == syntax.OpCapture && of.Cap == group {
		return of
	}
	for _, sub := range of.Sub {
		if found := findCapture(sub, group); found != nil {
			return found
		}
	}
	return nil
}

// isDigits says that an expression matches nothing but digits.
func isDigits(of *syntax.Regexp) bool {
	switch of.Op {
	case syntax.OpLiteral:
		for _, r := range of.Rune {
			if r < '0' || r > '9' {
				return false
			}
		}
		return true
	case syntax.OpCharClass:
		for i := 0; i+1 < len(of.Rune); i += 2 {
			if of.Rune[i] < '0' || of.Rune[i+1] > '9' {
				return false
			}
		}
		return true
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return false
	}
	for _, sub := range of.Sub {
		if !isDigits(sub) {
			return false
		}
	}
	return true
}
