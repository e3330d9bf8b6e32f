package facts

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

// TestFindOwners holds that the last rule that matches counts, also one that names nobody.
func TestFindOwners(t *testing.T) {
	rules, err := readCodeowners(fstest.MapFS{"CODEOWNERS": {Data: []byte("* @nobody")}, ".github/CODEOWNERS": {Data: []byte(ownersFile)}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := findOwners(rules, []string{"x", "apps/web/prod/k.yaml", "apps/web/dev/k.yaml", "docs/a/b.md", "apps/web/qa/k.yaml", "apps/web/qa/deep/k.yaml"})
	want := []policies.OwnedFile{{Path: "x", Owners: []string{"acme/sre"}}, {Path: "apps/web/prod/k.yaml", Owners: []string{"grace", "acme/web"}}, {Path: "apps/web/dev/k.yaml"},
		{Path: "docs/a/b.md", Owners: []string{"docs@example.com"}}, {Path: "apps/web/qa/k.yaml", Owners: []string{"linus"}}, {Path: "apps/web/qa/deep/k.yaml", Owners: []string{"grace", "acme/web"}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := findOwners(rules, make([]string, maxOwnedFiles+1)); err == nil {
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
		"a long error": {fstest.MapFS{"CODEOWNERS": {Data: []byte("* " + strings.Repeat("x", 5000))}}, "line 1"},
	} {
		_, err := readCodeowners(c.files)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", name, err)
		}
		if name == "none" && !errors.Is(err, errNoCodeowners) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCodeowners(f *testing.F) {
	f.Add([]byte(ownersFile), "apps/web/qa/k.yaml")
	f.Add([]byte("[a @x\n\\# @y\n** @z\n/ @a\n! @b"), "a/../b")
	f.Fuzz(func(t *testing.T, raw []byte, path string) {
		rules, err := parseCodeowners(raw)
		if err != nil {
			return
		}
		files, err := findOwners(rules, []string{path})
		if err == nil && (len(files) != 1 || files[0].Path != path || len(files[0].Owners) > maxFileOwners) {
			t.Errorf("%+v", files)
		}
	})
}
