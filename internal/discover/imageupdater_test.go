package discover

import (
	"strings"
	"testing"
	"time"
)

// imageUpdaterCase is a list of tags, a rule of Argo CD Image Updater's, and ours for the same. What Image Updater takes was
// computed with its own GetNewestVersionFromTags (registry-scanner/pkg/image at de2cfec6, August 2026), after its filters:
// allow-tags as an unanchored expression, ignore-tags as globs of Go's path/filepath.
type imageUpdaterCase struct {
	name     string
	tags     string // separated by blanks; with @, the minute at which the image was made
	current  string // what is there
	strategy string // semver, newest-build, alphabetical (once called name) or digest
	limit    string // its constraint
	allow    string // allow-tags, as regexp:…
	ignore   string // ignore-tags
	theirs   string // what Image Updater takes, "" for nothing
	choose   Choose
	ours     string // what comes in, "" for nothing: what is there stays
	why      string // why that isn't the same; empty: it is
}

const (
	staysPut = "they set what is there once more, or nothing: for us what is there stays"
	notBack  = "they go back to what the rule gives; for us nothing older comes in by itself"
)

// imageUpdaterCases has 40 lists.
var imageUpdaterCases = []imageUpdaterCase{
	// semver
	{name: "a patch", tags: "1.0.0 1.0.1 1.1.0", current: "1.0.0", strategy: "semver", limit: "~1.0", theirs: "1.0.1", choose: Choose{SemVer: "~1.0"}, ours: "1.0.1"},
	{name: "a minor", tags: "1.0.0 1.0.1 1.1.0 2.0.0", current: "1.0.0", strategy: "semver", limit: "^1", theirs: "1.1.0", choose: Choose{SemVer: "^1"}, ours: "1.1.0"},
	{name: "any", tags: "1.0.0 2.0.0 10.0.0 9.0.0", current: "1.0.0", strategy: "semver", theirs: "10.0.0", choose: Choose{SemVer: "*"}, ours: "10.0.0"},
	{name: "a range of two", tags: "1.0.0 1.9.9 2.0.0", current: "1.0.0", strategy: "semver", limit: ">=1.0.0 <2.0.0", theirs: "1.9.9", choose: Choose{SemVer: ">=1.0.0 <2.0.0"}, ours: "1.9.9"},
	{name: "with a v", tags: "v1.0.0 v1.2.0 latest", current: "v1.0.0", strategy: "semver", limit: "1.x", theirs: "v1.2.0", choose: Choose{SemVer: "1.x"}, ours: "v1.2.0"},
	{name: "names among versions", tags: "main latest 1.0.0 sha-abc 1.0.1", current: "1.0.0", strategy: "semver", theirs: "1.0.1", choose: Choose{SemVer: "*"}, ours: "1.0.1"},
	{name: "no pre-releases", tags: "1.0.0 1.1.0-rc.1", current: "1.0.0", strategy: "semver", theirs: "1.0.0", choose: Choose{SemVer: "*"}, why: staysPut},
	{name: "pre-releases by the range", tags: "1.0.0 1.1.0-rc.1", current: "1.0.0", strategy: "semver", limit: ">=1.0.0-0", theirs: "1.1.0-rc.1", choose: Choose{SemVer: ">=1.0.0-0"}, ours: "1.1.0-rc.1"},
	{name: "pre-releases by a key", tags: "1.0.0 1.1.0-rc.1", current: "1.0.0", strategy: "semver", limit: "*-0", theirs: "1.1.0-rc.1", choose: Choose{SemVer: "*", Prerelease: true}, ours: "1.1.0-rc.1"},
	{name: "a release after its candidates", tags: "1.1.0-rc.1 1.1.0-rc.2 1.1.0", current: "1.1.0-rc.1", strategy: "semver", limit: ">=1.0.0-0", theirs: "1.1.0", choose: Choose{SemVer: ">=1.0.0-0"}, ours: "1.1.0"},
	{name: "candidates by number", tags: "1.1.0-rc.2 1.1.0-rc.10", current: "1.1.0-rc.2", strategy: "semver", limit: ">=1.0.0-0", theirs: "1.1.0-rc.10", choose: Choose{SemVer: ">=1.0.0-0"}, ours: "1.1.0-rc.10"},
	{name: "two parts", tags: "1.0 1.1 1.10", current: "1.0", strategy: "semver", limit: "1.x", theirs: "1.10", choose: Choose{SemVer: "1.x"}, ours: "1.10"},
	{name: "what is there is the newest", tags: "1.0.0 1.0.1", current: "1.0.1", strategy: "semver", theirs: "1.0.1", choose: Choose{SemVer: "*"}, why: staysPut},
	{name: "the newest was deleted", tags: "1.0.0 1.0.1", current: "1.0.2", strategy: "semver", theirs: "1.0.1", choose: Choose{SemVer: "*"}, why: notBack},
	{name: "the newest was deleted, and the rule goes back", tags: "1.0.0 1.0.1", current: "1.0.2", strategy: "semver", theirs: "1.0.1", choose: Choose{SemVer: "*", Downgrade: true}, ours: "1.0.1"},
	{name: "what is there is past the range", tags: "1.0.0 1.5.0 2.0.0", current: "2.0.0", strategy: "semver", limit: "^1", theirs: "1.5.0", choose: Choose{SemVer: "^1"}, why: notBack},
	{name: "what is there is no version", tags: "1.0.0 latest", current: "latest", strategy: "semver", theirs: "1.0.0", choose: Choose{SemVer: "*"}, why: "what can't be compared might be newer: a person sets a version once"},
	{name: "nothing in the range", tags: "1.0.0 1.1.0", current: "1.0.0", strategy: "semver", limit: ">=3", theirs: "", choose: Choose{SemVer: ">=3"}},
	{name: "an ignored version", tags: "1.0.0 1.0.1 1.0.2", current: "1.0.0", strategy: "semver", ignore: "1.0.2", theirs: "1.0.1", choose: Choose{SemVer: "*", Ignore: []string{"1.0.2"}}, ours: "1.0.1"},
	{name: "ignored by a glob", tags: "1.0.0 1.1.0-debug 1.1.1-alpine 1.0.5", current: "1.0.0", strategy: "semver", limit: ">=1.0.0-0", ignore: "*-debug *-alpine", theirs: "1.0.5", choose: Choose{SemVer: ">=1.0.0-0", Ignore: []string{"*-debug", "*-alpine"}}, ours: "1.0.5"},
	{name: "allowed tags of semver", tags: "1.0.0 v1.1.0 1.0.7", current: "1.0.0", strategy: "semver", allow: `^\d`, theirs: "1.0.7", choose: Choose{SemVer: "*", Tags: `^\d`}, ours: "1.0.7"},
	{name: "a version within a tag", tags: "web-1.0.0 web-1.2.0 api-9.0.0", current: "web-1.0.0", strategy: "semver", allow: "^web-", theirs: "", choose: Choose{SemVer: "*", Tags: "^web-(?P<version>.+)$"}, ours: "web-1.2.0", why: "they read no version within a tag"},
	{name: "a date as a version", tags: "2026.1.5 2026.10.1 2026.9.30", current: "2026.1.5", strategy: "semver", theirs: "2026.10.1", choose: Choose{SemVer: "*"}, ours: "2026.10.1"},
	{name: "the range ends with what is there", tags: "1.0.0 1.0.1", current: "1.0.0", strategy: "semver", limit: "<1.0.1", theirs: "1.0.0", choose: Choose{SemVer: "<1.0.1"}, why: staysPut},
	// newest-build
	{name: "the newest build", tags: "a1@1 f3@3 c2@2", current: "a1", strategy: "newest-build", theirs: "f3", choose: Choose{Newest: &Newest{Tags: ".", By: ByCreated}}, ours: "f3"},
	{name: "the newest build of a branch", tags: "main-aa@1 main-bb@2 dev-cc@3", current: "main-aa", strategy: "newest-build", allow: "^main-", theirs: "main-bb", choose: Choose{Newest: &Newest{Tags: "^main-", By: ByCreated}}, ours: "main-bb"},
	{name: "the newest build is ignored", tags: "a@1 b@2 latest@3", current: "a", strategy: "newest-build", ignore: "latest", theirs: "b", choose: Choose{Newest: &Newest{Tags: ".", By: ByCreated}, Ignore: []string{"latest"}}, ours: "b"},
	{name: "two tags of one build", tags: "a@1 b@2 c@2", current: "a", strategy: "newest-build", theirs: "c", choose: Choose{Newest: &Newest{Tags: ".", By: ByCreated}}, ours: "c"},
	{name: "an older build was deleted", tags: "b@2", current: "a", strategy: "newest-build", theirs: "b", choose: Choose{Newest: &Newest{Tags: ".", By: ByCreated}}, why: "when what is there was made isn't known any more, so that it might be newer"},
	{name: "the newest build was deleted", tags: "a@1 b@2", current: "c", strategy: "newest-build", theirs: "b", choose: Choose{Newest: &Newest{Tags: ".", By: ByCreated}}, why: notBack},
	{name: "an old tag built again", tags: "1.0.0@9 1.1.0@5", current: "1.1.0", strategy: "newest-build", theirs: "1.0.0", choose: Choose{Newest: &Newest{Tags: ".", By: ByCreated}}, ours: "1.0.0"},
	{name: "build numbers", tags: "main-9@9 main-10@10", current: "main-9", strategy: "newest-build", theirs: "main-10", choose: Choose{Newest: &Newest{Tags: `^main-(?P<n>\d+)$`, By: ByNumber}}, ours: "main-10"},
	// alphabetical, once called name
	{name: "dates by name", tags: "20260101 20260302 20260215", current: "20260101", strategy: "alphabetical", theirs: "20260302", choose: Choose{Newest: &Newest{Tags: `^\d{8}$`, By: ByAlphabet}}, ours: "20260302"},
	{name: "numbers by name", tags: "build-9 build-10", current: "build-9", strategy: "alphabetical", theirs: "build-9", choose: Choose{Newest: &Newest{Tags: "^build-", By: ByAlphabet}}, why: staysPut},
	{name: "numbers by number", tags: "build-9 build-10", current: "build-9", strategy: "alphabetical", theirs: "build-9", choose: Choose{Newest: &Newest{Tags: `^build-(?P<n>\d+)$`, By: ByNumber}}, ours: "build-10", why: "they have no order by number"},
	{name: "names of a branch", tags: "main-2026 main-2027 topic-2028", current: "main-2026", strategy: "alphabetical", allow: "^main-", theirs: "main-2027", choose: Choose{Newest: &Newest{Tags: "^main-", By: ByAlphabet}}, ours: "main-2027"},
	{name: "an ignored name", tags: "a b c", current: "a", strategy: "alphabetical", ignore: "c", theirs: "b", choose: Choose{Newest: &Newest{Tags: ".", By: ByAlphabet}, Ignore: []string{"c"}}, ours: "b"},
	{name: "a name before what is there", tags: "a b", current: "c", strategy: "alphabetical", theirs: "b", choose: Choose{Newest: &Newest{Tags: ".", By: ByAlphabet}}, why: notBack},
	// digest
	{name: "a tag that moved", tags: "latest 1.0.0", current: "latest", strategy: "digest", limit: "latest", theirs: "latest", choose: Choose{Digest: &FollowedTag{Tag: "latest"}}, ours: "latest"},
	{name: "a tag that is gone", tags: "1.0.0", current: "latest", strategy: "digest", limit: "latest", theirs: "", choose: Choose{Digest: &FollowedTag{Tag: "latest"}}},
}

// TestImageUpdater compares what comes in with what Image Updater takes of the same lists.
func TestImageUpdater(t *testing.T) {
	t.Parallel()
	if len(imageUpdaterCases) != 40 {
		t.Errorf("there are %d lists", len(imageUpdaterCases))
	}
	for _, c := range imageUpdaterCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rule, err := Compile(c.choose)
			if err != nil {
				t.Fatal(err)
			}
			q := Query{Current: c.current, Details: map[string]Details{}}
			for text := range strings.FieldsSeq(c.tags) {
				tag, minute, _ := strings.Cut(text, "@")
				q.Tags = append(q.Tags, tag)
				d := Details{Digest: "sha256:new"}
				if minute != "" {
					d.Created = time.Date(2026, 3, 2, 12, int(minute[0]-'0')+10*(len(minute)-1), 0, 0, time.UTC)
				}
				q.Details[tag] = d
			}
			if tag := rule.FollowedTag(); tag != "" {
				q.CurrentDigest = "sha256:old"
				if _, is := q.Details[tag]; !is {
					q.Details[tag] = Details{Err: "the registry has no such image, or doesn't show it"}
				}
			}
			got, err := rule.Choose(&q)
			if err != nil || got.Tag != c.ours || len(got.Missing) > 0 {
				t.Errorf("%q comes in, not %q: %+v, %v", got.Tag, c.ours, got, err)
			}
			if isSame := c.ours == c.theirs; isSame != (c.why == "") {
				t.Errorf("ours is %q, theirs %q: %q", c.ours, c.theirs, c.why)
			}
		})
	}
}
