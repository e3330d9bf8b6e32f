package live

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
)

// hydratorFile is where Argo CD's source hydrator writes what a commit was made
// from: in each hydrated folder and in the root.
const hydratorFile = "hydrator.metadata"

// maxHydratorFile bounds it, in bytes; it holds a commit's name and the commands
// that rendered it.
const maxHydratorFile = 1 << 20

// hydrationTimeout is how long it may take to find out whether hydrated manifests have a
// release.
const hydrationTimeout = 20 * time.Second

// commitName is what a commit may be called that others say hydrated manifests were made from.
var commitName = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// hydratedRelation says how a commit that the source hydrator wrote stands to what landed: as the
// commit that it was made from does, where its manifests show it. why says what a commit lacks that
// isn't known to have the landed release; empty where no more is known.
func (ga *Gatherer) hydratedRelation(l *targetLook, at *branch.ResolvedEnv, t *appset.Target, app *verification.App, hydrated string,
	isChild bool) (rel verification.Relation, why string) {
	into := ga.hydratedRepository(l.c.Snapshot.Repo, app)
	if into == nil {
		return verification.Unresolved, fmt.Sprintf("it is hydrated into %s, which is none of the repositories in the server's file: add "+
			"it to repositories there", app.HydratedRepo)
	}
	if ok, err := into.Mirror.Has(l.ctx, hydrated); err != nil || !ok {
		l.out.requestFetch(into, hydrated)
		return verification.Unresolved, ""
	}
	seen := app
	if isChild {
		// What Argo CD alone says is only believed where the manifests can show it. A commit
		// counts as compared before it is hydrated, and also when that fails.
		unclaimed := *app
		unclaimed.HydratedFrom = nil
		if app.Hydration == nil || app.Hydration.Phase != "Hydrated" {
			unclaimed.ComparedDry = ""
		}
		seen = &unclaimed
	}
	claims := hydrationClaims(l.ctx, into, l.c.Snapshot.Repo.URLs, seen, hydrated)
	if len(claims) == 0 {
		return verification.Unresolved, fmt.Sprintf("nothing says which commit the hydrated %s was made from", wording.Short(hydrated))
	}
	rel = verification.Before
	for _, dry := range claims {
		switch of := ga.revisionRelation(l, at, dry); {
		case of == verification.Holds:
			missing := ""
			if !isChild { // what such an Application reads isn't known
				missing = ga.whyNotHydrated(l, t, app, into, hydrated, dry)
			}
			if missing == "" {
				return verification.Holds, ""
			}
			rel, why = verification.Unresolved, missing
		case of == verification.Superseded, of == verification.Unresolved && rel == verification.Before:
			rel, why = of, ""
		}
	}
	if h := app.Hydration; rel == verification.Before && h != nil && h.Phase == "Hydrated" {
		// Its note on a commit that changed no manifest is on no branch.
		l.out.requestFetch(into, fmt.Sprintf("hydrated %s %s %s", hydrated, h.Dry, app.ComparedDry))
	}
	return rel, why
}

// hydratedRepository is the repository that an Application's manifests are hydrated into; nil
// when it is none of those that are tracked.
func (ga *Gatherer) hydratedRepository(own *branch.Repository, app *verification.App) *branch.Repository {
	isOf := func(r *branch.Repository) bool {
		return slices.ContainsFunc(r.URLs, func(url string) bool { return appset.SameRepository(url, app.HydratedRepo) })
	}
	if app.HydratedRepo == "" || isOf(own) {
		return own
	}
	all := ga.Repos.All()
	if i := slices.IndexFunc(all, isOf); i >= 0 {
		return all[i]
	}
	return nil
}

// hydrationClaims are the commits of the repository with these addresses from which a hydrated one
// is said to be made. They come from its note, from Argo CD's status and from the file in its tree.
// The commit that the hydrator compared last counts too, which may have changed no manifest. Argo
// CD has said so of commits that it didn't write (argo-cd#25190).
func hydrationClaims(ctx context.Context, into *branch.Repository, urls []string, app *verification.App, hydrated string) []string {
	var out []string
	add := func(dry string) {
		if commitName.MatchString(dry) && !slices.Contains(out, dry) {
			out = append(out, dry)
		}
	}
	if note, ok, err := into.Mirror.HydratorNote(ctx, hydrated); err == nil && ok {
		add(decodeHydratorFile(note, urls))
	}
	for _, h := range app.HydratedFrom {
		if h.Hydrated == hydrated {
			add(h.Dry)
		}
	}
	add(hydratedFrom(into.Mirror.Tree(hydrated), app.HydratedPath, urls))
	if slices.Contains(app.Revisions, hydrated) {
		add(app.ComparedDry)
	}
	return out
}

// hydratedFrom is the commit that a hydrated tree was made from, as the tree says in the folder
// that the target deploys, or, where that says nothing, in its root. It is empty when it says
// nothing about this repository.
func hydratedFrom(tree fs.FS, folder string, urls []string) string {
	for _, dir := range []string{path.Clean(folder), "."} {
		info, err := fs.Stat(tree, path.Join(dir, hydratorFile))
		if err != nil {
			continue
		}
		if info.Size() > maxHydratorFile {
			return ""
		}
		if raw, err := fs.ReadFile(tree, path.Join(dir, hydratorFile)); err == nil {
			return decodeHydratorFile(raw, urls)
		}
	}
	return ""
}

// decodeHydratorFile reads what the hydrator says of a commit, in a file or a note: which one
// of the repository with these addresses it was made from. Empty: it doesn't say, or it was
// made from another repository.
func decodeHydratorFile(raw []byte, urls []string) string {
	var meta struct {
		RepoURL string `json:"repoURL"`
		DrySHA  string `json:"drySha"`
	}
	ours := func(url string) bool { return appset.SameRepository(url, meta.RepoURL) }
	if len(raw) > maxHydratorFile || json.Unmarshal(raw, &meta) != nil || meta.RepoURL != "" && !slices.ContainsFunc(urls, ours) {
		return ""
	}
	return meta.DrySHA
}

// whyNotHydrated says why the manifests of a hydrated commit aren't known to have the landed
// release, though they are said to be made from a commit that has it. It is empty when they are
// known to.
func (ga *Gatherer) whyNotHydrated(l *targetLook, t *appset.Target, app *verification.App, into *branch.Repository, hydrated,
	dry string) string {
	if l.env.Landed.Value.By == promotion.ByBaseline {
		return "" // nothing hangs on it
	}
	key, err := hashHydration(l, t, app, into, hydrated, dry)
	if err != nil {
		return err.Error()
	}
	if known, ok := ga.Hydrated.Get(key); ok {
		return known
	}
	ctx, cancel := context.WithTimeout(l.ctx, hydrationTimeout)
	defer cancel()
	why, err := ga.compareHydrated(ctx, l, t, app, into, hydrated, dry)
	if err != nil {
		l.out.RetryAt = branch.Earliest(l.out.RetryAt, l.c.Now.Add(treesRetry))
		return fmt.Sprintf("whether the hydrated manifests have the release can't be told: %v", err)
	}
	ga.Hydrated.Put(key, why)
	return why
}

// hashHydration writes down what it depends on whether hydrated manifests have a release.
func hashHydration(l *targetLook, t *appset.Target, app *verification.App, into *branch.Repository, hydrated,
	dry string) ([sha256.Size]byte, error) {
	landed, options := l.env.Landed.Value, []json.RawMessage{}
	for i := range t.Sources {
		options = append(options, t.Sources[i].Options)
	}
	branches := l.c.Snapshot.OtherBranches(branch.Head{Branch: l.env.Branch, Commit: landed.Commit})
	raw, err := json.Marshal([]any{l.c.Snapshot.Repo.ID, into.ID, hydrated, app.HydratedPath, dry, landed.Parent, landed.Commit,
		l.env.Release.Value.ID, t.ID(), t.DestNS, t.Sources, options, branches})
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("write down what hydrated manifests are compared by: %w", err)
	}
	return sha256.Sum256(raw), nil
}

// compareHydrated renders what the hydrator should have, and looks whether what landed changed
// anything in which its manifests differ from that. Where it can't be rendered here, the
// release's values have to be in them. The error is for a context that ended.
func (ga *Gatherer) compareHydrated(ctx context.Context, l *targetLook, t *appset.Target, app *verification.App, into *branch.Repository,
	hydrated, dry string) (string, error) {
	own, landed := l.c.Snapshot.Repo, l.env.Landed.Value
	written, why, err := ga.Renderer.RenderTarget(ctx, l.treeAt(into, hydrated), &appset.Target{Name: t.Name, DestNS: t.DestNS,
		Sources: []appset.Source{{Path: app.HydratedPath, Here: true}}}, hydrated)
	if err != nil || why != "" {
		return prefixed("the hydrated manifests can't be read: ", why), err
	}
	wanted, why, err := ga.Renderer.RenderTarget(ctx, l.treeAt(own, dry), t, dry)
	if err != nil {
		return "", err
	}
	if why != "" {
		return whyValuesMissing(written, l.c.Contents[l.env.Release.Value.ID], why), nil
	}
	differs := render.Diff(wanted, written)
	if differs.Empty() {
		return "", nil
	}
	brought, err := ga.renderLanded(ctx, l, t, landed)
	if err != nil {
		return "", err
	}
	if at := differs.FirstShared(brought); at != "" {
		return fmt.Sprintf("the hydrated manifests at %s don't have what %s renders to: %s differs", wording.Short(hydrated),
			wording.Short(dry), at), nil
	}
	return "", nil
}

// renderLanded is what a commit that landed changed in a target's manifests; nil where that
// can't be told, so that it may be anything.
func (ga *Gatherer) renderLanded(ctx context.Context, l *targetLook, t *appset.Target,
	landed promotion.Landed) (*render.Changes, error) {
	before, after, err := ga.renderBeforeAndAfter(ctx, l, t, landed)
	if err != nil || after == nil {
		return nil, err
	}
	return render.Diff(before, after), nil
}

// treeAt is a repository at a commit, with the branches that sources may be at.
func (t *targetLook) treeAt(r *branch.Repository, commit string) isolation.Resolution {
	var others map[string]string
	if r == t.c.Snapshot.Repo {
		others = t.c.Snapshot.OtherCommits(branch.Head{Branch: t.env.Branch, Commit: commit})
	}
	return isolation.ResolutionAt(r.Mirror.Tree, commit, others)
}

func prefixed(prefix, why string) string {
	if why == "" {
		return ""
	}
	return prefix + why
}
