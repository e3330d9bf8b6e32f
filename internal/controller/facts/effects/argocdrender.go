package effects

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/appset/isolation"
	"github.com/liftlock/liftlock/internal/argocd"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/fieldedit"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// maxRemoteTargets is how many targets of one change an Argo CD is asked to render.
	maxRemoteTargets = 50
	// maxRemoteRenderings bounds the targets that are being rendered, or wait for it.
	maxRemoteRenderings = 500
	// remoteTimeout bounds the rendering of one target on both sides, with the wait for its turn.
	remoteTimeout = 10 * time.Minute
	// RemoteLook is how long after a look at a change that is still being rendered the next
	// one comes.
	RemoteLook = 5 * time.Second
	// maxRemoteChanges bounds the remembered renderings, in bytes, and maxRemoteChange one of them.
	// People read no more of one, and ten changes with as many targets as they may have find room.
	maxRemoteChanges = 32 << 20
	maxRemoteChange  = 64 << 10
	// maxRemoteAgain is how often a forgotten rendering is made again within remoteAgainTime: where
	// there is too little room for all, it would be made again for ever.
	maxRemoteAgain  = 3
	remoteAgainTime = time.Hour
	// maxRemoteWhy bounds the words of an Argo CD.
	maxRemoteWhy = 500

	// ReaderPatience is how long somebody who asks for a difference waits for Argo CD.
	ReaderPatience = 20 * time.Second
)

// Commits are the two that are compared. Head is empty while it isn't pushed: no Argo CD
// can render it.
type Commits struct{ Base, Head string }

// argocdRenderer has Argo CDs render what our pull requests change. A stranger's files never get
// there: a plugin would run them.
type argocdRenderer struct {
	argocds *branch.ArgoCDs
	now     func() time.Time
	results *cache.Cache[remoteKey, remoteResult]
	begun   *cache.Cache[remoteKey, remoteBegun]
	// onDisagree is told of a target that an Argo CD renders otherwise than it is here, once for
	// two commits; nil: nothing is.
	onDisagree func(argocd, target, how string)

	mu      sync.Mutex
	running map[remoteKey]*remoteJob
}

// remoteJob is a rendering that is under way.
type remoteJob struct {
	done   chan struct{} // closed when result is there
	result remoteResult
}

// remoteBegun is how often something was rendered of which no result was known.
type remoteBegun struct {
	times int
	since time.Time
}

// remoteKey is everything that a result depends on, as far as it is known here.
type remoteKey [sha256.Size]byte

// remoteResult is what a change does to a target, by Argo CD.
type remoteResult struct {
	changes *render.Changes // nil: why says why it isn't known
	differs string          // how they part from what was rendered here; empty: not, or that wasn't rendered
	why     string
	retry   retryState // of one that failed
	lasting bool       // it failed, and would again: the commits stay what they are
	size    int
}

func newArgoCDRenderer(argocds *branch.ArgoCDs, now func() time.Time, group *cache.Group) *argocdRenderer {
	return &argocdRenderer{argocds: argocds, now: now, running: map[remoteKey]*remoteJob{},
		begun: cache.New(group, cache.Options[remoteKey, remoteBegun]{Name: "argocd_renderings_begun", Entries: 20_000}),
		results: cache.New(group, cache.Options[remoteKey, remoteResult]{Name: "argocd_renderings", Entries: 10_000,
			Bytes: maxRemoteChanges,
			Size:  func(_ remoteKey, r remoteResult) int64 { return int64(200 + len(r.why) + r.size) }})}
}

// ShownEffects are Effects for people: where the server's file says so, as Argo CD renders the
// commits, which is waited for up to patience. pending says that some of it isn't there yet; the
// unit is then evaluated again soon. Decisions go by Effects.
func (ga *Gatherer) ShownEffects(ctx context.Context, c *branch.Basis, components []string, env string, at Commits,
	edits []fieldedit.Edit, patience time.Duration) (effects []isolation.Effect, pending bool, err error) {
	if effects, err = ga.ListEffects(ctx, c, components, env, at.Base, edits); err != nil {
		return nil, false, err
	}
	effects = slices.Clone(effects)
	ga.addIgnored(ctx, c, components, env, at.Base, edits, effects)
	effects, retries := ga.remote.replaceEffects(ctx, effects, at, patience)
	for _, r := range retries {
		c.ScheduleRetry(r.at())
		pending = pending || r.isPending()
	}
	return effects, pending, ctx.Err()
}

// Disagreements are the targets of effects that their Argo CDs render otherwise, as far as they have by now.
func (ga *Gatherer) Disagreements(ctx context.Context, c *branch.Basis, effects []isolation.Effect,
	at Commits) []promotion.Disagreement {
	var out []promotion.Disagreement
	if at.Base == "" || at.Head == "" {
		return nil
	}
	remote, retries := ga.remote.replaceEffects(ctx, effects, at, 0)
	for _, r := range retries {
		c.ScheduleRetry(r.at())
	}
	for i := range remote {
		if how := remote[i].Disagreement; how != "" {
			out = append(out, promotion.Disagreement{Target: remote[i].Target.Name, How: how})
		}
	}
	return out
}

// pendingTries marks a retry of what hasn't failed.
const pendingTries = -1

func (r retryState) isPending() bool { return r.tries == pendingTries }

// remoteRendering is one target on its way through an Argo CD.
type remoteRendering struct {
	key    remoteKey
	effect *isolation.Effect
	source branch.ManifestSource
	app    *verification.App
	at     Commits
	sets   [2][]string     // of revisions
	plain  bool            // see isPlain
	local  *render.Changes // as rendered here; nil: they weren't
	known  remoteResult
	job    *remoteJob // nil: there is nothing to wait for
}

// replaceEffects are effects as the Argo CDs of their targets render them, where they are to.
// The retries say when to look again.
func (a *argocdRenderer) replaceEffects(ctx context.Context, effects []isolation.Effect, at Commits,
	patience time.Duration) (out []isolation.Effect, retries []retryState) {
	out = slices.Clone(effects)
	var all []*remoteRendering
	requested := map[string]int{}
	for i := range out {
		e := &out[i]
		name := a.argocds.ArgoCDOf(&e.Target)
		argo := a.argocds.ByName[name]
		local := whyRenderedHere(e)
		switch {
		case argo.Manifests == nil && e.NeedsMore && argo.MayRender && local == "":
			e.Why += "; with render: argocd in the server's file its Argo CD is asked"
		case argo.Manifests == nil:
		case local != "" && e.NeedsMore:
			e.Why += "; its Argo CD isn't asked: " + local
		case local != "":
		case requested[name] == maxRemoteTargets:
			setWhy(e, fmt.Sprintf("Argo CD is asked about %d targets of one change at most", maxRemoteTargets))
		default:
			requested[name]++
			rendering, why := a.newRendering(e, argo, at)
			if why != "" {
				setWhy(e, why)
				continue
			}
			all = append(all, rendering)
		}
	}
	for _, p := range all {
		p.job = a.start(ctx, p)
	}
	over := time.NewTimer(patience)
	defer over.Stop()
	for _, p := range all {
		retries = append(retries, a.await(ctx, p, over))
	}
	return out, retries
}

// whyRenderedHere says why a target is rendered here, whatever the server's file says; empty
// when it need not be.
func whyRenderedHere(e *isolation.Effect) string {
	switch {
	case e.Spec:
		return "the Application itself changes, and Argo CD renders the one that runs"
	case e.Target.Hydration != nil:
		return "which of its branches Argo CD renders is another one from version to version"
	}
	return ""
}

// setWhy says that what happens to a target isn't known.
func setWhy(e *isolation.Effect, why string) {
	e.Changes, e.Affected, e.NeedsMore, e.Why = nil, nil, false, why
}

const (
	notRenderedYet   = "Argo CD is still rendering it"
	tooManyWait      = "too many targets wait for Argo CD already; it is asked later"
	notPushedYet     = "Argo CD is asked for it when the branch is there"
	noApplicationYet = "Argo CD doesn't have the Application yet"
	renderedTooOften = "Argo CD has rendered it, and there is no room to remember all that is looked at; it is asked again within the hour"
)

// newRendering prepares what an Argo CD is asked about a target; why says that it can't be.
func (a *argocdRenderer) newRendering(e *isolation.Effect, argo branch.ArgoCD, at Commits) (p *remoteRendering, why string) {
	t := &e.Target
	app, _ := argo.Apps.Get(t.Namespace, t.Name)
	if app == nil {
		if err := argo.Apps.Ready(); err != nil {
			return nil, "its Argo CD can't be reached"
		}
		return nil, noApplicationYet
	}
	if why = describeOtherSources(t.Sources, app.Sources); why != "" {
		return nil, why
	}
	// The API's list may have the revisions that a person had the Application rendered at.
	own := *app
	own.Sources = slices.Clone(app.Sources)
	for i, s := range t.Sources {
		own.Sources[i].TargetRevision = s.TargetRevision
	}
	app = &own
	p = &remoteRendering{effect: e, source: argo.Manifests, app: app, at: at, plain: isPlain(e, app.Sources), local: e.Changes}
	for i, commit := range []string{at.Base, at.Head} {
		for _, s := range t.Sources {
			revision := ""
			if s.Here {
				revision = commit
			}
			p.sets[i] = append(p.sets[i], revision)
		}
	}
	raw, err := json.Marshal([]any{app.ArgoCD, app.Namespace, app.Name, app.UID, app.Project, app.Destination, app.Sources, app.SourceList,
		p.sets, at, p.plain})
	if err != nil {
		return nil, err.Error()
	}
	p.key = sha256.Sum256(raw)
	return p, ""
}

// isPlain says that everything in a target's manifests is in the repository already: the files
// alone make them, and each source says that kustomize, Helm or nothing does. Where none is
// named Argo CD lets its plugins look first whether it is theirs, and what they, ksops or
// helm-secrets make has secrets in every kind of object.
func isPlain(e *isolation.Effect, running []verification.Source) bool {
	if e.NeedsMore || e.Changes == nil {
		return false
	}
	for i, s := range e.Target.Sources {
		if running[i].Options != argocd.OptionsOf(s.Options) {
			return false
		}
		switch {
		case s.Type == appset.Kustomize, s.Type == appset.Helm, s.Type == appset.Directory:
		case s.Type == appset.Detected && s.Ref != "" && s.Path == "" && s.Chart == "": // it makes nothing
		default:
			return false
		}
	}
	return true
}

// describeOtherSources says how an Application's sources are others than its target's, so
// that rendering it would say nothing about the target.
func describeOtherSources(want []appset.Source, has []verification.Source) string {
	const explanation = "the Application that runs has other sources than the one in Git, and Argo CD renders the one that runs"
	if len(want) != len(has) {
		return explanation
	}
	for i, s := range want {
		h := has[i]
		isOther := s.RepoURL != h.RepoURL || s.Path != h.Path || s.Chart != h.Chart || s.Ref != h.Ref
		followsOther := !s.Here && s.TargetRevision != h.TargetRevision
		if isOther || followsOther {
			return explanation
		}
	}
	return ""
}

// start lets a target be rendered, unless its result is known or on its way; nil when there
// is nothing to wait for.
func (a *argocdRenderer) start(ctx context.Context, p *remoteRendering) *remoteJob {
	known, ok := a.results.Get(p.key)
	if p.known = known; ok && !known.retry.isDue(a.now()) {
		return nil
	}
	if p.at.Head == "" {
		p.known = remoteResult{why: notPushedYet, retry: a.pendingRetry()}
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if job := a.running[p.key]; job != nil {
		return job
	}
	if len(a.running) >= maxRemoteRenderings {
		p.known = remoteResult{why: tooManyWait, retry: a.pendingRetry()}
		return nil
	}
	if !ok {
		if again := a.countBegun(p.key); !again.IsZero() {
			p.known = remoteResult{why: renderedTooOften, retry: retryState{tries: 1, retryAt: again}}
			return nil
		}
	}
	job := &remoteJob{done: make(chan struct{})}
	a.running[p.key] = job
	rendering := *p // the effect is its caller's, who may be gone by then
	rendering.effect = nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remoteTimeout)
	go func() {
		defer cancel()
		result := rendering.render(ctx)
		if result.why != "" && !result.lasting {
			result.retry = known.retry.nextRetry(a.now())
		}
		a.results.Put(rendering.key, result)
		if result.differs != "" && a.onDisagree != nil {
			a.onDisagree(rendering.app.ArgoCD, rendering.app.Name, result.differs)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.running, rendering.key)
		job.result = result
		close(job.done)
	}()
	return job
}

// countBegun counts a rendering of which no result is known; where that was often enough, it
// gives when it may be rendered again instead. r.mu is held.
func (a *argocdRenderer) countBegun(key remoteKey) (again time.Time) {
	now := a.now()
	b, _ := a.begun.Get(key)
	if again = b.since.Add(remoteAgainTime); !now.Before(again) {
		b = remoteBegun{since: now}
	}
	if b.times == maxRemoteAgain {
		return again
	}
	b.times++
	a.begun.Put(key, b)
	return time.Time{}
}

func (a *argocdRenderer) pendingRetry() retryState {
	return retryState{tries: pendingTries, retryAt: a.now().Add(RemoteLook)}
}

// await fills in what happens to a target, when that is known in time. The last failure is reported
// until there is a result.
func (a *argocdRenderer) await(ctx context.Context, p *remoteRendering, over *time.Timer) retryState {
	if p.job != nil {
		select {
		case <-p.job.done:
		case <-over.C:
			over.Reset(0) // for the next caller
		case <-ctx.Done():
			return retryState{}
		}
		select {
		case <-p.job.done: // what is remembered may be forgotten already, for others
			p.known = p.job.result
		default:
			p.known = remoteResult{why: cmp.Or(p.known.why, notRenderedYet), retry: a.pendingRetry()}
		}
	}
	setWhy(p.effect, p.known.why)
	p.effect.Changes, p.effect.Disagreement = p.known.changes, p.known.differs
	return p.known.retry
}

// render has both sides rendered and compares them.
func (r *remoteRendering) render(ctx context.Context) remoteResult {
	rendered, err := r.source.Manifests(ctx, r.app, r.sets[0], r.sets[1])
	if err != nil {
		return remoteResult{why: r.explain(len(rendered), argocd.ExplainRendering(err)), lasting: errors.Is(err, argocd.ErrTooLarge)}
	}
	var sides [2]*render.Manifests
	for i, manifests := range rendered {
		if sides[i], err = render.FromArgoCD(r.renameCommits(manifests)); err != nil {
			return remoteResult{why: r.explain(i, err.Error()), lasting: true}
		}
	}
	diff := render.DiffNames
	if r.plain {
		diff = render.Diff
	}
	changes := diff(sides[0], sides[1])
	differs := ""
	if r.local != nil {
		differs = wording.ClipLine(render.DescribeDisagreement(r.local, changes, !r.plain), maxRemoteWhy)
	}
	changes = changes.Clip(maxRemoteChange)
	raw, err := json.Marshal(changes)
	if err != nil {
		return remoteResult{why: r.explain(1, err.Error()), lasting: true}
	}
	return remoteResult{changes: changes, differs: differs, size: len(raw) + len(differs)}
}

// explain says on which side an Argo CD gave no manifests, and what it said.
func (r *remoteRendering) explain(side int, text string) string {
	before := "Argo CD: "
	if side > 0 {
		before = "after the change: " + before
	}
	return before + wording.ClipLine(render.HideSecrets(text), maxRemoteWhy)
}

// renameCommits gives both commits one name, where manifests ask for it
// ($ARGOCD_APP_REVISION and its short forms): a new commit alone is no change. On both
// sides, as a short name may be a part of something else.
func (r *remoteRendering) renameCommits(manifests []string) []string {
	const short, shorter = 8, 7
	base, head := r.at.Base, r.at.Head
	if len(base) <= short || len(head) <= short {
		return manifests
	}
	names := strings.NewReplacer(head, base, head[:short], base[:short], head[:shorter], base[:shorter])
	out := make([]string, len(manifests))
	for i, m := range manifests {
		out[i] = names.Replace(m)
	}
	return out
}
