package isolation_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/manifest/deps"
	"github.com/liftlock/liftlock/internal/manifest/render"
)

var long = flag.Bool("long", false, "run the property test with 2,000 cases")

func TestMain(m *testing.M) {
	flag.Parse()
	if given := slices.ContainsFunc(os.Args, func(a string) bool { return bytes.Contains([]byte(a), []byte("rapid.checks")) }); !given {
		n := "80"
		if *long {
			n = "2000"
		}
		if err := flag.Set("rapid.checks", n); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestOneEnvironment holds that no edit which is let through changes a target
// outside its environment, and that most that could be made safely are made.
// Both are told apart by resolving and rendering everything before and after,
// without remembering anything.
func TestOneEnvironment(t *testing.T) {
	var made, safe, unsafe int
	rapid.Check(t, func(t *rapid.T) {
		w := drawRepository(t)
		resolver := appset.New(appset.Options{})
		renderer := isolation.New(render.MemoOptions{Bytes: 1 << 20})
		w.whole, w.known = w.resolve(t, resolver, w.files, true), w.resolve(t, resolver, w.files, false)
		before := w.whole
		rendered := renderAll(t, w.files, before)
		for range 2 {
			component, env := rapid.SampledFrom(w.components).Draw(t, "component"), rapid.SampledFrom(w.environments).Draw(t, "environment")
			edits := w.carry(t, before, component, env)
			if len(edits) == 0 {
				continue
			}
			inside := func(t *appset.Target) bool { return t.Component == component && t.Environment == env }
			tree := fieldedit.Apply(w.files, edits)
			after := w.resolve(t, resolver, tree, true)
			strays := differing(before, after, rendered, renderAll(t, tree, after), inside)

			why := w.proveIsolation(t, resolver, renderer, edits, inside)
			switch {
			case len(strays) > 0 && why == "":
				t.Fatalf("an edit for %s in %s was let through that changes %v:\n%s", component, env, strays, show(edits))
			case len(strays) > 0:
				unsafe++
			default:
				safe++
				if why == "" {
					made++
				}
			}
		}
	})
	t.Logf("%d carries could be made safely, %d of them were made; %d could not", safe, made, unsafe)
	if made*100 < safe*80 {
		t.Errorf("only %d of %d carries that could be made safely are made", made, safe)
	}
	if !t.Failed() && (safe < 10 || unsafe < 5) {
		t.Errorf("the fleets are too tame: %d safe carries, %d that are not", safe, unsafe)
	}
}

// proveIsolation asks the package as the engine does.
func (rr *randomRepository) proveIsolation(t *rapid.T, resolver *appset.Resolver, renderer *isolation.Renderer, edits []fieldedit.Edit, inside func(*appset.Target) bool) string {
	var files []string
	created := false
	for _, e := range edits {
		files = append(files, e.File)
		created = created || e.Created || e.Deleted
	}
	whole := isolation.ChangesGenerated(rr.known.Targets, files, created)
	readers := make([]deps.Reader, len(rr.known.Targets))
	for i := range rr.known.Targets {
		readers[i] = evaluate.Reader(&rr.known.Targets[i])
	}
	ix, err := deps.Build(context.Background(), rr.files, readers)
	if err != nil {
		t.Fatal(err)
	}
	tree, before := fieldedit.Apply(rr.files, edits), rr.known
	if whole {
		before = rr.whole
	}
	why, err := renderer.WhyNotIsolated(context.Background(), &isolation.Edit{
		Before: isolation.Resolution{Tree: rr.files, ID: identities(rr.files), Targets: before.Targets},
		After:  isolation.Resolution{Tree: tree, ID: identities(tree), Targets: rr.resolve(t, resolver, tree, whole).Targets},
		Files:  files, FilesByTarget: ix.AffectedReaders(files), MayChange: inside, Revision: "c0ffee",
	})
	if err != nil {
		t.Fatal(err)
	}
	return why
}

// identities tell files and folders by their content.
func identities(tree fs.FS) render.ContentID {
	var id func(name string) (string, error)
	id = func(name string) (string, error) {
		info, err := fs.Stat(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		h := sha256.New()
		if !info.IsDir() {
			data, err := fs.ReadFile(tree, name)
			h.Write(data)
			return hex.EncodeToString(h.Sum(nil)), err
		}
		entries, err := fs.ReadDir(tree, name)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			in, err := id(path.Join(name, e.Name()))
			if err != nil {
				return "", err
			}
			fmt.Fprintf(h, "%q %s\n", e.Name(), in)
		}
		return "tree " + hex.EncodeToString(h.Sum(nil)), nil
	}
	return id
}

// renderAll renders every target of a tree, by ID.
func renderAll(t *rapid.T, tree fs.FS, f *appset.TargetSet) map[string]string {
	out := map[string]string{}
	for i := range f.Targets {
		target := &f.Targets[i]
		in := render.Input{Application: target.Name, Namespace: target.DestNS, Revision: "c0ffee", ValueFilesAs: string(target.ValueFiles)}
		for _, s := range target.Sources {
			in.Sources = append(in.Sources, render.Source{RepoURL: s.RepoURL, Path: s.Path, Chart: s.Chart, TargetRevision: s.TargetRevision, Ref: s.Ref, InTree: s.Here, Options: s.Options})
		}
		m, err := render.Render(context.Background(), tree, in)
		if err != nil {
			t.Fatalf("%s: %v", target.Name, err)
		}
		out[target.ID()] = m.Digest
	}
	return out
}

// differing names the targets outside whose Applications or manifests differ.
func differing(before, after *appset.TargetSet, was, is map[string]string, inside func(*appset.Target) bool) []string {
	var out []string
	now := map[string]*appset.Target{}
	for i := range after.Targets {
		now[after.Targets[i].ID()] = &after.Targets[i]
	}
	for i := range before.Targets {
		t := &before.Targets[i]
		a := now[t.ID()]
		delete(now, t.ID())
		if !inside(t) && (a == nil || !bytes.Equal(t.Application, a.Application) || was[t.ID()] != is[t.ID()]) {
			out = append(out, t.Name)
		}
	}
	for _, t := range now {
		if !inside(t) {
			out = append(out, t.Name)
		}
	}
	return out
}

func show(edits []fieldedit.Edit) string {
	var b bytes.Buffer
	for _, e := range edits {
		fmt.Fprintf(&b, "--- %s\n%s\n+++\n%s\n", e.File, e.Before, e.After)
	}
	return b.String()
}
