package forge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCoAuthors(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		want    []Contributor
	}{
		"none":                {"Release 1.0\n\nSigned-off-by: Ada <ada@example.com>", nil},
		"some":                {"Release\n\nCo-authored-by: Ada L. <ada@example.com>\nCO-AUTHORED-BY:grace <grace@example.com> \r\n", []Contributor{{Name: "Ada L.", Email: "ada@example.com"}, {Name: "grace", Email: "grace@example.com"}}},
		"committed for":       {"Release\n\nCo-committed-by: Ada <ada@example.com>", []Contributor{{Name: "Ada", Email: "ada@example.com"}}},
		"without an address":  {"Release\n\nCo-authored-by: Ada", []Contributor{{Name: "Ada"}}},
		"broken":              {"Release\n\nCo-authored-by: Ada <ada@example.com", []Contributor{{Name: "Ada", Email: "ada@example.com"}}},
		"several of a line":   {"Release\n\nCo-authored-by: Ada <ada@example.com>, Grace <grace@example.com> and Linus <linus@example.com>; <eve@example.com>.\r\n", []Contributor{{Name: "Ada", Email: "ada@example.com"}, {Name: "Grace", Email: "grace@example.com"}, {Name: "Linus", Email: "linus@example.com"}, {Email: "eve@example.com"}}},
		"a blank before":      {"Release\n\nCo-authored-by \t: Ada <ada@example.com>", []Contributor{{Name: "Ada", Email: "ada@example.com"}}},
		"a name that follows": {"Release\n\nCo-authored-by: Ada <ada@example.com>, Grace", []Contributor{{Name: "Ada", Email: "ada@example.com"}, {Name: "Grace"}}},
		"one in another":      {"Release\n\nCo-authored-by: Ada <ada@example.com <grace@example.com>>", []Contributor{{Name: "Ada", Email: "ada@example.com"}, {Email: "grace@example.com"}}},
		"nobody":              {"Release\n\nCo-authored-by:", []Contributor{{}}},
		"in a sentence":       {"See the Co-authored-by: line", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, tooMany := CoAuthors(c.message)
			if diff := cmp.Diff(c.want, got); diff != "" || tooMany {
				t.Errorf("%t (-want +got):\n%s", tooMany, diff)
			}
		})
	}
	if _, tooMany := CoAuthors(strings.Repeat("Co-authored-by: A <a@b>\n", maxCoAuthors+1)); !tooMany {
		t.Error("too many co-authors are not too many")
	}
	all, tooMany := CoAuthors("Co-authored-by: " + strings.Repeat("A <a@b>, ", maxCoAuthors))
	if len(all) != maxCoAuthors || tooMany {
		t.Errorf("of the most co-authors in one line %d are read, too many %t", len(all), tooMany)
	}
	if _, tooMany := CoAuthors("Co-authored-by: " + strings.Repeat("A <a@b>, ", maxCoAuthors+1)); !tooMany {
		t.Error("too many co-authors of one line are not too many")
	}
}

func TestParseNoReply(t *testing.T) {
	for email, want := range map[string]User{
		"123+ada@users.noreply.github.com":                       {ID: 123, Login: "ada"},
		"ADA-l@Users.NoReply.GitHub.com":                         {Login: "ADA-l"},
		"49699333+dependabot[bot]@users.noreply.github.com":      {ID: 49699333, Login: "dependabot[bot]", Bot: true},
		"123+ada@users.noreply.github.com.evil.example":          {},
		"123+ada@example.com":                                    {},
		"+ada@users.noreply.github.com":                          {},
		"x+ada@users.noreply.github.com":                         {},
		"@users.noreply.github.com":                              {},
		"9999999999999999999999999+ada@users.noreply.github.com": {},
	} {
		if got, ok := ParseNoReply(email, "github.com"); got != want || ok != (want != User{}) {
			t.Errorf("%s is %+v, %t; want %+v", email, got, ok, want)
		}
	}
}

func FuzzCoAuthors(f *testing.F) {
	f.Add("Release\n\nCo-authored-by: Ada <ada@example.com>")
	f.Add("Release\n\nCo-authored-by : Ada <ada@example.com>, Grace <<grace@example.com>> and Linus")
	f.Fuzz(func(t *testing.T, message string) {
		all, _ := CoAuthors(message)
		if len(all) > maxCoAuthors {
			t.Fatalf("%d co-authors", len(all))
		}
		for _, p := range all {
			if strings.ContainsAny(fmt.Sprint(p.Name, p.Email), "\n") {
				t.Fatalf("%+v has several lines", p)
			}
			if strings.ContainsAny(p.Email, "<>") {
				t.Fatalf("%+v hides an address", p)
			}
			ParseNoReply(p.Email, "github.com")
		}
	})
}

func TestAddContributor(t *testing.T) {
	var c CommitAuthors
	for _, p := range []Contributor{
		{Name: "Ada", Email: "ada@example.com", User: User{ID: 1, Login: "ada"}},
		{Name: "ada", Email: "ADA@example.com", User: User{ID: 1, Login: "ada"}},
		{Name: "ada", Email: "ada@example.com"},
	} {
		c.AddContributor(p)
	}
	if len(c.Contributors) != 2 {
		t.Errorf("the contributors are %+v", c.Contributors)
	}
}
