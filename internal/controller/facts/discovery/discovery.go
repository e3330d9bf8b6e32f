// Package discovery finds which versions would come into a source environment by themselves: it matches the carried
// fields that name an image or a chart with the pipeline's entries, looks up what their rules need, and has the rules
// choose. It changes nothing, and knows neither Git nor who decides: facts composes the edits.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/liftlock/liftlock/internal/appset/history"
	"github.com/liftlock/liftlock/internal/discover"
	"github.com/liftlock/liftlock/internal/discover/signature"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
)

// Source says which tags and versions there are. Its errors are shown to people, and have the same words each
// time. An error means that nothing is known, never a part of a list. One with a method IsPassing that is true passes by
// itself.
type Source interface {
	// ListTags lists the tags of an image, given without one. The list is shared: no caller changes it.
	ListTags(ctx context.Context, image string) ([]string, error)
	// ReadDetails looks into tags, or digests, of an image; complete says that it got through all of them.
	ReadDetails(ctx context.Context, image string, tags []string) (found map[string]discover.Details, complete bool, err error)
	// ReadDigest gives the digest that a tag has now.
	ReadDigest(ctx context.Context, image, tag string) (string, error)
	// ListVersions lists the versions of a chart, given as pipeline.ChartAddress has it.
	ListVersions(ctx context.Context, chart string) ([]string, error)
	// VerifySignatures says whether a digest in an image's repository is signed as a policy wants.
	VerifySignatures(ctx context.Context, image, digest string, p *signature.Policy) (discover.Signature, error)
}

// maxDetailRounds bounds the tags of which, one after the other, an image for the wanted platforms is looked for.
const maxDetailRounds = 30

// Version is one version that the environment has, and what becomes of it.
type Version struct {
	Name            string // of the image or the chart
	Where           []string
	Current, Digest string
	Rule            string // what the entry chooses, for people
	Follows         bool   // the entry follows a tag: digests come in
	Choice          discover.Choice
	Err             string // why nothing can be said; empty: the choice counts
	Passing         bool   // what it is for passes by itself, such as a registry that is away
	Pinned          bool   // the digest is written, too
	// Unsigned are the tags that would come in, if they were signed as they have to be; newest first.
	Unsigned []Unsigned

	repository string // of what was chosen, with tags
}

// Found is what would come into a source environment of a component by itself.
type Found struct {
	Component, Environment string
	Branch, Tip            string // that the environment lives on, and where that is
	Versions               []Version
	// Want is what the environment would carry.
	Want fieldedit.Release
	// Release is the same where it may come in, and Edits what leads there; empty: nothing comes in.
	Release promotion.Release
	Edits   []fieldedit.Edit
	// Refused says why nothing comes in although something new is there; with KeptOut it is by a person's decision.
	Refused string
	KeptOut bool
	DryRun  bool // the pipeline only says what it would do
	// ByPullRequest says that it comes in by a pull request, and not by a commit.
	ByPullRequest bool
	// Matched are the entries of discover, by their number, that a carried field is about.
	Matched []int
	// Unfinished says that some of it isn't known yet, and the rest is soon asked for.
	Unfinished bool
}

// Query is what to look at.
type Query struct {
	Pipeline    *pipeline.Pipeline
	Environment *pipeline.Environment
	At          *history.Environment
	Tree        fs.FS // of the environment's branch
	Rules       fs.FS // that the pipeline file lies in
	Current     fieldedit.Release
	// Past gives what was there before, oldest first. It is read where something new would come in: that walks the history.
	Past func() ([]fieldedit.Release, error)
}

// Find adds which versions come in. What the source can't say is said of the version that it is about, and what can't be
// read in the files is why all is refused; the error is the past's or the context's.
func (f *Found) Find(ctx context.Context, q *Query, source Source) error {
	f.Want = fieldedit.Release{Fields: slices.Clone(q.Current.Fields)}
	versions, err := q.At.FindVersions(q.Tree, q.Pipeline)
	if err != nil {
		f.Refused = err.Error()
		return ctx.Err()
	}
	past := sync.OnceValues(q.Past)
	for _, m := range f.match(q.Environment, versions) {
		v := Version{Name: m.version.Image + m.version.Chart, Where: m.version.Where, Current: m.version.Tag,
			Digest: m.version.Digest, Rule: m.rule.String(), Follows: m.follows(), Pinned: m.writesDigest()}
		if v.Err = m.refuse(versions); v.Err == "" {
			v.Err = m.readPolicy(q.Rules)
		}
		if v.Err == "" {
			unfinished, err := m.chooseVersion(ctx, past, source, &v)
			if err != nil {
				return err
			}
			f.Unfinished = f.Unfinished || unfinished
		}
		if v.Err == "" && v.Choice.Tag != "" {
			setFields(&f.Want, m.newFields(v.Choice))
		}
		f.Versions = append(f.Versions, v)
	}
	return nil
}

// chosen is a version with the entry that is about it.
type chosen struct {
	version *fieldedit.NamedVersion
	entry   *pipeline.Discovery
	rule    *discover.Rule
	policy  *signature.Policy // nil: no signature is needed
}

// follows says that the version's digest is compared, not its tag.
func (c *chosen) follows() bool { return c.rule.FollowedTag() != "" }

// match finds the entries that versions are about. What two are about is said to be so.
func (f *Found) match(spec *pipeline.Environment, versions []fieldedit.NamedVersion) []chosen {
	var all []chosen
	for i := range versions {
		v := &versions[i]
		var about []int
		for k := range spec.Discover {
			d := &spec.Discover[k]
			if v.Image != "" && d.MatchesImage(v.Image) || v.Chart != "" && d.MatchesChart(v.Chart) {
				about = append(about, k)
				if !slices.Contains(f.Matched, k) {
					f.Matched = append(f.Matched, k)
				}
			}
		}
		switch {
		case len(about) > 1:
			f.Versions = append(f.Versions, Version{Name: v.Image + v.Chart, Where: v.Where, Current: v.Tag, Digest: v.Digest,
				Err: fmt.Sprintf("the entries discover[%d] and discover[%d] of %s are both about it: write globs that don't overlap",
					about[0], about[1], spec.Name)})
		case len(about) == 1:
			entry := &spec.Discover[about[0]]
			if rule, err := discover.Compile(entry.Choose); err == nil { // a pipeline file that is read has no other
				all = append(all, chosen{version: v, entry: entry, rule: rule})
			}
		}
	}
	return all
}

// refuse says why nothing can be chosen for a version: where it would be written isn't sure.
func (c *chosen) refuse(all []fieldedit.NamedVersion) string {
	for i := range all {
		o := &all[i]
		isSame := o.Image == c.version.Image && o.Chart == c.version.Chart
		if isSame && (o.Tag != c.version.Tag || o.Digest != c.version.Digest) {
			return fmt.Sprintf("it is at %s and at %s, with different versions: which of them counts can't be told; make them the same",
				strings.Join(c.version.Where, ", "), strings.Join(o.Where, ", "))
		}
	}
	switch {
	case c.entry.Pins() && !c.version.TakesDigest():
		return fmt.Sprintf("pin: digest has no place to write to: no carried field at %s has a digest; add digest beside the tag, and "+
			"carry it", strings.Join(c.version.Where, ", "))
	case c.follows() && !c.writesDigest():
		return "the rule writes a digest, and no carried field has one: add digest beside the tag, and carry it"
	case !c.follows() && !c.version.HasTag():
		return "the rule writes a tag, and no carried field has one"
	}
	return ""
}

// writesDigest says that the digest of what is chosen is written. A digest wins over a tag, so that one that is there moves
// with it.
func (c *chosen) writesDigest() bool {
	if c.entry.Pins() && c.version.TakesDigest() {
		return true
	}
	return c.version.CanPin() && (c.follows() || c.version.Digest != "")
}

// newFields are the fields with what was chosen.
func (c *chosen) newFields(choice discover.Choice) []fieldedit.Field {
	tag, digest := choice.Tag, ""
	if c.follows() {
		tag = ""
	}
	if c.writesDigest() {
		digest = choice.Digest
	}
	if c.entry.Pins() {
		return c.version.WithDigest(tag, digest)
	}
	return c.version.With(tag, digest)
}

// setFields replaces fields of a release.
func setFields(r *fieldedit.Release, fields []fieldedit.Field) {
	for _, f := range fields {
		if i := slices.IndexFunc(r.Fields, func(o fieldedit.Field) bool { return o.Key() == f.Key() }); i >= 0 {
			r.Fields[i].Value = f.Value
		}
	}
}

// chooseVersion has a rule choose, and looks up what it needs. What the source can't say is said of the version.
func (c *chosen) chooseVersion(ctx context.Context, past func() ([]fieldedit.Release, error), source Source,
	v *Version) (unfinished bool, err error) {
	q := discover.Query{Details: map[string]discover.Details{}, Current: c.version.Tag, CurrentDigest: c.version.Digest,
		Platforms: c.entry.Platforms, NeedsDigest: c.writesDigest(), NeedsSignature: c.policy != nil,
		Signatures: map[string]discover.Signature{}}
	v.repository = c.repository()
	fail := func(err error) error {
		var passing interface{ IsPassing() bool }
		v.Err, v.Passing = err.Error(), errors.As(err, &passing) && passing.IsPassing()
		return ctx.Err()
	}
	switch {
	case c.version.Chart != "":
		q.Tags, err = source.ListVersions(ctx, c.version.Chart)
	case !c.follows():
		q.Tags, err = source.ListTags(ctx, c.version.Image)
	default:
		err = c.followTag(ctx, source, &q)
	}
	if err != nil {
		return false, fail(err)
	}
	knowsPast := false
	for range maxDetailRounds + discover.MaxUnsigned {
		if v.Choice, err = c.rule.Choose(&q); err != nil {
			return false, fail(err)
		}
		missing := v.Choice.Missing
		switch {
		case v.Choice.Unverified != "":
			if err := c.verify(ctx, source, v.Choice.Unverified, &q); err != nil {
				return false, fail(err)
			}
			continue
		case len(missing) == 0 && (knowsPast || v.Choice.Tag == ""):
			v.Unsigned = unsignedOf(&v.Choice, &q)
			return false, nil
		case len(missing) == 0:
			before, err := past()
			if err != nil {
				return false, err
			}
			for _, r := range before {
				if value := c.version.ValueIn(r, c.follows()); value != "" {
					q.Past = append(q.Past, value)
				}
			}
			knowsPast = true
			continue
		case c.version.Chart != "":
			return false, fail(fmt.Errorf("charts say nothing that the rule needs of %s", missing[0]))
		}
		found, complete, err := source.ReadDetails(ctx, c.version.Image, missing)
		if err != nil {
			return false, fail(err)
		}
		maps.Copy(q.Details, found)
		if !complete {
			break
		}
	}
	v.Choice = discover.Choice{}
	return true, fail(errUnfinished)
}

// errUnfinished is of a version of which more tags have to be looked into than are at once.
var errUnfinished unfinishedError

type unfinishedError struct{}

func (unfinishedError) Error() string {
	return "its tags are looked into a few at a time; it goes on soon"
}

// IsPassing is true.
func (unfinishedError) IsPassing() bool { return true }

// followTag reads the digest that a tag has, and, where platforms count, which that one has.
func (c *chosen) followTag(ctx context.Context, source Source, q *discover.Query) error {
	tag := c.rule.FollowedTag()
	digest, err := source.ReadDigest(ctx, c.version.Image, tag)
	if err != nil {
		return err
	}
	d := discover.Details{Digest: digest}
	if len(q.Platforms) > 0 && digest != q.CurrentDigest {
		found, _, err := source.ReadDetails(ctx, c.version.Image, []string{digest})
		if err != nil {
			return err
		}
		d.Platforms, d.Err = found[digest].Platforms, found[digest].Err
	}
	q.Details[tag] = d
	return nil
}
