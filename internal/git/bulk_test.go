package git

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// TestBulk holds that listing and reading in one go say what the file system
// says, for links, submodules and large files too.
func TestBulk(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := newSpecialTree(t, o)
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	tree := m.Tree(sha)
	var paths, ids []string
	modes := map[string]fs.FileMode{}
	err := tree.List(t.Context(), func(path string, mode fs.FileMode, id string) error {
		paths = append(paths, path)
		modes[path] = mode.Type()
		if mode.Type() != fs.ModeIrregular {
			ids = append(ids, id)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(paths) || modes["sub"] != fs.ModeIrregular || modes["loop"] != fs.ModeSymlink || modes["dir/file"] != 0 {
		t.Errorf("%q, %v", paths, modes)
	}
	var got [][]byte
	big := 0
	err = tree.ReadBlobs(t.Context(), ids, MaxFileSize-1, func(i int, data []byte, err error) error {
		if i != len(got) {
			t.Fatalf("answer %d comes as number %d", i, len(got))
		}
		if errors.Is(err, ErrTooLarge) {
			big++
		} else if err != nil {
			return err
		}
		got = append(got, data)
		return nil
	})
	if err != nil || len(got) != len(ids) || big != 2 {
		t.Fatalf("%d of %d answers, %d too large, %v", len(got), len(ids), big, err)
	}
	i := 0
	for _, path := range paths {
		switch modes[path] {
		case fs.ModeIrregular:
			continue
		case fs.ModeSymlink:
			if want, err := tree.ReadLink(path); err != nil || want != string(got[i]) {
				t.Errorf("%s leads to %q, not %q; %v", path, want, got[i], err)
			}
		default:
			if want, err := tree.ReadFile(path); got[i] != nil && (err != nil || string(want) != string(got[i])) {
				t.Errorf("%s is %q, not %q; %v", path, want, got[i], err)
			}
		}
		i++
	}
}

func TestBulkErrors(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.commit("main", "One", map[string]string{"a": "1", "b": "2"})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	tree := m.Tree(sha)
	var ids []string
	nothing := func(string, fs.FileMode, string) error { return nil }
	if err := tree.List(t.Context(), func(_ string, _ fs.FileMode, id string) error { ids = append(ids, id); return nil }); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	read := func(ctx context.Context, ids []string, do func(int, []byte, error) error) error {
		return tree.ReadBlobs(ctx, ids, 10, do)
	}
	ignore := func(int, []byte, error) error { return nil }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	cases := []struct {
		name string
		err  error
		want error
	}{
		{"a commit that is not there", m.Tree(strings.Repeat("1", 40)).List(t.Context(), nothing), ErrUnknownCommit},
		{"the caller stops the listing", tree.List(t.Context(), func(string, fs.FileMode, string) error { return stop }), stop},
		{"the caller stops the reading", read(t.Context(), ids, func(int, []byte, error) error { return stop }), stop},
		{"a context that ended", read(ended, ids, ignore), context.Canceled},
		{"what is no id", read(t.Context(), []string{"HEAD"}, ignore), ErrInvalid},
		{"a content that is not there", read(t.Context(), []string{ids[0], strings.Repeat("2", 40)}, ignore), ErrCorrupt},
		{"nothing", read(t.Context(), nil, ignore), nil},
	}
	for _, c := range cases {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
}
