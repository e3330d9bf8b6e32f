package discover

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// Rule is a rule that can be used. It may be used concurrently.
type Rule struct {
	choose   Choose
	allowed  *semver.Constraints // with semver
	pattern  *regexp.Regexp      // nil: all tags
	group    int                 // of the pattern; 0: the whole tag
	describe string
}

// Compile makes a rule usable. The error is the first of the rule's problems.
func Compile(c Choose) (*Rule, error) {
	if found := c.Problems(); len(found) > 0 {
		return nil, fmt.Errorf("%s: %s", cmp.Or(found[0].Key, "choose"), found[0].Message)
	}
	r := &Rule{choose: c}
	text := c.Tags
	switch {
	case c.SemVer != "":
		r.allowed, _ = semver.NewConstraint(c.SemVer)
		r.allowed.IncludePrerelease = c.Prerelease
		r.describe = "the highest version in " + c.SemVer
	case c.Newest != nil:
		text = c.Newest.Tags
		r.describe = map[string]string{ByNumber: "the highest number", ByAlphabet: "the last by the alphabet",
			ByCreated: "the one that was made last"}[c.Newest.By] + " of the tags that match " + text
	default:
		r.describe = "what the tag " + c.Digest.Tag + " has now"
	}
	if text != "" {
		r.pattern, r.group, _ = compilePattern(text)
	}
	return r, nil
}

// FollowedTag is the one tag that a rule is about; empty: all are.
func (r *Rule) FollowedTag() string {
	if r.choose.Digest == nil {
		return ""
	}
	return r.choose.Digest.Tag
}

// NeedsCreated says that the rule orders images by when they were made.
func (r *Rule) NeedsCreated() bool { return r.choose.Newest != nil && r.choose.Newest.By == ByCreated }

// String is what the rule chooses, for people.
func (r *Rule) String() string { return r.describe }

// rank is by what tags are ordered; which of its fields, the rule says.
type rank struct {
	version *semver.Version
	number  string // without leading zeros
	text    string
	created time.Time
}

// compare is below 0 where a is older than b.
func (r *Rule) compare(a, b rank) int {
	switch {
	case r.allowed != nil:
		return a.version.Compare(b.version)
	case r.choose.Newest.By == ByNumber:
		return cmp.Or(cmp.Compare(len(a.number), len(b.number)), cmp.Compare(a.number, b.number))
	case r.choose.Newest.By == ByAlphabet:
		return cmp.Compare(a.text, b.text)
	}
	return a.created.Compare(b.created)
}

// rankOf is a tag's rank; why says that it has none. The rank of an image that is ordered by when it was made comes from
// its details.
func (r *Rule) rankOf(tag string, details map[string]Details) (at rank, why string) {
	text := tag
	if r.pattern != nil {
		found := r.pattern.FindStringSubmatch(tag)
		if found == nil {
			return rank{}, "doesn't match " + r.pattern.String()
		}
		if r.group > 0 {
			text = found[r.group]
		}
	}
	switch {
	case r.allowed != nil:
		version, err := semver.NewVersion(text)
		if err != nil {
			return rank{}, "is no version"
		}
		return rank{version: version}, ""
	case r.choose.Newest.By == ByNumber:
		number := strings.TrimLeft(text, "0")
		if text == "" || strings.Trim(text, "0123456789") != "" {
			return rank{}, "has no number there"
		}
		return rank{number: number}, ""
	case r.choose.Newest.By == ByAlphabet:
		return rank{text: text}, ""
	}
	d, known := details[tag]
	switch {
	case !known:
		return rank{}, "when it was made isn't known"
	case d.Err != "":
		return rank{}, "can't be read: " + d.Err
	case d.Created.IsZero():
		return rank{}, "doesn't say when it was made"
	}
	return rank{created: d.Created}, ""
}

// ignoredBy is the glob by which a tag is ignored; empty: it isn't.
func (r *Rule) ignoredBy(tag string) string {
	i := slices.IndexFunc(r.choose.Ignore, func(glob string) bool {
		is, err := path.Match(glob, tag)
		return err == nil && is
	})
	if i < 0 {
		return ""
	}
	return r.choose.Ignore[i]
}

// rejectVersion says why a version isn't in the range; empty: it is, or the rule has none.
func (r *Rule) rejectVersion(at rank) string {
	switch {
	case at.version == nil || r.allowed.Check(at.version):
		return ""
	case at.version.Prerelease() != "" && r.isInRange(at.version):
		return "is a pre-release"
	}
	return "is not in " + r.choose.SemVer
}

// isInRange says that a pre-release would be in the range if pre-releases counted.
func (r *Rule) isInRange(v *semver.Version) bool {
	all := *r.allowed
	all.IncludePrerelease = true
	return all.Check(v)
}
