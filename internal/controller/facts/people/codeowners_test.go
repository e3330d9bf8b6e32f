package people

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/liftlock/liftlock/policies"
)

const ownersFile = `# who looks after what
*                @acme/sre
apps/web/        @grace @acme/web  # the shop
apps/web/dev/
/docs/**/*.md    docs@example.com
apps/*/qa/*.yaml @linus
`

// TestFindOwners holds that the last rule that matches counts, also one that names no owner.
func TestFindOwners(t *testing.T) {
	rules, err := readCodeowners(fstest.MapFS{"CODEOWNERS": {Data: []byte("* @nobody")}, ".github/CODEOWNERS": {Data: []byte(ownersFile)}}, "github")
	if err != nil {
		t.Fatal(err)
	}
	got, err := rules.findOwners([]string{"x", "apps/web/prod/k.yaml", "apps/web/dev/k.yaml", "docs/a/b.md", "apps/web/qa/k.yaml", "apps/web/qa/deep/k.yaml"})
	want := []policies.OwnedFile{{Path: "x", Owners: []string{"acme/sre"}}, {Path: "apps/web/prod/k.yaml", Owners: []string{"grace", "acme/web"}}, {Path: "apps/web/dev/k.yaml"},
		{Path: "docs/a/b.md", Owners: []string{"docs@example.com"}}, {Path: "apps/web/qa/k.yaml", Owners: []string{"linus"}}, {Path: "apps/web/qa/deep/k.yaml", Owners: []string{"grace", "acme/web"}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := rules.findOwners(make([]string, maxOwnedFiles+1)); err == nil {
		t.Error("any number of files is looked up")
	}
}

// TestCodeownersThatCantBeRead holds that they are said, and never taken for an empty file.
func TestCodeownersThatCantBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"none":         {fstest.MapFS{"README.md": {}}, "has no CODEOWNERS"},
		"a folder":     {fstest.MapFS{"CODEOWNERS/x": {}}, "has no CODEOWNERS"},
		"no owner":     {fstest.MapFS{"docs/CODEOWNERS": {Data: []byte("* @a\n*.go who?")}}, "read docs/CODEOWNERS: line 2"},
		"too large":    {fstest.MapFS{"CODEOWNERS": {Data: []byte(strings.Repeat("#", maxCodeowners+1))}}, "larger than"},
		"a long line":  {fstest.MapFS{"CODEOWNERS": {Data: []byte("apps/ @acme/web\n#" + strings.Repeat("x", 70_000) + "\napps/web/prod/ @acme/sre\n")}}, "line 2 is longer than"},
		"many rules":   {fstest.MapFS{"CODEOWNERS": {Data: []byte(strings.Repeat("a* @b\n", maxOwnerRules+1))}}, "5001 rules"},
		"of Gitea":     {fstest.MapFS{".gitea/CODEOWNERS": {Data: []byte("* @a")}}, "has no CODEOWNERS (.github/CODEOWNERS,"},
		"of Forgejo":   {fstest.MapFS{".forgejo/CODEOWNERS": {Data: []byte("* @a")}}, "has no CODEOWNERS (.github/CODEOWNERS,"},
		"a long error": {fstest.MapFS{"CODEOWNERS": {Data: []byte("* " + strings.Repeat("x", 5000))}}, "line 1"},
	} {
		_, err := readCodeowners(c.files, "github")
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", name, err)
		}
		if name == "none" && !errors.Is(err, errNoCodeowners) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFindOwnersOfGitea holds what Gitea's documentation says of its file: regular
// expressions for whole paths, a ! for all but those, escapes, and that every rule which
// matches is about a file.
func TestFindOwnersOfGitea(t *testing.T) {
	file := `# who looks after what
.*\\.go @ada @grace # This is comment
apps/.*/prod/.*	@acme/sre
!apps/.* linus
docs/(aws|azure)/[^/]*\\.md @ken
path\ with\#space/.* @ken
apps/.*/prod/k\\.yaml @acme/sre
ab|cd @ken
`
	rules, err := readCodeowners(fstest.MapFS{"docs/CODEOWNERS": {Data: []byte(file)}, ".github/CODEOWNERS": {Data: []byte("* @nobody")}}, giteaForge)
	if err != nil {
		t.Fatal(err)
	}
	if forgejo, err := readCodeowners(fstest.MapFS{".forgejo/CODEOWNERS": {Data: []byte(file)}}, giteaForge); err != nil || len(forgejo.rules) != len(rules.rules) {
		t.Errorf("in .forgejo/ are %d rules, %v", len(forgejo.rules), err)
	}
	for path, want := range map[string][][]string{
		"apps/web/prod/k.yaml": {{"acme/sre"}},
		"apps/web/prod/x.go":   {{"acme/sre"}, {"ada", "grace"}},
		"apps/web/qa/k.yaml":   {nil},
		"x/apps/web/prod/k":    {{"linus"}},
		"docs/aws/a.md":        {{"ken"}, {"linus"}},
		"docs/aws/b/a.md":      {{"linus"}},
		"path with#space/a":    {{"ken"}, {"linus"}},
		"abacus":               {{"ken"}, {"linus"}}, // ^ab is one of the two
	} {
		got, err := rules.findOwners([]string{path})
		var owners [][]string
		for _, f := range got {
			owners = append(owners, f.Owners)
		}
		if diff := cmp.Diff(want, owners); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", path, err, diff)
		}
	}
	for text, want := range map[string]string{
		"a(b @ada": "line 1: its regular expression", "\n(?!a) @ada": "line 2: its regular expression", "a.*": "line 1: it names no owner", "a @a/b/c": "neither an account nor a team", "a @": "neither an account",
		"(((a{1,10}){1,10}){1,10}){1,10} @ada": "expression", ".{900}.{900}.{900} @ada": "too large",
	} {
		if _, err := parseCodeowners([]byte(text), giteaForge); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestManyOwnerRules holds that no file and no pull request makes the look-up long.
func TestManyOwnerRules(t *testing.T) {
	rules, err := parseCodeowners([]byte(strings.Repeat("a* @b\n", maxOwnerRules)), "")
	if err != nil {
		t.Fatal(err)
	}
	paths := make([]string, maxOwnerMatches/maxOwnerRules+1)
	if _, err := rules.findOwners(paths[1:]); err != nil {
		t.Error(err)
	}
	if _, err := rules.findOwners(paths); err == nil || !strings.Contains(err.Error(), "comparisons") {
		t.Errorf("%d files: %v", len(paths), err)
	}
}

func FuzzCodeowners(f *testing.F) {
	f.Add([]byte(ownersFile), "apps/web/qa/k.yaml", false)
	f.Add([]byte("[a @x\n\\# @y\n** @z\n/ @a\n! @b"), "a/../b", false)
	f.Add([]byte("!a.*|\\# @y\n.*\\\\.go @acme/sre ken\\"), "a/../b.go", true)
	f.Fuzz(func(t *testing.T, raw []byte, path string, gitea bool) {
		forgeType := map[bool]string{true: giteaForge}[gitea]
		rules, err := parseCodeowners(raw, forgeType)
		if err != nil {
			return
		}
		files, err := rules.findOwners([]string{path})
		if err == nil && (len(files) == 0 || len(files) > 1 && !gitea || files[0].Path != path || len(files[0].Owners) > maxFileOwners) {
			t.Errorf("%+v", files)
		}
	})
}

// TestGitLabCodeowners isn't read as GitHub's, which would take its sections for rules.
func TestGitLabCodeowners(t *testing.T) {
	_, err := readCodeowners(fstest.MapFS{".gitlab/CODEOWNERS": {Data: []byte("[Database][2] @dba\ndb/\n")}}, gitlabForge)
	if err == nil || !strings.Contains(err.Error(), "aren't read yet") {
		t.Errorf("got %v", err)
	}
}
