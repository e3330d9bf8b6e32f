package people

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
)

// TestCompareApplication asks the forge once for what doesn't change, and again after a
// while where it had no answer.
func TestCompareApplication(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	f := &authorForge{}
	r := &branch.Repository{Forge: f, ForgeRef: "hub"}
	o := NewAuthorGatherer(branch.NewGitGatherer(nil, nil, nil), nil, func() time.Time { return now }, false, nil)
	app := forge.Repo{Owner: "acme", Name: "web"}
	for i, step := range []struct {
		after time.Duration
		err   error
		calls int
		known bool
	}{
		{0, forge.ErrNotFound, 1, false},
		{missingAge - time.Second, nil, 0, false},
		{time.Second, forge.ErrRetryable, 1, false},
		{unknownAge - time.Second, nil, 0, false},
		{time.Second, nil, 1, true},
		{1000 * time.Hour, forge.ErrNotFound, 0, true},
	} {
		now = now.Add(step.after)
		f.err, f.calls = step.err, 0
		f.between = []forge.Commit{{SHA: "a", Author: "Ann", Message: "One\n\nCo-authored-by: Bob <b@example.com>", At: now}, {SHA: "b", Author: "Bob", Message: "\nTwo\n"}}
		got := o.compareApplication(t.Context(), r, app, "v1", "v2")
		if f.calls != step.calls || (got.Err == nil) != step.known {
			t.Errorf("step %d: %+v after %d calls", i, got, f.calls)
		}
		if want := []ReleaseCommit{{SHA: "b", Subject: "Two", Authors: []string{"Bob"}}, {SHA: "a", Subject: "One", Authors: []string{"Ann", "Bob"}}}; step.known && cmp.Diff(want, got.Commits, cmpopts.IgnoreFields(ReleaseCommit{}, "At")) != "" {
			t.Errorf("step %d: %+v", i, got.Commits)
		}
	}
	f.err = nil
	for i := range maxReleaseCommits + 1 {
		f.between = append(f.between, forge.Commit{SHA: fmt.Sprint(i)})
	}
	if got := o.compareApplication(t.Context(), r, app, "v2", "v3"); len(got.Commits) != maxReleaseCommits || !got.More {
		t.Errorf("of many: %d, more %v", len(got.Commits), got.More)
	}
	f.between, f.err = nil, forge.ErrTooMany
	if got := o.compareApplication(t.Context(), r, app, "v3", "v4"); got.Err != nil || !got.More || got.Commits != nil {
		t.Errorf("of too many: %+v", got)
	}
}

// TestApplicationCommits finds the revisions in what a release changes.
func TestApplicationCommits(t *testing.T) {
	d := newDevReleases(t)
	o := newTestGatherer(d.testRepo)
	d.Name = forge.Repo{Owner: "acme", Name: "fleet"}
	d.release("ann", "One", "1", "1")
	start := d.at
	d.release("bob", "Two", "2", "3")
	c, id := d.evaluate(o)
	d.has(o, c, "prod", start)
	for _, sha := range []string{start, d.at} {
		rel, err := o.Releases.ReadRelease(d.Repository, sha, c.Pipeline, c.Unit.Envs["dev"])
		if err != nil {
			t.Fatal(err)
		}
		if c.Contents == nil {
			c.Contents = map[string]fieldedit.Release{}
		}
		c.Contents[rel.ID()] = rel
	}
	ranges := func(source string) (out []string) {
		c.Pipeline.Spec.Source = source
		for _, a := range o.Authors.ApplicationCommits(t.Context(), c, "prod", id) {
			out = append(out, fmt.Sprintf("%s %s %s %v", a.Repository, a.From, a.To, a.Err != nil))
		}
		return out
	}
	for source, want := range map[string][]string{
		"":                              nil,
		"acme/{{component}}@v{{value}}": {"acme/web v1 v2 false", "acme/web v1 v3 false"},
		"ACME/shop":                     {"ACME/shop 1 2 false", "ACME/shop 1 3 false"},
		"other/web":                     {"other/web   true"},
	} {
		if diff := cmp.Diff(want, ranges(source)); diff != "" {
			t.Errorf("%q: -want +got:\n%s", source, diff)
		}
	}
	unchanged := c.Contents[id]
	c.Contents[id] = c.Contents[c.Env("prod").Release.Value.ID]
	if got := ranges("acme/none"); got != nil {
		t.Errorf("where nothing changes: %q", got)
	}
	folder := fieldedit.Field{Kind: fieldedit.KindFile, File: "app.yaml", Value: "100644 1"}
	c.Contents[c.Env("prod").Release.Value.ID] = fieldedit.Release{Fields: append(slices.Clone(c.Contents[id].Fields), folder)}
	folder.Value = "100644 2"
	c.Contents[id] = fieldedit.Release{Fields: append(slices.Clone(unchanged.Fields), folder)}
	if diff := cmp.Diff([]string{"acme/shop 1 2 false", "acme/shop 1 3 false"}, ranges("acme/shop")); diff != "" {
		t.Errorf("with a whole file: -want +got:\n%s", diff)
	}
	d.forge.err = forge.ErrNotFound
	if diff := cmp.Diff([]string{"acme/none 1 2 true"}, ranges("acme/none")); diff != "" {
		t.Errorf("where nothing is there: -want +got:\n%s", diff)
	}
}

// TestChangedValues lists what a release changes in an environment, which what stays takes no place of.
func TestChangedValues(t *testing.T) {
	carried := func(tags ...string) (r fieldedit.Release) {
		for i, tag := range tags {
			r.Fields = append(r.Fields, fieldedit.Field{Kind: fieldedit.KindImage, File: "kustomization.yaml", Path: fmt.Sprintf("images[i%d].newTag", i), Value: tag})
		}
		return r
	}
	old, next := carried("1", "1", "1", "1", "2", "5", "7"), carried("1", "1", "1", "2", "3", "6", "8", "9")
	digest := fieldedit.Field{Kind: fieldedit.KindImage, File: "kustomization.yaml", Path: "images[i0].digest", Value: "a"}
	old.Fields = append(old.Fields, digest)
	digest.Value = "b"
	next.Fields = append([]fieldedit.Field{digest}, next.Fields...)
	c := componentOf(&branch.Basis{Contents: map[string]fieldedit.Release{"old": old, "next": next}}, branch.ComponentBasis{Facts: promotion.ComponentFacts{Envs: []promotion.Env{{Name: "qa", Release: promotion.Sure(promotion.Release{ID: "old"})}}}})
	if got, want := changedValues(c, "qa", "next"), [][2]string{{"1", "2"}, {"2", "3"}, {"5", "6"}}; !slices.Equal(got, want) {
		t.Errorf("values %q, want %q", got, want)
	}
	if got, want := changedImages(c, "qa", "next"), [][2]string{{"i0@a", "i0@b"}, {"i3:1", "i3:2"}, {"i4:2", "i4:3"}}; !slices.Equal(got, want) {
		t.Errorf("images %q, want %q", got, want)
	}
	c.Facts.Envs[0].Release.OK = false
	for _, env := range []string{"qa", "gone"} {
		if values, images := changedValues(c, env, "next"), changedImages(c, env, "next"); values != nil || images != nil {
			t.Errorf("of %s, which can't be read: %q and %q", env, values, images)
		}
	}
}

// TestChangedValuesAreEachOnce holds which values of a release show what is new in an application: each
// pair once, of images their tags, and a bounded number of them.
func TestChangedValuesAreEachOnce(t *testing.T) {
	t.Parallel()
	field := func(path, value string) fieldedit.Field {
		return fieldedit.Field{Kind: fieldedit.KindImage, File: "f", Path: path, Value: value}
	}
	value := func(path, value string) fieldedit.Field {
		f := field(path, value)
		f.Kind = "value"
		return f
	}
	many := func(n int, v string) (out []fieldedit.Field) {
		for i := range n {
			out = append(out, value(fmt.Sprintf("p%d", i), fmt.Sprintf("%s%d", v, i)))
		}
		return out
	}
	for name, c := range map[string]struct {
		before, now []fieldedit.Field
		want        [][2]string
	}{
		"a value":           {[]fieldedit.Field{value("a", "1")}, []fieldedit.Field{value("a", "2")}, [][2]string{{"1", "2"}}},
		"the same value":    {[]fieldedit.Field{value("a", "1")}, []fieldedit.Field{value("a", "1")}, nil},
		"a new field":       {nil, []fieldedit.Field{value("a", "1")}, nil},
		"the same pair":     {[]fieldedit.Field{value("a", "1"), value("b", "1")}, []fieldedit.Field{value("a", "2"), value("b", "2")}, [][2]string{{"1", "2"}}},
		"another pair":      {[]fieldedit.Field{value("a", "1"), value("b", "1")}, []fieldedit.Field{value("a", "2"), value("b", "3")}, [][2]string{{"1", "2"}, {"1", "3"}}},
		"an image's tag":    {[]fieldedit.Field{field("a.newTag", "1")}, []fieldedit.Field{field("a.newTag", "2")}, [][2]string{{"1", "2"}}},
		"an image's digest": {[]fieldedit.Field{field("a.digest", "1")}, []fieldedit.Field{field("a.digest", "2")}, nil},
		"many": {many(maxApplicationRanges+1, "a"), many(maxApplicationRanges+1, "b"), func() (out [][2]string) {
			for i := range maxApplicationRanges {
				out = append(out, [2]string{fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)})
			}
			return out
		}()},
	} {
		c2 := componentOf(&branch.Basis{Contents: map[string]fieldedit.Release{"old": {Fields: c.before}, "new": {Fields: c.now}}}, branch.ComponentBasis{Facts: promotion.ComponentFacts{Envs: []promotion.Env{{Name: "qa", Release: promotion.Sure(promotion.Release{ID: "old"})}, {Name: "prod"}}}})
		if diff := cmp.Diff(c.want, changedValues(c2, "qa", "new")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for _, env := range []string{"prod", "gone"} { // of which nothing is known
			if got := changedValues(c2, env, "new"); got != nil {
				t.Errorf("%s, in %s: %v", name, env, got)
			}
		}
	}
}
