package git

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestPush(t *testing.T) {
	t.Parallel()
	const nothing = ""
	// The commits: base, and a, b, c on top of it. now is what the remote's
	// branch is when the push comes, and the mirror doesn't know.
	for name, tc := range map[string]struct {
		now, old, new string
		kind          error // nil: the remote must be as new says
	}{
		"create":                            {now: nothing, old: nothing, new: "a"},
		"create what is there already":      {now: "a", old: nothing, new: "a"},
		"create where something else is":    {now: "b", old: nothing, new: "a", kind: ErrLeaseLost},
		"update":                            {now: "base", old: "base", new: "a"},
		"replace, not fast-forward":         {now: "a", old: "a", new: "b"},
		"update what was updated already":   {now: "a", old: "base", new: "a"},
		"update what has moved":             {now: "c", old: "base", new: "a", kind: ErrLeaseLost},
		"update what was deleted":           {now: nothing, old: "base", new: "a", kind: ErrLeaseLost},
		"delete":                            {now: "a", old: "a", new: nothing},
		"delete what is gone":               {now: nothing, old: "a", new: nothing},
		"delete what has moved":             {now: "b", old: "a", new: nothing, kind: ErrLeaseLost},
		"delete what never was":             {now: nothing, old: nothing, new: nothing},
		"delete what must not exist, it is": {now: "b", old: nothing, new: nothing, kind: ErrLeaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			o := newOrigin(t)
			shas := map[string]string{"": "", "base": o.commit("main", "Base", map[string]string{"f": "0"})}
			for _, c := range []string{"a", "b", "c"} {
				shas[c] = o.commit(c, c, map[string]string{"f": c})
				git(t, o.work, "reset", "--quiet", "--hard", shas["base"])
			}
			const branch, ref = "liftlock/x", "refs/heads/liftlock/x"
			var hooks []string
			m := open(t, Options{
				URL:        o.url(),
				BeforePush: func(ref string) { hooks = append(hooks, "before "+ref) },
				AfterPush:  func(ref string) { hooks = append(hooks, "after "+ref) },
			})
			mustFetch(t, m)
			if tc.now != nothing {
				git(t, o.bare, "update-ref", ref, shas[tc.now])
			}
			err := m.Push(ctx, PushSpec{Branch: branch, New: shas[tc.new], Old: shas[tc.old]})
			remote := git(t, o.bare, "for-each-ref", "--format=%(objectname)", ref)
			wantHooks := []string{"before " + ref, "after " + ref}
			if tc.kind != nil {
				if !errors.Is(err, tc.kind) {
					t.Fatalf("got %v, want %v", err, tc.kind)
				}
				if remote != shas[tc.now] {
					t.Errorf("the remote was changed to %q", remote)
				}
				wantHooks = wantHooks[:1]
			} else {
				if err != nil {
					t.Fatal(err)
				}
				if remote != shas[tc.new] {
					t.Errorf("the remote is at %q", remote)
				}
				sha, ok, err := m.Head(ctx, branch)
				if sha != shas[tc.new] || ok != (tc.new != nothing) || err != nil {
					t.Errorf("the mirror's own branch: %q %v %v", sha, ok, err)
				}
				if c := mustFetch(t, m); len(c) != 0 {
					t.Errorf("the next fetch finds news: %v", c)
				}
			}
			if !reflect.DeepEqual(hooks, wantHooks) {
				t.Errorf("hooks: %v", hooks)
			}
		})
	}
}

func TestPushThatTheRemoteRefuses(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.commit("main", "Base", map[string]string{"f": "0"})
	hook := "#!/bin/sh\necho 'main is protected by policy 7' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(o.bare, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	err := m.Push(t.Context(), PushSpec{Branch: "x", New: sha})
	if !errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), "main is protected by policy 7") || !strings.Contains(err.Error(), "push branch x to file://") {
		t.Errorf("got %v", err)
	}
}

func TestPushRefusesInvalidSpecs(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	sha := o.commit("main", "Base", map[string]string{"f": "0"})
	m := open(t, Options{URL: o.url()})
	mustFetch(t, m)
	for name, tc := range map[string]struct {
		spec PushSpec
		kind error
	}{
		"no branch":       {PushSpec{New: sha}, ErrInvalid},
		"an option":       {PushSpec{Branch: "--mirror", New: sha}, ErrInvalid},
		"a refspec":       {PushSpec{Branch: "a:b", New: sha}, ErrInvalid},
		"a name":          {PushSpec{Branch: "a", New: "main"}, ErrInvalid},
		"an odd lease":    {PushSpec{Branch: "a", New: sha, Old: "main"}, ErrInvalid},
		"unknown commit":  {PushSpec{Branch: "a", New: strings.Repeat("1", 40)}, ErrUnknownCommit},
		"not of a commit": {PushSpec{Branch: "a", New: git(t, o.work, "rev-parse", "HEAD^{tree}")}, ErrUnknownCommit},
	} {
		if err := m.Push(t.Context(), tc.spec); !errors.Is(err, tc.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
