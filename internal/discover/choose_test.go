package discover

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestProblems holds what is said of rules that choose nothing for sure.
func TestProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		choose Choose
		want   []string // key: the message's beginning
	}{
		"nothing":               {Choose{}, []string{": exactly one of semver, newest and digest is needed; this rule has 0"}},
		"two":                   {Choose{SemVer: "*", Digest: &FollowedTag{Tag: "latest"}}, []string{": exactly one of semver, newest and digest is needed; this rule has 2"}},
		"no range":              {Choose{SemVer: "newest"}, []string{`semver: "newest" is no range of versions; write it like`}},
		"a long range":          {Choose{SemVer: strings.Repeat(">1 ", 400)}, []string{"semver: the range is longer than 1000"}},
		"a broken expression":   {Choose{SemVer: "*", Tags: "("}, []string{`tags: "(" is no regular expression (missing closing ): `}},
		"two groups":            {Choose{SemVer: "*", Tags: "(?P<a>.)(?P<b>.)"}, []string{`tags: "(?P<a>.)(?P<b>.)" has the named groups a and b, and one can be compared`}},
		"no order":              {Choose{Newest: &Newest{Tags: "^main-"}}, []string{"newest: by is missing: number, alphabet or created; without it nothing orders the tags"}},
		"another order":         {Choose{Newest: &Newest{Tags: "^main-", By: "age"}}, []string{`newest.by: "age" is not number, alphabet or created`}},
		"no tags":               {Choose{Newest: &Newest{By: ByAlphabet}}, []string{"newest: tags is missing: a regular expression"}},
		"text for a number":     {Choose{Newest: &Newest{Tags: `^main-(?P<n>.+)$`, By: ByNumber}}, []string{`newest.tags: "^main-(?P<n>.+)$" can't be ordered by number`}},
		"a tag for a number":    {Choose{Newest: &Newest{Tags: `^main-\d+$`, By: ByNumber}}, []string{`newest.tags: "^main-\\d+$" can't be ordered by number`}},
		"a part for a number":   {Choose{Newest: &Newest{Tags: `\d+`, By: ByNumber}}, []string{`newest.tags: "\\d+" can't be ordered by number`}},
		"either for a number":   {Choose{Newest: &Newest{Tags: `^(?P<n>\d+|x)$`, By: ByNumber}}, []string{`newest.tags: "^(?P<n>\\d+|x)$" can't be ordered by number`}},
		"a group by time":       {Choose{Newest: &Newest{Tags: `(?P<n>\d+)`, By: ByCreated}}, []string{"newest.tags: the group n does nothing with by: created"}},
		"no such tag":           {Choose{Digest: &FollowedTag{Tag: "a b"}}, []string{`digest.tag: "a b" can't be a tag`}},
		"what digest can't":     {Choose{Digest: &FollowedTag{Tag: "a"}, Ignore: []string{"b"}, Downgrade: true, Tags: "x", Prerelease: true}, []string{"prerelease: belongs to semver", "tags: belongs to semver", "ignore: does nothing with digest", "downgrade: does nothing with digest"}},
		"a broken glob":         {Choose{SemVer: "*", Ignore: []string{"ok", "[", ""}}, []string{`ignore[1]: "[" is not a valid glob`, `ignore[2]: "" is not a valid glob`}},
		"many globs":            {Choose{SemVer: "*", Ignore: slices.Repeat([]string{"x"}, 101)}, []string{"ignore: 101 are too many; at most 100"}},
		"a number":              {Choose{Newest: &Newest{Tags: `^\d{8}$`, By: ByNumber}}, nil},
		"a number in brackets":  {Choose{Newest: &Newest{Tags: `-(?P<n>[0-9]{1,9})-`, By: ByNumber}}, nil},
		"what semver may":       {Choose{SemVer: ">=1 <2 || ^3", Prerelease: true, Tags: "^v", Ignore: []string{"*-debug"}, Downgrade: true}, nil},
		"a version in brackets": {Choose{SemVer: "*", Tags: "^web-(?P<version>.+)$"}, nil},
	} {
		got := c.choose.Problems()
		if _, err := Compile(c.choose); (err == nil) != (len(c.want) == 0) {
			t.Errorf("%s: Compile says %v", name, err)
		}
		ok := len(got) == len(c.want)
		for i := range got {
			ok = ok && strings.HasPrefix(got[i].Key+": "+got[i].Message, c.want[i])
		}
		if !ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// mustCompile compiles a rule that has no problem.
func mustCompile(t testing.TB, c Choose) *Rule {
	t.Helper()
	r, err := Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReasons holds what is said of each tag.
func TestReasons(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 3, 2, 12, minute, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		choose   Choose
		query    Query
		tag, why string
		rejected []string
	}{
		"all reasons of a range": {Choose{SemVer: "^1", Ignore: []string{"*-debug"}},
			Query{Tags: []string{"1.0.0", "1.2.0", "1.3.0", "v1.2.0", "2.0.0", "1.4.0-rc.1", "1.9.0-debug", "latest", "a b", "0.9.0", "1.2.0"}, Current: "1.1.0"},
			"1.3.0", "1.3.0, the highest version in ^1",
			[]string{"1.2.0 is older than 1.3.0", "v1.2.0 is older than 1.3.0", "1.0.0 is older than 1.3.0", "2.0.0 is not in ^1", "1.4.0-rc.1 is a pre-release", "1.9.0-debug is ignored by *-debug", "latest is no version", "a b can't be a tag", "0.9.0 is not in ^1"}},
		"what is there": {Choose{SemVer: "*"}, Query{Tags: []string{"1.0.0", "1.1.0", "v1.1.0"}, Current: "1.1.0"}, "", "1.1.0 is there, the highest version in *",
			[]string{"v1.1.0 is as new as 1.1.0, which is there", "1.0.0 is older than 1.1.0, which is there"}},
		"what is there isn't listed": {Choose{SemVer: "*"}, Query{Tags: []string{"1.0.0", "v1.1.0"}, Current: "1.1.0"}, "", "no tag that may come in is newer than 1.1.0",
			[]string{"v1.1.0 is as new as 1.1.0, which is there", "1.0.0 is older than 1.1.0, which is there"}},
		"as it is written": {Choose{SemVer: "*"}, Query{Tags: []string{"1.1.0", "v1.1.0"}, Current: "v1.0.0"}, "v1.1.0", "v1.1.0, the highest version in *", []string{"1.1.0 is as new as v1.1.0"}},
		"what can't be compared": {Choose{SemVer: "*"}, Query{Tags: []string{"1.0.0"}, Current: "latest"}, "", "what is there, latest, can't be compared, as it is no version: set it once by liftlock set",
			[]string{"1.0.0 can't be compared with latest, which is there"}},
		"nothing is there":  {Choose{SemVer: "*"}, Query{Tags: []string{"1.0.0"}}, "1.0.0", "1.0.0, the highest version in *", nil},
		"nothing is listed": {Choose{SemVer: "*"}, Query{Current: "1.0.0"}, "", "the registry lists no tag", nil},
		"nothing counts":    {Choose{SemVer: "*"}, Query{Tags: []string{"x"}, Current: "1.0.0"}, "", "none of 1 tags can be the highest version in *", []string{"x is no version"}},
		"nothing may come":  {Choose{SemVer: "*"}, Query{Tags: []string{"1.0.0"}, KeptOut: map[string]string{"1.0.0": "is held"}}, "", "none of the tags that count may come in", []string{"1.0.0 is held"}},
		"what a person took off, and what was there before that": {Choose{SemVer: "*"}, Query{Tags: []string{"1.0.0", "1.1.0", "1.2.0"}, Current: "1.0.0", Past: []string{"1.0.0", "1.1.0", "1.2.0"}}, "", "1.0.0 is there, the highest version in *", []string{"1.2.0 was there before, and was replaced by an older one: it stays out until somebody sets it", "1.1.0 was there before, and was replaced by an older one: it stays out until somebody sets it"}},
		"what a person took off":                                 {Choose{SemVer: "*"}, Query{Tags: []string{"1.0.0", "1.1.0", "1.2.0"}, Current: "1.0.0", Past: []string{"1.0.0", "1.2.0"}}, "1.1.0", "1.1.0, the highest version in *", []string{"1.2.0 was there before, and was replaced by an older one: it stays out until somebody sets it", "1.0.0 is older than 1.1.0"}},
		"what came back":                                         {Choose{SemVer: "*"}, Query{Tags: []string{"1.0.0", "1.2.0"}, Current: "1.2.0", Past: []string{"1.2.0", "1.0.0"}}, "", "1.2.0 is there, the highest version in *", []string{"1.0.0 is older than 1.2.0, which is there"}},
		"numbers": {Choose{Newest: &Newest{Tags: `^main-(?P<n>\d+)$`, By: ByNumber}}, Query{Tags: []string{"main-9", "main-010", "main-99999999999999999999", "dev-1"}, Current: "main-9"},
			"main-99999999999999999999", `main-99999999999999999999, the highest number of the tags that match ^main-(?P<n>\d+)$`, []string{"main-010 is older than main-99999999999999999999", "main-9 is older than main-99999999999999999999", `dev-1 doesn't match ^main-(?P<n>\d+)$`}},
		"an empty number": {Choose{Newest: &Newest{Tags: `^main-(?P<n>\d*)$`, By: ByNumber}}, Query{Tags: []string{"main-"}}, "", `none of 1 tags can be the highest number of the tags that match ^main-(?P<n>\d*)$`, []string{"main- has no number there"}},
		"times": {Choose{Newest: &Newest{Tags: "^main-", By: ByCreated}}, Query{Tags: []string{"main-a", "main-b", "main-c", "main-d"}, Current: "main-a",
			Details: map[string]Details{"main-a": {Created: at(1)}, "main-b": {Created: at(2)}, "main-c": {}, "main-d": {Err: "it is gone"}}},
			"main-b", "main-b, the one that was made last of the tags that match ^main-", []string{"main-a is older than main-b", "main-c doesn't say when it was made", "main-d can't be read: it is gone"}},
		"platforms": {Choose{SemVer: "*"}, Query{Tags: []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"}, Current: "1.0.0", Platforms: []string{"linux/amd64", "linux/arm"},
			Details: map[string]Details{"1.3.0": {Err: "it is gone"}, "1.2.0": {Platforms: []string{"linux/amd64"}}, "1.1.0": {Platforms: []string{"linux/amd64", "linux/arm/v7"}}}},
			"1.1.0", "1.1.0, the highest version in *", []string{"1.3.0 can't be read: it is gone", "1.2.0 has no image for linux/arm", "1.0.0 is older than 1.1.0"}},
		"a digest":             {Choose{Digest: &FollowedTag{Tag: "main"}}, Query{CurrentDigest: "sha256:a", Details: map[string]Details{"main": {Digest: "sha256:b"}}}, "main", "sha256:b, what the tag main has now", nil},
		"the same digest":      {Choose{Digest: &FollowedTag{Tag: "main"}}, Query{CurrentDigest: "sha256:b", Details: map[string]Details{"main": {Digest: "sha256:b"}}}, "", "sha256:b is there, what the tag main has now", nil},
		"a digest from before": {Choose{Digest: &FollowedTag{Tag: "main"}}, Query{CurrentDigest: "sha256:b", Past: []string{"sha256:a"}, Details: map[string]Details{"main": {Digest: "sha256:a"}}}, "", "sha256:a, what the tag main has now, doesn't come in", []string{"sha256:a was there before: digests have no order, so it stays out until somebody sets it"}},
		"a digest of another platform": {Choose{Digest: &FollowedTag{Tag: "main"}}, Query{Platforms: []string{"linux/arm64"}, Details: map[string]Details{"main": {Digest: "sha256:a"}}}, "", "sha256:a, what the tag main has now, doesn't come in",
			[]string{"sha256:a has no image for linux/arm64"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := mustCompile(t, c.choose).Choose(&c.query)
			if err != nil || got.Tag != c.tag || got.Why != c.why {
				t.Errorf("%q: %q, %v", got.Tag, got.Why, err)
			}
			var rejected []string
			for _, r := range got.Rejected {
				rejected = append(rejected, r.Tag+" "+r.Why)
			}
			if diff := cmp.Diff(c.rejected, rejected); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMissing holds which tags have to be looked into, and no others.
func TestMissing(t *testing.T) {
	t.Parallel()
	tags := []string{"main-a", "main-b", "main-c", "dev-a", "main-x", "a b"}
	for name, c := range map[string]struct {
		choose Choose
		query  Query
		want   []string
	}{
		"those that count":   {Choose{Newest: &Newest{Tags: "^main-", By: ByCreated}, Ignore: []string{"*-x"}}, Query{Tags: tags, Details: map[string]Details{"main-a": {}}}, []string{"main-b", "main-c"}},
		"the followed one":   {Choose{Digest: &FollowedTag{Tag: "main-a"}}, Query{}, []string{"main-a"}},
		"the newest alone":   {Choose{Newest: &Newest{Tags: "^main-", By: ByAlphabet}}, Query{Tags: tags, Platforms: []string{"linux/amd64"}}, []string{"main-x"}},
		"its digest":         {Choose{SemVer: "*"}, Query{Tags: []string{"1.0.0", "1.1.0"}, Current: "1.0.0", NeedsDigest: true}, []string{"1.1.0"}},
		"none of what stays": {Choose{SemVer: "*"}, Query{Tags: []string{"1.0.0", "1.1.0"}, Current: "1.1.0", NeedsDigest: true}, nil},
	} {
		got, err := mustCompile(t, c.choose).Choose(&c.query)
		if err != nil || !slices.Equal(got.Missing, c.want) {
			t.Errorf("%s: %q, %v", name, got.Missing, err)
		}
	}
}

// TestNeverDownwards holds the invariant over random lists: what comes in is newer than what is there, isn't kept out, and
// was never replaced by something older; and each other tag has its reason.
func TestNeverDownwards(t *testing.T) {
	t.Parallel()
	version := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "v"}).Draw(t, "v") + fmt.Sprintf("%d.%d.0", rapid.IntRange(0, 2).Draw(t, "major"), rapid.IntRange(0, 3).Draw(t, "minor"))
	})
	rules := []*Rule{mustCompile(t, Choose{SemVer: "*"}), mustCompile(t, Choose{SemVer: "^1"}), mustCompile(t, Choose{Newest: &Newest{Tags: ".", By: ByAlphabet}})}
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(rules).Draw(t, "rule")
		q := Query{Tags: rapid.SliceOf(version).Draw(t, "tags"), Current: version.Draw(t, "current"), Past: rapid.SliceOfN(version, 0, 5).Draw(t, "past"),
			KeptOut: map[string]string{version.Draw(t, "kept"): "is held"}}
		got, err := r.Choose(&q)
		if err != nil {
			t.Fatal(err)
		}
		if got.Tag != "" {
			is, _ := r.rankOf(got.Tag, nil)
			was, _ := r.rankOf(q.Current, nil)
			if r.compare(is, was) <= 0 || q.KeptOut[got.Tag] != "" || !slices.Contains(q.Tags, got.Tag) || got.Stays {
				t.Fatalf("%q comes in over %q", got.Tag, q.Current)
			}
			line := append(slices.Clone(q.Past), q.Current)
			last := -1
			for i, tag := range line {
				if tag == got.Tag {
					last = i
				}
			}
			if last >= 0 {
				next, _ := r.rankOf(line[last+1], nil)
				if r.compare(is, next) > 0 {
					t.Fatalf("%q comes in again, although %q replaced it", got.Tag, line[last+1])
				}
			}
		}
		seen := map[string]bool{}
		for _, x := range got.Rejected {
			if x.Why == "" || seen[x.Tag] || x.Tag == got.Tag {
				t.Fatalf("%+v", got.Rejected)
			}
			seen[x.Tag] = true
		}
		for _, tag := range q.Tags {
			isThere := got.Stays && tag == q.Current
			if !seen[tag] && tag != got.Tag && !isThere {
				t.Fatalf("%q has no reason: %+v", tag, got)
			}
		}
		than := got.Tag
		if than == "" {
			than = q.Current
		}
		for _, n := range got.Newer {
			at, why := r.rankOf(n.Tag, nil)
			is, _ := r.rankOf(than, nil)
			if why != "" || r.compare(at, is) <= 0 || n.Why == "" || !seen[n.Tag] {
				t.Fatalf("%+v is newer than %q", n, than)
			}
		}
		again := q
		again.Tags = slices.Clone(q.Tags)
		slices.Sort(again.Tags)
		if other, err := r.Choose(&again); err != nil || other.Tag != got.Tag {
			t.Fatalf("in another order %q comes in, not %q", other.Tag, got.Tag)
		}
	})
}

// TestNewer says which tags are newer and don't come in: the newest first, a few of them, each with its reason.
func TestNewer(t *testing.T) {
	t.Parallel()
	held := map[string]string{"1.3.0": "is held"}
	for name, c := range map[string]struct {
		choose Choose
		q      Query
		want   string // TAG(r for one that the rule leaves out): WHY, …, and how many more
	}{
		"nothing":          {Choose{SemVer: "*"}, Query{Tags: []string{"1.0.0", "0.9.0"}, Current: "1.0.0"}, " 0"},
		"what comes in":    {Choose{SemVer: "*"}, Query{Tags: []string{"1.1.0", "1.2.0"}, Current: "1.0.0"}, " 0"},
		"out of the range": {Choose{SemVer: "<2"}, Query{Tags: []string{"1.1.0", "2.0.0", "0.1.0"}, Current: "1.0.0"}, "2.0.0(r) is not in <2 0"},
		"several": {Choose{SemVer: "<2"}, Query{Tags: []string{"2.0.0", "2.4.0", "2.1.0", "2.3.0", "1.0.0"}, Current: "1.0.0"},
			"2.4.0(r) is not in <2, 2.3.0(r) is not in <2, 2.1.0(r) is not in <2 1"},
		"a pre-release":     {Choose{SemVer: "*"}, Query{Tags: []string{"1.1.0-rc.1", "1.0.0"}, Current: "1.0.0"}, "1.1.0-rc.1(r) is a pre-release 0"},
		"what a person has": {Choose{SemVer: "<2"}, Query{Tags: []string{"1.3.0", "2.0.0", "1.2.0"}, Current: "1.0.0", KeptOut: held}, "2.0.0(r) is not in <2, 1.3.0 is held 0"},
		"what went back": {Choose{SemVer: "*"}, Query{Tags: []string{"1.1.0", "1.0.0"}, Current: "1.0.0", Past: []string{"1.1.0"}},
			"1.1.0 was there before, and was replaced by an older one: it stays out until somebody sets it 0"},
		"for another platform": {Choose{SemVer: "*"}, Query{Tags: []string{"1.1.0"}, Current: "1.0.0", Platforms: []string{"linux/arm64"}, Details: map[string]Details{"1.1.0": {}}},
			"1.1.0 has no image for linux/arm64 0"},
		"can't be compared": {Choose{SemVer: "<2"}, Query{Tags: []string{"1.1.0", "2.0.0"}, Current: "main"}, "2.0.0(r) is not in <2, 1.1.0 can't be compared with main, which is there 0"},
		"what is ignored":   {Choose{SemVer: "*", Ignore: []string{"9*"}}, Query{Tags: []string{"9.0.0", "latest"}, Current: "1.0.0"}, " 0"},
		"no versions": {Choose{Newest: &Newest{Tags: "^main-(?P<n>\\d+)$", By: ByNumber}}, Query{Tags: []string{"main-3", "dev-4", "main-2"}, Current: "main-1", KeptOut: map[string]string{"main-3": "is held"}},
			"main-3 is held 0"},
		"a digest": {Choose{Digest: &FollowedTag{"main"}}, Query{CurrentDigest: "sha256:a", Past: []string{"sha256:b"}, Details: map[string]Details{"main": {Digest: "sha256:b"}}},
			"sha256:b was there before: digests have no order, so it stays out until somebody sets it 0"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mustCompile(t, c.choose).Choose(&c.q)
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, n := range got.Newer {
				said = append(said, n.Tag+map[bool]string{true: "(r)"}[n.ByRule]+" "+n.Why)
			}
			if text := fmt.Sprintf("%s %d", strings.Join(said, ", "), got.MoreNewer); text != c.want {
				t.Errorf("%s, not %s", text, c.want)
			}
		})
	}
}

// TestNewerUnsigned holds that tags which aren't looked at, behind many that aren't signed, are said nothing of.
func TestNewerUnsigned(t *testing.T) {
	t.Parallel()
	q := Query{Current: "1.0.0", NeedsSignature: true, Signatures: map[string]Signature{}}
	for i := range MaxUnsigned + 3 {
		tag := fmt.Sprintf("1.%d.0", i+1)
		q.Tags, q.Signatures[tag] = append(q.Tags, tag), Signature{Why: "nobody signed it"}
	}
	got, err := mustCompile(t, Choose{SemVer: "*"}).Choose(&q)
	if err != nil || len(got.Newer) != MaxNewer || got.MoreNewer != MaxUnsigned-MaxNewer || got.Newer[0].Why != "isn't signed as it has to be: nobody signed it" {
		t.Errorf("%+v and %d more, %v", got.Newer, got.MoreNewer, err)
	}
}

// TestManyTags holds the bound, and that a list up to it is chosen from.
func TestManyTags(t *testing.T) {
	t.Parallel()
	r := mustCompile(t, Choose{SemVer: "*"})
	q := Query{Current: "1.0.0"}
	for i := range MaxTags {
		q.Tags = append(q.Tags, fmt.Sprintf("1.0.%d", i))
	}
	if got, err := r.Choose(&q); err != nil || got.Tag != "1.0.99999" || len(got.Rejected) != MaxTags-1 {
		t.Errorf("%q with %d others, %v", got.Tag, len(got.Rejected), err)
	}
	q.Tags = append(q.Tags, "2.0.0")
	if got, err := r.Choose(&q); err != ErrTooMany || got.Tag != "" {
		t.Errorf("%q, %v", got.Tag, err)
	}
}

// FuzzChoose holds that no list and no rule does harm: what comes in is one of the tags, and never what is kept out.
func FuzzChoose(f *testing.F) {
	f.Add("*", "", "", "", "1.0.0 1.1.0 latest", "1.0.0", "1.1.0")
	f.Add("", `^main-(?P<n>\d+)$`, ByNumber, "*-debug", "main-1 main-2 main-3-debug", "main-1", "")
	f.Add("", ".", ByCreated, "[", "a b c", "a", "b")
	f.Add(">=1.0.0-0 || <0.1", "^v", "", "", "v1.0.0-rc.1+build v1", "v0", "")
	f.Fuzz(func(t *testing.T, version, tags, by, ignore, list, current, past string) {
		c := Choose{SemVer: version, Tags: tags}
		if version == "" {
			c = Choose{Newest: &Newest{Tags: tags, By: by}}
		}
		if ignore != "" {
			c.Ignore = []string{ignore}
		}
		r, err := Compile(c)
		if (err == nil) != (len(c.Problems()) == 0) {
			t.Fatalf("%v, and %v", err, c.Problems())
		}
		if err != nil {
			return
		}
		q := Query{Tags: strings.Split(list, " "), Current: current, Past: strings.Split(past, " "), Details: map[string]Details{}}
		for i, tag := range q.Tags {
			q.Details[tag] = Details{Created: time.Unix(int64(i+1), 0)}
		}
		got, err := r.Choose(&q)
		if err != nil {
			t.Fatal(err)
		}
		if got.Tag != "" && (!slices.Contains(q.Tags, got.Tag) || !validTag.MatchString(got.Tag) || got.Tag == current) || got.Why == "" && len(got.Missing) == 0 {
			t.Fatalf("%+v", got)
		}
	})
}
