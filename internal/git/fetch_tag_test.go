package git

import (
	"errors"
	"slices"
	"testing"
)

// TestFetchTag brings what light and annotated tags name, also once they were moved.
func TestFetchTag(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	first := o.commit("main", "One", map[string]string{"a": "1"})
	git(t, o.work, "checkout", "--quiet", "--detach")
	git(t, o.work, "commit", "--quiet", "--allow-empty", "--message=Off every branch")
	second := git(t, o.work, "rev-parse", "HEAD")
	git(t, o.work, "tag", "light", first)
	git(t, o.work, "tag", "--annotate", "--message=one", "annotated", second)
	git(t, o.work, "tag", "--annotate", "--message=two", "of/a/tag", "annotated")
	git(t, o.work, "tag", "tree", "HEAD^{tree}")
	git(t, o.work, "push", "--quiet", "--tags", "origin")
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	for tag, want := range map[string]string{"light": first, "annotated": second, "of/a/tag": second} {
		sha, err := m.FetchTag(t.Context(), tag)
		if err != nil || sha != want {
			t.Errorf("%s: %s, %v; want %s", tag, sha, err, want)
		}
	}
	if _, err := m.Tree(second).ReadFile("a"); err != nil {
		t.Errorf("the files of what is on no branch: %v", err)
	}
	git(t, o.work, "tag", "--force", "light", second)
	git(t, o.work, "push", "--quiet", "--force", "--tags", "origin")
	if sha, err := m.FetchTag(t.Context(), "light"); sha != second {
		t.Errorf("a tag that was moved: %s, %v", sha, err)
	}
	if tags, err := m.RemoteTags(t.Context()); err != nil || !slices.Equal(tags, []string{"annotated", "light", "of/a/tag", "tree"}) {
		t.Errorf("the tags are %q, %v", tags, err)
	}
	for tag, want := range map[string]error{"tree": ErrUnknownCommit, "none": ErrRemote, "-x": ErrInvalid} {
		if _, err := m.FetchTag(t.Context(), tag); !errors.Is(err, want) {
			t.Errorf("%s: %v; want %v", tag, err, want)
		}
	}
}
