package argocd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/liftlock/liftlock/internal/argocd/api"
	"github.com/liftlock/liftlock/internal/cache"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
)

const (
	// treesPerSecond bounds what an incident on a cluster costs Argo CD: everything on it
	// turns unhealthy at once. So many are read at once before that counts.
	treesPerSecond = 1
	treeBurst      = 5
	// treePatience is how long a tree may have to wait its turn.
	treePatience = 5 * time.Second
	// maxKeptTrees bounds the Applications whose unhealthy resources are remembered.
	maxKeptTrees = 1000
	// maxTreeDepth bounds how far below a resource its pods are looked for. A CronJob's are
	// two below it, those of what an operator runs some more.
	maxTreeDepth = 8
	// maxDescendants bounds those that are kept of what a resource brought forth, and
	// maxRemark the bytes that are kept of what each of them says.
	maxDescendants = 5
	maxRemark      = 300
	// maxPodImages bounds the images of a pod that can't pull one.
	maxPodImages = 20
)

// ErrHealthNotKept says that nobody tells Liftlock which resources are unhealthy.
var ErrHealthNotKept = errors.New("this Argo CD keeps the health of resources outside the Application: give Liftlock its API " +
	"(argocd[].api in the server's file), or set controller.resource.health.persist in argocd-cmd-params-cm")

// ErrTreesBusy says that so many trees are asked for that one doesn't get its turn in time.
var ErrTreesBusy = errors.New("too many Applications are unhealthy at once; it is read later")

// errTreeBehind says that a tree is older than the Application's health: Argo CD keeps the
// two apart, and one may be written before the other.
var errTreeBehind = errors.New("all in it is Healthy, so it is older than the Application's health; it is read again")

// treeReader reads resource trees by the API, once for each state of an Application.
type treeReader struct {
	api   *api.Client
	limit *rate.Limiter
	pods  *rate.Limiter // of Applications whose pods are read
	kept  *cache.Cache[treeKey, treeFindings]
	// unchecked is what trees said last of the resources of a revision without a health check.
	// A check that has been added since makes it too large, so nothing is decided by it.
	unchecked *cache.Cache[revisionKey, verification.Unchecked]
}

// revisionKey is an Application at what it was compared with.
type revisionKey struct{ uid, revisions string }

func newRevisionKey(app *verification.App) revisionKey {
	return revisionKey{app.UID, strings.Join(app.Revisions, " ")}
}

// treeFindings is what a tree says of an Application.
type treeFindings struct {
	unhealthy []verification.Resource
	unchecked verification.Unchecked
}

// treeKey is one state of an Application: a comparison may have found others unhealthy.
type treeKey struct {
	uid, health string
	since       time.Time
	reconciled  time.Time
}

func newTreeReader(client *api.Client, caches *cache.Group, argoCD string) *treeReader {
	return &treeReader{api: client, limit: rate.NewLimiter(treesPerSecond, treeBurst), pods: rate.NewLimiter(podsPerSecond, podsBurst),
		kept: cache.New(caches, cache.Options[treeKey, treeFindings]{Name: "resource_trees_" + argoCD, Entries: maxKeptTrees}),
		unchecked: cache.New(caches, cache.Options[revisionKey, verification.Unchecked]{Name: "unchecked_resources_" + argoCD,
			Entries: maxKeptTrees})}
}

// UnhealthyResources are the resources of an Application that aren't Healthy, each with
// what Argo CD says about it and about what it brought forth. Where the API is known it is
// asked, else the Application says it, from Argo CD 3.6 on in its health's message. An error
// says why that isn't known, which is something else than that there are none:
// ErrHealthNotKept, or the API's, which may pass.
func (w *Watcher) UnhealthyResources(ctx context.Context, app *verification.App) ([]verification.Resource, error) {
	err := ErrHealthNotKept
	if w.trees != nil {
		var found treeFindings
		if found, err = w.trees.read(ctx, app); err == nil {
			return verification.AddCulprits(app.Unhealthy, found.unhealthy), nil
		}
	}
	if !app.HealthInTree {
		return app.Unhealthy, nil
	}
	if causes := healthCauses(app); causes != nil {
		return causes, nil
	}
	return nil, w.treeError(app, err)
}

// UncheckedResources are those of an Application that Argo CD has no health check for, also
// where it keeps the health of resources outside the Application. The errors are those of
// UnhealthyResources.
func (w *Watcher) UncheckedResources(ctx context.Context, app *verification.App) (verification.Unchecked, error) {
	switch {
	case !app.HealthInTree:
		return app.Unchecked, nil
	case w.trees == nil:
		return verification.Unchecked{}, ErrHealthNotKept
	}
	found, err := w.trees.read(ctx, app)
	if err != nil {
		return verification.Unchecked{}, w.treeError(app, err)
	}
	return found.unchecked, nil
}

// RememberedUnchecked is what the last tree that was read of an Application at its revisions
// said, as UncheckedResources does; nothing is asked for it. False: none was read.
func (w *Watcher) RememberedUnchecked(app *verification.App) (verification.Unchecked, bool) {
	if w.trees == nil {
		return verification.Unchecked{}, false
	}
	return w.trees.unchecked.Get(newRevisionKey(app))
}

func (w *Watcher) treeError(app *verification.App, err error) error {
	if w.trees == nil {
		return err
	}
	return fmt.Errorf("argocd %s: read the resource tree of Application %s/%s: %w", w.name, app.Namespace, app.Name, err)
}

// healthCauses reads the resources that an Application's health is by, from its message:
// "Caused by apps/Deployment:shop/web, PersistentVolume:data and 2 more". An Argo CD from
// 3.6 on writes it when the health changes (setApplicationHealth, formatHealthCauses).
func healthCauses(app *verification.App) []verification.Resource {
	list, ok := strings.CutPrefix(app.HealthMessage, "Caused by ")
	if !ok {
		return nil
	}
	list, _, _ = strings.Cut(list, " and ")
	var out []verification.Resource
	for cause := range strings.SplitSeq(list, ", ") {
		kind, name, ok := strings.Cut(cause, ":")
		if !ok || name == "" {
			return nil // it is written in another way
		}
		r := verification.Resource{Kind: kind, Name: name, Health: app.Health}
		if group, kind, ok := strings.Cut(kind, "/"); ok {
			r.Group, r.Kind = group, kind
		}
		if namespace, name, ok := strings.Cut(name, "/"); ok {
			r.Namespace, r.Name = namespace, name
		}
		out = append(out, r)
	}
	return out
}

// read reads an Application's tree, or what is remembered of it in this state.
func (t *treeReader) read(ctx context.Context, app *verification.App) (treeFindings, error) {
	key := treeKey{app.UID, app.Health, app.HealthSince, app.ReconciledAt}
	if out, ok := t.kept.Get(key); ok {
		return out, nil
	}
	waiting, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	if err := t.limit.Wait(waiting); err != nil {
		return treeFindings{}, ErrTreesBusy
	}
	nodes, err := t.api.ResourceTree(ctx, app.Namespace, app.Name, app.Project)
	if err != nil {
		return treeFindings{}, err
	}
	tree := newResourceTree(nodes)
	out := treeFindings{tree.unhealthyResources(), tree.uncheckedResources()}
	if len(out.unhealthy) == 0 && len(app.Unhealthy) == 0 && app.HasBadHealth() {
		return treeFindings{}, errTreeBehind
	}
	t.kept.Put(key, out)
	t.unchecked.Put(newRevisionKey(app), out.unchecked)
	return out, nil
}

// resourceTree is an Application's resources and what they brought forth.
type resourceTree struct {
	roots    []*api.Node
	children map[string][]*api.Node // by the parent's identity
}

func newResourceTree(nodes []api.Node) *resourceTree {
	t := &resourceTree{children: map[string][]*api.Node{}}
	known := map[string]bool{}
	for i := range nodes {
		known[identityOf(nodes[i].Resource)] = true
	}
	for i := range nodes {
		n, root := &nodes[i], true
		for _, p := range n.Parents {
			t.children[identityOf(p)] = append(t.children[identityOf(p)], n)
			root = root && !known[identityOf(p)]
		}
		if root {
			t.roots = append(t.roots, n)
		}
	}
	return t
}

// identityOf tells resources of one tree apart. A tree is of one cluster.
func identityOf(r api.Resource) string {
	return r.Group + "/" + r.Kind + "/" + r.Namespace + "/" + r.Name
}

// unhealthyResources are the Application's own, the worst first, bounded.
func (r *resourceTree) unhealthyResources() []verification.Resource {
	out := []verification.Resource{}
	for _, n := range r.roots {
		if n.Health.Status == "" || n.Health.Status == "Healthy" {
			continue
		}
		out = append(out, verification.Resource{
			Group: n.Group, Kind: n.Kind, Namespace: n.Namespace, Name: n.Name,
			Health: n.Health.Status, Message: clipMessage(r.explain(n)), Descendants: r.tellingDescendants(n),
		})
	}
	slices.SortStableFunc(out, func(a, b verification.Resource) int {
		return cmp.Compare(healthSeverity(b.Health), healthSeverity(a.Health))
	})
	return slices.Clone(out[:min(len(out), maxUnhealthy)])
}

// uncheckedResources are the Application's own that have no health although they need one.
func (r *resourceTree) uncheckedResources() verification.Unchecked {
	var out verification.Unchecked
	for _, n := range r.roots {
		if n.Health.Status == "" && needsHealthCheck(n.Group, n.Kind) {
			addUnchecked(&out, n.Kind)
		}
	}
	slices.Sort(out.Kinds)
	return out
}

// explain is what is said of a resource: first what its pods, or others below it, say,
// because a Deployment only says that it takes too long.
func (r *resourceTree) explain(root *api.Node) string {
	var worst *api.Node
	for _, n := range r.descendants(root) {
		if remark(n) != "" && (worst == nil || compareTelling(n, worst) > 0) {
			worst = n
		}
	}
	own := strings.TrimSpace(root.Health.Message)
	if worst == nil {
		return own
	}
	text := worst.Kind + " " + worst.Name + ": " + remark(worst)
	if isPod(worst) {
		text = r.countPods(worst) + remark(worst)
	}
	if own != "" {
		text += " (" + own + ")"
	}
	return text
}

// tellingDescendants are those below a resource of which something is said, the most
// telling first.
func (r *resourceTree) tellingDescendants(root *api.Node) []verification.Descendant {
	var all []*api.Node
	for _, n := range r.descendants(root) {
		if remark(n) != "" {
			all = append(all, n)
		}
	}
	slices.SortStableFunc(all, func(a, b *api.Node) int {
		return cmp.Or(-compareTelling(a, b), comparePulls(a, b))
	})
	var out []verification.Descendant
	for _, n := range all[:min(len(all), maxDescendants)] {
		d := verification.Descendant{Kind: n.Kind, Name: n.Name, Health: n.Health.Status,
			Reason: wording.Clip(statusReason(n), maxRemark), Message: wording.Clip(strings.TrimSpace(n.Health.Message), maxRemark)}
		if isPod(n) && verification.FailsToPull(d.Reason) {
			d.Images = boundedImages(n.Images)
		}
		out = append(out, d)
	}
	return out
}

// comparePulls puts a pod that can't pull an image after others: where all that are kept only
// can't pull one, so does each that is as unhealthy.
func comparePulls(a, b *api.Node) int {
	pulls := func(n *api.Node) int {
		if isPod(n) && verification.FailsToPull(statusReason(n)) {
			return 1
		}
		return 0
	}
	return pulls(a) - pulls(b)
}

// boundedImages are a pod's images, none where they are more or longer than is kept.
func boundedImages(images []string) []string {
	if len(images) > maxPodImages || slices.ContainsFunc(images, func(image string) bool { return len(image) > maxRemark }) {
		return nil
	}
	return images
}

// descendants are all below a node, from the top down.
func (r *resourceTree) descendants(root *api.Node) []*api.Node {
	var out []*api.Node
	seen := map[*api.Node]bool{root: true}
	level := []*api.Node{root}
	for range maxTreeDepth {
		var next []*api.Node
		for _, n := range level {
			for _, child := range r.children[identityOf(n.Resource)] {
				if !seen[child] {
					seen[child] = true
					next = append(next, child)
				}
			}
		}
		out, level = append(out, next...), next
	}
	return out
}

// compareTelling orders nodes below a resource by how much they tell about it: one that is
// worse, or as bad and a pod, tells more.
func compareTelling(a, b *api.Node) int {
	return cmp.Or(cmp.Compare(healthSeverity(a.Health.Status), healthSeverity(b.Health.Status)), comparePods(a, b))
}

func comparePods(a, b *api.Node) int {
	switch {
	case isPod(a) == isPod(b):
		return 0
	case isPod(a):
		return 1
	}
	return -1
}

func isPod(n *api.Node) bool { return n.Group == "" && n.Kind == "Pod" }

// remark is what is said of a node that isn't Healthy; empty when nothing is.
func remark(n *api.Node) string {
	if n.Health.Status == "" || n.Health.Status == "Healthy" {
		return ""
	}
	reason, message := statusReason(n), strings.TrimSpace(n.Health.Message)
	if message == "" || reason == "" || strings.HasPrefix(message, reason) {
		return cmp.Or(message, reason)
	}
	return reason + ": " + message
}

// statusReason is why a pod is as it is, in one word; empty where that isn't said.
func statusReason(n *api.Node) string {
	for _, i := range n.Info {
		if i.Name == "Status Reason" && i.Value != "Running" {
			return i.Value
		}
	}
	return ""
}

// countPods says how many of a pod and those beside it are ready.
func (r *resourceTree) countPods(pod *api.Node) string {
	if len(pod.Parents) == 0 {
		return ""
	}
	ready, all := 0, 0
	for _, n := range r.children[identityOf(pod.Parents[0])] {
		if !isPod(n) {
			continue
		}
		all++
		if n.Health.Status == "Healthy" {
			ready++
		}
	}
	return fmt.Sprintf("%d of %d pods ready: ", ready, all)
}
