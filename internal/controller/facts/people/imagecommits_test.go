package people

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion"
)

// images are what images say of themselves: the source and the revision of each.
type images map[string][2]string

var errNoRegistry = errors.New("the registry can't answer now")

func (i images) CanRead(image string) bool { return strings.HasPrefix(image, "registry.example/") }

func (i images) Source(_ context.Context, image string) (source, revision string, err error) {
	if said, ok := i[image]; ok {
		return said[0], said[1], nil
	}
	return "", "", errNoRegistry
}

// pageForge is a forge with pages.
type pageForge struct{ authorForge }

func (p *pageForge) CommitURL(r forge.Repo, commit string) string {
	return "https://forge.example/" + r.String() + "/commit/" + commit
}

// TestImageCommits finds the application's own commits by what its images say of themselves.
func TestImageCommits(t *testing.T) {
	const page, one, two = "https://forge.example/acme/web", "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	carried := func(values ...string) fieldedit.Release { // image, key, value
		var r fieldedit.Release
		for i := 0; i < len(values); i += 3 {
			r.Fields = append(r.Fields, fieldedit.Field{Kind: fieldedit.KindImage, File: "kustomization.yaml", Path: fmt.Sprintf("images[%s].%s", values[i], values[i+1]), Value: values[i+2]})
		}
		return r
	}
	web := func(tag string) fieldedit.Release { return carried("registry.example/web", "newTag", tag) }
	built := func(source, from, to string) images {
		return images{"registry.example/web:1": {source, from}, "registry.example/web:2": {source, to}}
	}
	const digest = "sha256:aaaa"
	for name, c := range map[string]struct {
		known    images
		old, new fieldedit.Release
		source   string
		want     []string
	}{
		"of one image":                  {known: built(page, one, two), old: web("1"), new: web("2"), want: []string{"acme/web 1111111 2222222"}},
		"as it is cloned":               {known: built("git@forge.example:acme/web.git", strings.ToUpper("abcdef1"), two), old: web("1"), new: web("2"), want: []string{"acme/web abcdef1 2222222"}},
		"of a digest":                   {known: images{"registry.example/web:1": {page, one}, "registry.example/other@" + digest: {page, two}}, old: web("1"), new: carried("registry.example/web", "newName", "registry.example/other", "registry.example/web", "newTag", "2", "registry.example/web", "digest", digest), want: []string{"acme/web 1111111 2222222"}},
		"of two from one commit":        {known: images{"registry.example/web:1": {page, one}, "registry.example/web:2": {page, two}, "registry.example/worker:1": {page, one}, "registry.example/worker:2": {page, two}}, old: carried("registry.example/web", "newTag", "1", "registry.example/worker", "newTag", "1"), new: carried("registry.example/web", "newTag", "2", "registry.example/worker", "newTag", "2"), want: []string{"acme/web 1111111 2222222"}},
		"where the pipeline says it":    {known: built(page, one, two), old: web("1"), new: web("2"), source: "acme/{{component}}@v{{value}}", want: nil},
		"of another owner":              {known: built("https://forge.example/other/web", one, two), old: web("1"), new: web("2")},
		"of another forge":              {known: built("https://other.example/acme/web", one, two), old: web("1"), new: web("2")},
		"of a branch":                   {known: built(page, "main", two), old: web("1"), new: web("2")},
		"of an option":                  {known: built(page, "--upload-pack=x", two), old: web("1"), new: web("2")},
		"of the same commit":            {known: built(page, one, one), old: web("1"), new: web("2")},
		"of which one says nothing":     {known: built(page, "", two), old: web("1"), new: web("2")},
		"of which the new says nothing": {known: built(page, one, ""), old: web("1"), new: web("2")},
		"that say nothing":              {known: built("", "", ""), old: web("1"), new: web("2")},
		"from a repository that moved":  {known: images{"registry.example/web:1": {"https://forge.example/acme/old", one}, "registry.example/web:2": {page, two}}, old: web("1"), new: web("2")},
		"of a registry that is away":    {known: images{}, old: web("1"), new: web("2"), want: []string{"registry.example/web:2: the registry can't answer now"}},
		"of a registry that isn't read": {known: images{}, old: carried("docker.io/web", "newTag", "1"), new: carried("docker.io/web", "newTag", "2")},
		"to a registry that isn't read": {known: built(page, one, two), old: web("1"), new: carried("registry.example/web", "newName", "docker.io/web", "registry.example/web", "newTag", "2")},
		"of an image that is new":       {known: built(page, one, two), old: carried("registry.example/other", "newTag", "1"), new: web("2")},
	} {
		t.Run(name, func(t *testing.T) {
			f := &pageForge{}
			o := NewAuthorGatherer(branch.NewGitGatherer(nil, nil, nil), nil, time.Now, false, nil)
			o.Images = c.known
			id, next := c.old.ID(), c.new.ID()
			ev := &branch.Basis{Snapshot: &branch.Snapshot{Repo: &branch.Repository{Name: forge.Repo{Owner: "acme", Name: "fleet"}, Forge: f, ForgeRef: "hub"}}, Pipeline: &branch.ResolvedPipeline{Pipeline: &pipeline.Pipeline{}}, Contents: map[string]fieldedit.Release{id: c.old, next: c.new}}
			ev.Pipeline.Spec.Source = c.source
			unit := &branch.ResolvedUnit{Unit: promotion.Unit{Component: "web"}}
			comp := componentOf(ev, branch.ComponentBasis{Unit: unit, Facts: promotion.ComponentFacts{Envs: []promotion.Env{{Name: "qa", Release: promotion.Sure(promotion.Release{ID: id})}}}})
			var got []string
			for _, found := range o.ApplicationCommits(t.Context(), comp, "qa", next) {
				switch {
				case c.source != "":
					if found.From != "v1" || found.To != "v2" {
						t.Errorf("found %+v", found)
					}
				case found.Image != "":
					got = append(got, fmt.Sprintf("%s: %v", found.Image, found.Err))
				default:
					got = append(got, fmt.Sprintf("%s %.7s %.7s", found.Repository, found.From, found.To))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestParseSourceAddress finds repositories in what images say of themselves.
func TestParseSourceAddress(t *testing.T) {
	for address, want := range map[string]string{
		"https://forge.example/acme/web":                         "acme/web",
		"https://FORGE.example/acme/web/":                        "acme/web",
		"https://forge.example/acme/web.git":                     "acme/web",
		"https://forge.example:443/acme/web/tree/main/app":       "acme/web",
		"git+https://forge.example/acme/web.git":                 "acme/web",
		"http://forge.example/acme/web#readme":                   "acme/web",
		"ssh://git@forge.example:2222/acme/web.git":              "acme/web",
		"git@forge.example:acme/web.git":                         "acme/web",
		"https://user:private@forge.example/acme/web":            "acme/web",
		"https://forge.example/acme":                             "",
		"https://forge.example/":                                 "",
		"https://forge.example.evil/acme/web":                    "",
		"https://forge.example@evil.example/acme/web":            "",
		"file:///acme/web":                                       "",
		"javascript://forge.example/acme/web":                    "",
		"forge.example/acme/web":                                 "",
		"/acme/web:x@forge.example":                              "",
		"by/way@forge.example:acme/web":                          "",
		"forge.example:acme/web":                                 "",
		"https://forge.example/-acme/web":                        "",
		"https://forge.example/acme/..":                          "",
		"https://forge.example/acme/" + strings.Repeat("x", 200): "",
		"":     "",
		"::::": "",
	} {
		r, ok := parseSourceAddress("https://forge.example", address)
		if got := strings.Trim(r.String(), "/"); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s, %v", address, r, ok)
		}
	}
	if r, ok := parseSourceAddress("https://host.example/forge", "https://host.example/forge/acme/web"); !ok || r.String() != "acme/web" {
		t.Errorf("below a path: %s, %v", r, ok)
	}
	if r, ok := parseSourceAddress("https://host.example/forge", "https://host.example/forged/acme/web"); ok {
		t.Errorf("beside a path: %s", r)
	}
	for _, base := range []string{"", "not an address", "https://host.example/forge"} {
		if r, ok := parseSourceAddress(base, "https://host.example/acme/web"); ok {
			t.Errorf("of a forge at %q: %s", base, r)
		}
	}
}

// FuzzParseSourceAddress holds that whatever an image says, only names that forges take come out.
func FuzzParseSourceAddress(f *testing.F) {
	f.Add("https://forge.example", "https://forge.example/acme/web")
	f.Add("https://forge.example/base", "git@forge.example:base/acme/web.git")
	f.Fuzz(func(t *testing.T, base, address string) {
		r, ok := parseSourceAddress(base, address)
		if ok && (!sourceName.MatchString(r.Owner) || !sourceName.MatchString(r.Name)) {
			t.Errorf("%q", r)
		}
	})
}

// TestSourceAddresses finds the repository that an image's address is about only where it is one of the
// forge's.
func TestSourceAddresses(t *testing.T) {
	t.Parallel()
	const at = "https://git.example"
	for _, c := range []struct{ forge, address, want string }{
		{at, "https://git.example/acme/web", "acme/web"},
		{at, "git+https://git.example/acme/web.git", "acme/web"},
		{at, "git@GIT.example:acme/web.git", "acme/web"},
		{at, "ssh://git@git.example:22/acme/web/tree/main", "acme/web"},
		{at + "/base/", "https://git.example/base/acme/web", "acme/web"},
		{at + "/base", "https://git.example/acme/web", ""},
		{at, "https://other.example/acme/web", ""},
		{at, "https://git.example/acme", ""},
		{at, "https://git.example/acme/-web", ""},
		{at, "https://git.example/-acme/web", ""},
		{at, "ftp://git.example/acme/web", ""},
		{at, "git.example:acme/web", ""},
		{at, "git@git.example", ""},
		{at, "a/git@git.example:acme/web", ""},
		{at, "https://git.example/%zz/web", ""},
		{"git.example", "https://git.example/acme/web", ""},
		{"https://git.example/%zz", "https://git.example/acme/web", ""},
		{"", "", ""},
	} {
		r, ok := parseSourceAddress(c.forge, c.address)
		if got := r.String(); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s at %s is %s, %v", c.address, c.forge, got, ok)
		}
	}
	for want, c := range map[string][3]string{"web:1": {"web", "1", ""}, "web@sha256:1": {"web", "1", "sha256:1"}, "": {"web", "", ""}} {
		if got := imageReference(c[0], c[1], c[2]); got != want {
			t.Errorf("%q is named %q", c, got)
		}
	}
}
