package discover

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxTags bounds the tags of one list. A longer one isn't chosen from: a part of it could lead to an older tag.
const MaxTags = 100_000

// ErrTooMany says that a list has more than [MaxTags].
var ErrTooMany = errors.New("there are more tags than are looked at: let the registry delete old ones")

// Details are what a registry says of one tag.
type Details struct {
	Created   time.Time // when the image was made; zero: it doesn't say
	Digest    string
	Platforms []string // os/architecture or os/architecture/variant, sorted
	Err       string   // why nothing is known of it, for people; empty: the rest is true
}

// MaxUnsigned bounds the tags that, newest first, are looked at for one with a signature that counts.
const MaxUnsigned = 20

// Signature is what is known of a tag's signatures.
type Signature struct {
	Digest string // that the tag had, and that the signatures are of
	By     string // whose signature counts, for people; empty: none does
	Why    string // why none does, for people
	// Pending says that the image was found a moment ago, so that a signature may follow.
	Pending bool
}

// Query is what to choose from, and what is there.
type Query struct {
	Tags    []string
	Details map[string]Details // by tag, as far as they are known
	// Current is the tag that is there, with Digest where the field has one; empty: nothing is there.
	Current, CurrentDigest string
	// Past are the tags that were there before, or the digests with a rule that follows a tag, oldest first.
	Past []string
	// KeptOut says of tags why they don't come in now, by a person's decision.
	KeptOut map[string]string
	// Platforms are those that an image must have; none: any will do.
	Platforms []string
	// NeedsDigest says that the digest is written, too.
	NeedsDigest bool
	// NeedsSignature says that an image has to be signed; Signatures are by tag, as far as they are known.
	NeedsSignature bool
	Signatures     map[string]Signature
}

// Rejected is a tag that doesn't come in, and why.
type Rejected struct {
	Tag string `json:"tag"`
	Why string `json:"why"`
}

// MaxNewer bounds the tags of which a choice says that they are newer.
const MaxNewer = 3

// Newer is a tag, or with a rule that follows one a digest, that is newer and doesn't come in.
type Newer struct {
	Tag, Why string
	// ByRule says that the rule leaves it out: neither a person does, nor what the image is.
	ByRule bool
}

// Choice is what comes in. Without a tag nothing does.
type Choice struct {
	Tag    string // the one that comes in; empty: none
	Digest string // of that, where it is known
	Why    string // why it does, or why nothing does
	Signer string // whose signature of the digest counts; empty: none is needed
	// Stays says that what is there is what the rule chooses.
	Stays bool
	// Rejected are the other tags, those that count first, newest first.
	Rejected []Rejected
	// Newer are the first of those that are newer than the one that comes in or, where none does, than what is there, the
	// newest first; MoreNewer is how many more there are. What a rule ignores or doesn't match isn't among them.
	Newer     []Newer
	MoreNewer int
	// Counted is how many tags the rule chooses from.
	Counted int
	// Missing are the tags of which details are needed before anything can be said. Then the rest is empty.
	Missing []string
	// Unverified is the tag of which the signatures are needed, likewise.
	Unverified string
}

// isOpen says that something is needed before anything can be said.
func (c *Choice) isOpen() bool { return len(c.Missing) > 0 || c.Unverified != "" }

type candidate struct {
	tag string
	rank
	why string // it doesn't count; empty: it does
}

// Choose chooses. The error is [ErrTooMany].
func (r *Rule) Choose(q *Query) (Choice, error) {
	if len(q.Tags) > MaxTags {
		return Choice{}, ErrTooMany
	}
	if tag := r.FollowedTag(); tag != "" {
		return r.follow(tag, q), nil
	}
	if missing := r.missingCreated(q); len(missing) > 0 {
		return Choice{Missing: missing}, nil
	}
	candidates, rest := r.sortCandidates(q)
	out := r.chooseFrom(candidates, q)
	if out.isOpen() {
		return out, nil
	}
	out.Counted = len(candidates)
	r.addNewer(&out, candidates, rest, q)
	for _, c := range rest {
		out.Rejected = append(out.Rejected, Rejected{c.tag, c.why})
	}
	return out, nil
}

// addNewer adds which tags are newer and don't come in: of those that count, and of those that only the range leaves out.
// The choice has the reasons of the former, in their order.
func (r *Rule) addNewer(out *Choice, candidates, rest []candidate, q *Query) {
	var against *rank // nil: nothing can be compared with
	if at, why := r.rankOf(q.Current, q.Details); q.Current != "" && why == "" {
		against = &at
	}
	if i := slices.IndexFunc(candidates, func(c candidate) bool { return c.tag == out.Tag }); i >= 0 {
		against = &candidates[i].rank
	}
	var newer []candidate
	for i, c := range candidates {
		if isLast := c.tag == out.Tag || c.tag == q.Current || i == len(out.Rejected); isLast {
			break // the others are older, or weren't looked at
		}
		if against == nil || r.compare(c.rank, *against) > 0 {
			c.why = out.Rejected[i].Why
			newer = append(newer, c)
		}
	}
	counted := len(newer)
	for _, c := range rest {
		if c.version != nil && (against == nil || c.version.Compare(against.version) > 0) {
			newer = append(newer, c)
		}
	}
	byRule := map[string]bool{}
	for _, c := range newer[counted:] {
		byRule[c.tag] = true
	}
	slices.SortStableFunc(newer, func(a, b candidate) int { return r.compare(b.rank, a.rank) })
	for _, c := range newer[:min(len(newer), MaxNewer)] {
		out.Newer = append(out.Newer, Newer{c.tag, c.why, byRule[c.tag]})
	}
	out.MoreNewer = len(newer) - len(out.Newer)
}

// chooseFrom chooses from the tags that count, newest first.
func (r *Rule) chooseFrom(candidates []candidate, q *Query) (out Choice) {
	now, whyUnknown := candidate{tag: q.Current}, ""
	if q.Current != "" {
		now.rank, whyUnknown = r.rankOf(q.Current, q.Details)
	}
	withdrawn := r.findWithdrawn(q)
	unsigned := 0
	for i, c := range candidates {
		if c.tag == q.Current {
			out.Stays, out.Why = true, fmt.Sprintf("%s is there, %s", q.Current, r)
			out.Rejected = append(out.Rejected, r.rejectRest(candidates[i+1:], c, ", which is there")...)
			return out
		}
		why := r.rejectAgainst(c, &now, whyUnknown, q)
		if why == "" {
			why = rejectForPerson(c.tag, q, withdrawn)
		}
		if why == "" {
			var missing bool
			if why, missing = rejectForDetails(c.tag, q); missing {
				return Choice{Missing: []string{c.tag}}
			}
		}
		if why == "" && q.NeedsSignature {
			if why = rejectForSignature(c.tag, q); why == unverified {
				return Choice{Unverified: c.tag}
			}
			if why != "" {
				unsigned++
			}
		}
		if unsigned == MaxUnsigned {
			out.Why = fmt.Sprintf("the %d newest tags that may come in aren't signed as they have to be; older ones aren't looked at",
				MaxUnsigned)
			out.Rejected = append(out.Rejected, Rejected{c.tag, why})
			return out
		}
		if why == "" {
			out.Tag, out.Digest, out.Why = c.tag, q.Details[c.tag].Digest, fmt.Sprintf("%s, %s", c.tag, r)
			if q.NeedsSignature {
				out.Digest, out.Signer = q.Signatures[c.tag].Digest, q.Signatures[c.tag].By
			}
			out.Rejected = append(out.Rejected, r.rejectRest(candidates[i+1:], c, "")...)
			return out
		}
		out.Rejected = append(out.Rejected, Rejected{c.tag, why})
	}
	out.Why = r.explainNothing(candidates, q, whyUnknown)
	return out
}

// missingCreated are the tags of which isn't known yet when they were made. What is there belongs to them as long as the
// registry lists it.
func (r *Rule) missingCreated(q *Query) []string {
	if !r.NeedsCreated() {
		return nil
	}
	var out []string
	for _, tag := range q.Tags {
		_, known := q.Details[tag]
		counts := validTag.MatchString(tag) && !attachedTag.MatchString(tag) && r.pattern.MatchString(tag)
		if !known && counts && (tag == q.Current || r.ignoredBy(tag) == "") {
			out = append(out, tag)
		}
	}
	return out
}

// sortCandidates are the tags that count, newest first, and those that don't.
func (r *Rule) sortCandidates(q *Query) (out, rest []candidate) {
	seen := make(map[string]bool, len(q.Tags))
	for _, tag := range q.Tags {
		if seen[tag] {
			continue
		}
		seen[tag] = true
		at, why := r.admit(tag, q.Details)
		if why != "" {
			rest = append(rest, candidate{tag, at, why})
			continue
		}
		out = append(out, candidate{tag, at, ""})
	}
	slices.SortFunc(out, func(a, b candidate) int {
		if c := r.compare(b.rank, a.rank); c != 0 {
			return c
		}
		return compareSpelling(b.tag, a.tag, q.Current)
	})
	return out, rest
}

// admit gives the rank of a tag, and says why the tag doesn't count where it doesn't.
func (r *Rule) admit(tag string, details map[string]Details) (at rank, why string) {
	if !validTag.MatchString(tag) {
		return rank{}, "can't be a tag"
	}
	if attachedTag.MatchString(tag) {
		return rank{}, "is a signature or the like of an image, and none itself"
	}
	if glob := r.ignoredBy(tag); glob != "" {
		return rank{}, "is ignored by " + glob
	}
	if at, why = r.rankOf(tag, details); why == "" {
		why = r.rejectVersion(at)
	}
	return at, why
}

// compareSpelling orders tags of one rank, such as v1.2 and 1.2.0: what is there comes first, then what is written as
// that, with or without a v.
func compareSpelling(a, b, current string) int {
	score := func(tag string) int {
		switch {
		case tag == current:
			return 2
		case strings.HasPrefix(tag, "v") == strings.HasPrefix(current, "v"):
			return 1
		}
		return 0
	}
	if c := score(a) - score(b); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

// rejectAgainst compares a tag with another one that is there.
func (r *Rule) rejectAgainst(c candidate, now *candidate, whyUnknown string, q *Query) string {
	switch {
	case q.Current == "", whyUnknown != "" && r.choose.Downgrade:
		return ""
	case whyUnknown != "":
		return fmt.Sprintf("can't be compared with %s, which is there", q.Current)
	}
	switch by := r.compare(c.rank, now.rank); {
	case by == 0:
		return fmt.Sprintf("is as new as %s, which is there", q.Current)
	case by < 0 && !r.choose.Downgrade:
		return fmt.Sprintf("is older than %s, which is there", q.Current)
	}
	return ""
}

// rejectForPerson says why a person keeps a tag out.
func rejectForPerson(tag string, q *Query, withdrawn map[string]bool) string {
	if why := q.KeptOut[tag]; why != "" {
		return why
	}
	if withdrawn[tag] {
		return "was there before, and was replaced by an older one: it stays out until somebody sets it"
	}
	return ""
}

// rejectForDetails looks at an image's platforms and its digest.
func rejectForDetails(tag string, q *Query) (why string, missing bool) {
	if len(q.Platforms) == 0 && !q.NeedsDigest {
		return "", false
	}
	d, known := q.Details[tag]
	switch {
	case !known:
		return "", true
	case d.Err != "":
		return "can't be read: " + d.Err, false
	case q.NeedsDigest && d.Digest == "":
		return "has no digest", false
	}
	for _, want := range q.Platforms {
		if !slices.ContainsFunc(d.Platforms, func(has string) bool { return has == want || strings.HasPrefix(has, want+"/") }) {
			return "has no image for " + want, false
		}
	}
	return "", false
}

// unverified is of a tag of which the signatures aren't known yet.
const unverified = "its signatures aren't known"

// rejectForSignature looks at what is known of a tag's signatures.
func rejectForSignature(tag string, q *Query) string {
	s, known := q.Signatures[tag]
	switch {
	case !known:
		return unverified
	case s.By == "":
		return "isn't signed as it has to be: " + s.Why
	}
	return ""
}

// rejectRest says of the tags behind the chosen one why they don't come in.
func (r *Rule) rejectRest(rest []candidate, chosen candidate, there string) []Rejected {
	out := make([]Rejected, len(rest))
	older, even := "is older than "+chosen.tag+there, "is as new as "+chosen.tag+there
	for i, c := range rest {
		out[i] = Rejected{c.tag, older}
		if r.compare(c.rank, chosen.rank) == 0 {
			out[i].Why = even
		}
	}
	return out
}

func (r *Rule) explainNothing(candidates []candidate, q *Query, whyUnknown string) string {
	switch {
	case len(candidates) == 0 && len(q.Tags) == 0:
		return "the registry lists no tag"
	case len(candidates) == 0:
		return fmt.Sprintf("none of %d tags can be %s", len(q.Tags), r)
	case whyUnknown != "" && !r.choose.Downgrade:
		return fmt.Sprintf("what is there, %s, can't be compared, as it %s: set it once by liftlock set", q.Current, whyUnknown)
	}
	if q.Current == "" {
		return "none of the tags that count may come in"
	}
	return fmt.Sprintf("no tag that may come in is newer than %s", q.Current)
}

// findWithdrawn are the tags that were there before and were replaced by an older one, or by one of which can't be told
// whether it is. Newer ones may have come in between: who goes back goes back from all of them. Whoever set one again wanted it.
func (r *Rule) findWithdrawn(q *Query) map[string]bool {
	out, seen := map[string]bool{}, map[string]bool{}
	var oldest *rank // of what came later
	isUnknown := false
	for _, tag := range slices.Backward(append(slices.Clone(q.Past), q.Current)) {
		if tag == "" || seen[tag] {
			continue // nothing was there, or the later time counts
		}
		seen[tag] = true
		at, why := r.rankOf(tag, q.Details)
		if why != "" { // it isn't chosen anyway
			isUnknown = true
			continue
		}
		out[tag] = isUnknown || oldest != nil && r.compare(at, *oldest) > 0
		if oldest == nil || r.compare(at, *oldest) < 0 {
			oldest = &at
		}
	}
	return out
}

// follow chooses the digest that one tag has.
func (r *Rule) follow(tag string, q *Query) Choice {
	d, known := q.Details[tag]
	switch {
	case !known:
		return Choice{Missing: []string{tag}}
	case d.Err != "":
		return Choice{Why: fmt.Sprintf("the tag %s can't be read: %s", tag, d.Err)}
	case d.Digest == "":
		return Choice{Why: fmt.Sprintf("the registry gives no digest of the tag %s", tag)}
	case d.Digest == q.CurrentDigest:
		return Choice{Stays: true, Digest: d.Digest, Why: fmt.Sprintf("%s is there, %s", d.Digest, r), Counted: 1}
	}
	var why string
	switch {
	case q.KeptOut[d.Digest] != "":
		why = q.KeptOut[d.Digest]
	case slices.Contains(q.Past, d.Digest):
		why = "was there before: digests have no order, so it stays out until somebody sets it"
	default:
		q := *q
		q.NeedsDigest = true
		why, _ = rejectForDetails(tag, &q)
	}
	if why == "" && q.NeedsSignature {
		if why = rejectForSignature(tag, q); why == unverified {
			return Choice{Unverified: tag}
		}
	}
	if why != "" {
		return Choice{Why: fmt.Sprintf("%s, %s, doesn't come in", d.Digest, r), Rejected: []Rejected{{d.Digest, why}},
			Newer: []Newer{{Tag: d.Digest, Why: why}}, Counted: 1}
	}
	return Choice{Tag: tag, Digest: d.Digest, Why: fmt.Sprintf("%s, %s", d.Digest, r), Counted: 1, Signer: q.Signatures[tag].By}
}
