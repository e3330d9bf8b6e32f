package argocd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
)

// refreshAnnotation asks the application controller for a comparison; it removes
// the annotation in the same write that stores the comparison's result.
const refreshAnnotation = "argocd.argoproj.io/refresh"

// unreadableCondition is the condition of an Application that could not be decoded: no
// verdict is ever built on such a state.
const unreadableCondition = verification.UnreadableCondition

// These bound what is kept of one Application, however large its status is.
const (
	maxMessage    = 1000 // bytes of one message
	maxConditions = 20
	maxUnhealthy  = 50
	maxChildren   = 500 // more than are read
	maxSources    = 100
	maxResults    = 20 // of an operation
	maxDeployed   = 3
	maxDiffering  = 20
	maxLabels     = 32
	maxImages     = 200 // of all pods; of more than these none are kept

	maxUncheckedKinds = 5
)

// wireMeta is the metadata that is used of any object.
type wireMeta struct {
	Namespace         string            `json:"namespace"`
	Name              string            `json:"name"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
	CreationTimestamp *time.Time        `json:"creationTimestamp"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	OwnerReferences   []struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"ownerReferences"`
}

// ownerSet is the name of the ApplicationSet that owns the object; empty without one.
func (w *wireMeta) ownerSet() string {
	name := ""
	for _, o := range w.OwnerReferences {
		if o.Kind == "ApplicationSet" {
			name = o.Name
		}
	}
	return name
}

// firstLabels are the labels, of more than are kept those whose keys come first.
func (w *wireMeta) firstLabels() map[string]string {
	if len(w.Labels) <= maxLabels {
		return w.Labels
	}
	out := make(map[string]string, maxLabels)
	for _, k := range slices.Sorted(maps.Keys(w.Labels))[:maxLabels] {
		out[k] = w.Labels[k]
	}
	return out
}

// wireApplication holds the fields of an Application that are read. Fields that are only compared
// stay raw.
type wireApplication struct {
	Metadata wireMeta        `json:"metadata"`
	Spec     digestedSpec    `json:"spec"`
	Op       json.RawMessage `json:"operation"`
	Status   wireStatus      `json:"status"`
}

// digestedSpec is a specification with a digest of its bytes.
type digestedSpec struct {
	wireSpec
	digest uint64
}

func (d *digestedSpec) UnmarshalJSON(raw []byte) error {
	h := fnv.New64a()
	_, _ = h.Write(raw) // never fails
	d.digest = h.Sum64()
	return json.Unmarshal(raw, &d.wireSpec)
}

type wireSpec struct {
	Source            json.RawMessage   `json:"source"`
	Sources           []json.RawMessage `json:"sources"`
	SourceHydrator    *wireHydrator     `json:"sourceHydrator"`
	Project           string            `json:"project"`
	Destination       wireDestination   `json:"destination"`
	IgnoreDifferences json.RawMessage   `json:"ignoreDifferences"`
	SyncPolicy        *struct {
		Automated *struct {
			Enabled  *bool `json:"enabled"`
			SelfHeal *bool `json:"selfHeal"`
		} `json:"automated"`
		SyncOptions []string `json:"syncOptions"`
	} `json:"syncPolicy"`
}

type wireHydrator struct {
	DrySource  wireSource `json:"drySource"`
	SyncSource struct {
		RepoURL      string `json:"repoURL"` // since 3.5; empty: the dry source's
		TargetBranch string `json:"targetBranch"`
		Path         string `json:"path"`
	} `json:"syncSource"`
}

type wireDestination struct {
	Server    string `json:"server"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type wireSource struct {
	RepoURL        string `json:"repoURL"`
	Path           string `json:"path,omitempty"`
	Chart          string `json:"chart,omitempty"`
	TargetRevision string `json:"targetRevision,omitempty"`
	Ref            string `json:"ref,omitempty"`
}

// wireHydration is one run of the source hydrator.
type wireHydration struct {
	Phase       string `json:"phase"`
	Message     string `json:"message"`
	DrySHA      string `json:"drySHA"`
	HydratedSHA string `json:"hydratedSHA"`
}

type wireHealth struct {
	Status             string     `json:"status"`
	Message            string     `json:"message"`
	LastTransitionTime *time.Time `json:"lastTransitionTime"`
}

type wireRevisions struct {
	Revision  string   `json:"revision"`
	Revisions []string `json:"revisions"`
}

type wireStatus struct {
	RawResources         json.RawMessage `json:"resources"`
	Resources            []wireResource  `json:"-"` // those of RawResources of which something is kept
	ResourceHealthSource string          `json:"resourceHealthSource"`
	Sync                 struct {
		wireRevisions
		Status     string `json:"status"`
		ComparedTo *struct {
			Source            json.RawMessage   `json:"source"`
			Sources           []json.RawMessage `json:"sources"`
			Destination       wireDestination   `json:"destination"`
			IgnoreDifferences json.RawMessage   `json:"ignoreDifferences"`
		} `json:"comparedTo"`
	} `json:"sync"`
	Health     wireHealth `json:"health"`
	Conditions []struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"conditions"`
	ReconciledAt   *time.Time       `json:"reconciledAt"`
	OperationState *wireOperation   `json:"operationState"`
	History        []wireDeployment `json:"history"`
	Summary        struct {
		Images []string `json:"images"`
	} `json:"summary"`
	SourceHydrator struct {
		LastSuccessfulOperation *wireHydration `json:"lastSuccessfulOperation"`
		CurrentOperation        *wireHydration `json:"currentOperation"`
		LastComparedDryRevision string         `json:"lastComparedDryRevision"` // since 3.5
	} `json:"sourceHydrator"`
}

// decodeApplication reduces one Application, as the API server writes it, to what a verdict needs.
// spec is a digest of what people and ApplicationSets write into it: its specification, labels and
// owner. An object whose metadata can be read but whose rest can't gives both an App with the
// condition UnreadableError and the error. Without a name there is only the error.
func decodeApplication(argoCD string, raw []byte) (app verification.App, spec uint64, err error) {
	var w wireApplication
	rest, resources := cutResources(raw)
	err = json.Unmarshal(rest, &w)
	if err == nil {
		if resources != nil {
			w.Status.RawResources = resources
		}
		w.Status.Resources, err = decodeResources(w.Status.RawResources, w.Status.ResourceHealthSource == healthInTree)
	}
	if err != nil {
		err = fmt.Errorf("decode an Application: %w", err)
		app := bareApplication(argoCD, raw)
		if app.Name == "" {
			return verification.App{}, 0, err
		}
		app.Conditions = []verification.Condition{{Type: unreadableCondition, Message: clipMessage(err.Error())}}
		return app, 0, err
	}
	if w.Metadata.Name == "" {
		return verification.App{}, 0, fmt.Errorf("decode an Application: it has no name")
	}
	app = w.toApp(argoCD)
	return app, w.writtenDigest(app.OwnedBySet), nil
}

// writtenDigest is a digest of what people and ApplicationSets write into an Application.
func (w *wireApplication) writtenDigest(owner string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %q", w.Spec.digest, owner)
	for _, k := range slices.Sorted(maps.Keys(w.Metadata.Labels)) {
		fmt.Fprintf(h, " %q=%q", k, w.Metadata.Labels[k])
	}
	return h.Sum64()
}

// bareApplication reads what names an Application and nothing else.
func bareApplication(argoCD string, raw []byte) verification.App {
	var m struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			UID       string `json:"uid"`
		} `json:"metadata"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return verification.App{}
	}
	return verification.App{ArgoCD: argoCD, Namespace: m.Metadata.Namespace, Name: m.Metadata.Name, UID: m.Metadata.UID}
}

func (w *wireApplication) toApp(argoCD string) verification.App {
	_, refreshing := w.Metadata.Annotations[refreshAnnotation]
	a := verification.App{
		ArgoCD: argoCD, Namespace: w.Metadata.Namespace, Name: w.Metadata.Name, UID: w.Metadata.UID,
		CreatedAt:       timeOrZero(w.Metadata.CreationTimestamp),
		Sources:         w.Spec.decodeSources(),
		SourceList:      len(w.Spec.Sources) > 0 && w.Spec.SourceHydrator == nil,
		Destination:     verification.Destination(w.Spec.Destination),
		Project:         w.Spec.Project,
		AutoSync:        w.Spec.isAutomated(),
		SelfHeal:        w.Spec.isSelfHealing(),
		Ignored:         w.Spec.ignored(),
		RespectsIgnored: w.Spec.SyncPolicy != nil && slices.Contains(w.Spec.SyncPolicy.SyncOptions, "RespectIgnoreDifferences=true"),
		Deleting:        w.Metadata.DeletionTimestamp != nil,
		SyncStatus:      w.Status.Sync.Status,
		Revisions:       w.Status.Sync.allRevisions(),
		ComparedToSpec:  w.comparedToSpec(),
		Health:          w.Status.Health.Status,
		HealthMessage:   clipMessage(w.Status.Health.Message),
		HealthSince:     timeOrZero(w.Status.Health.LastTransitionTime),
		ReconciledAt:    timeOrZero(w.Status.ReconciledAt),
		RefreshPending:  refreshing,
		Operation:       w.lastOperation(),
		Deployed:        w.lastDeployments(),
		MarkedFor:       clipMessage(w.Metadata.Annotations[verification.MarkAnnotation]),
		Hydration:       w.currentHydration(),
	}
	if h := w.Spec.SourceHydrator; h != nil {
		a.HydratedPath, a.HydratedRepo = h.SyncSource.Path, clipMessage(h.SyncSource.RepoURL)
		a.HydratedFrom, a.ComparedDry = w.hydratedCommits(), w.Status.SourceHydrator.LastComparedDryRevision
	}
	a.OwnedBySet, a.Labels = w.Metadata.ownerSet(), w.Metadata.firstLabels()
	// Argo CD keeps .operation while it runs the sync and removes it with the result.
	a.Pending = isPresent(w.Op) && (a.Operation == nil || a.Operation.Phase != "Running" && a.Operation.Phase != "Terminating")
	for _, c := range w.Status.Conditions[:min(len(w.Status.Conditions), maxConditions)] {
		a.Conditions = append(a.Conditions, verification.Condition{Type: c.Type, Message: clipMessage(c.Message)})
	}
	// Where it is in the tree, the API puts it into some of its answers and not into others.
	if a.HealthInTree = w.Status.ResourceHealthSource == healthInTree; !a.HealthInTree {
		a.Unhealthy, a.Unchecked = w.unhealthyResources(), w.uncheckedResources()
	}
	a.Differences, a.Differing = w.outOfSyncResources()
	a.Children = w.childApplications()
	a.Images = w.podImages()
	return a
}

// podImages are the images that Argo CD lists; none where that are more than are kept, so that nobody takes
// a part of them for all.
func (w *wireApplication) podImages() []string {
	images := w.Status.Summary.Images
	if len(images) > maxImages || slices.ContainsFunc(images, func(image string) bool { return len(image) > maxMessage }) {
		return nil
	}
	return images
}

// childApplications are the Applications among the resources that are to stay.
func (w *wireApplication) childApplications() []verification.ChildRef {
	var out []verification.ChildRef
	for _, r := range w.Status.Resources {
		isApplication := r.Group == "argoproj.io" && r.Kind == "Application"
		if isApplication && !r.Hook && !r.RequiresPruning && len(out) < maxChildren {
			out = append(out, verification.ChildRef{Namespace: r.Namespace, Name: r.Name})
		}
	}
	return out
}

// hydratedCommits are the commits that the source hydrator says it wrote, with those that they
// were made from.
func (w *wireApplication) hydratedCommits() []verification.HydratedCommit {
	var out []verification.HydratedCommit
	h := &w.Status.SourceHydrator
	for _, op := range []*wireHydration{h.LastSuccessfulOperation, h.CurrentOperation} {
		if op == nil || op.HydratedSHA == "" || op.DrySHA == "" {
			continue
		}
		if c := (verification.HydratedCommit{Hydrated: op.HydratedSHA, Dry: op.DrySHA}); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// currentHydration is the hydrator's present or last run; nil when there was none.
func (w *wireApplication) currentHydration() *verification.Hydration {
	op := w.Status.SourceHydrator.CurrentOperation
	if w.Spec.SourceHydrator == nil || op == nil {
		return nil
	}
	return &verification.Hydration{Phase: op.Phase, Message: clipMessage(op.Message), Dry: op.DrySHA}
}

func (w *wireApplication) unhealthyResources() []verification.Resource {
	var all []verification.Resource
	for _, r := range w.Status.Resources {
		if r.Health == nil || r.Health.Status == "" || r.Health.Status == "Healthy" {
			continue
		}
		all = append(all, verification.Resource{
			Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name,
			Health: r.Health.Status, Message: clipMessage(r.Health.Message),
		})
	}
	if len(all) > maxUnhealthy {
		slices.SortStableFunc(all, func(a, b verification.Resource) int {
			return cmp.Compare(healthSeverity(b.Health), healthSeverity(a.Health))
		})
		all = slices.Clone(all[:maxUnhealthy])
	}
	return all
}

// uncheckedResources are those that have no health although they need one.
func (w *wireApplication) uncheckedResources() verification.Unchecked {
	var out verification.Unchecked
	for _, r := range w.Status.Resources {
		hasHealth := r.Health != nil && r.Health.Status != ""
		if !hasHealth && !r.Hook && !r.RequiresPruning && needsHealthCheck(r.Group, r.Kind) {
			addUnchecked(&out, r.Kind)
		}
	}
	slices.Sort(out.Kinds)
	return out
}

// needsHealthCheck says that resources of a kind may be unhealthy, and that only a check can tell.
// Argo CD has checks for Kubernetes's own kinds where those need one, and an Application among the
// resources has its own health.
func needsHealthCheck(group, kind string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") && (group != "argoproj.io" || kind != "Application")
}

func addUnchecked(to *verification.Unchecked, kind string) {
	to.Total++
	if kind = clipMessage(kind); len(to.Kinds) < maxUncheckedKinds && !slices.Contains(to.Kinds, kind) {
		to.Kinds = append(to.Kinds, kind)
	}
}

// outOfSyncResources are the resources that aren't in the cluster as Git says, the worst
// first, and how many there are.
func (w *wireApplication) outOfSyncResources() ([]verification.Difference, int) {
	var all []verification.Difference
	for _, r := range w.Status.Resources {
		if r.Status != "OutOfSync" || r.Hook {
			continue
		}
		d := verification.Difference{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, How: verification.IsDifferent}
		switch {
		case r.RequiresPruning:
			d.How = verification.IsExtra
		case r.Health != nil && r.Health.Status == "Missing":
			d.How = verification.IsMissing
		case w.Status.ResourceHealthSource == healthInTree:
			d.How = verification.IsOutOfSync // whether it is there is kept outside the Application
		}
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b verification.Difference) int { return cmp.Compare(a.How.Rank(), b.How.Rank()) })
	return slices.Clone(all[:min(len(all), maxDiffering)]), len(all)
}

// healthInTree is how an Argo CD from 3.0 on says that the health of resources isn't in
// the Application.
const healthInTree = "appTree"

func healthSeverity(health string) int {
	return slices.Index([]string{"Suspended", "Progressing", "Missing", "Degraded"}, health)
}

// ignored is what it says of differences that don't count; empty where that is more than is kept.
func (w *wireSpec) ignored() string {
	if !isPresent(w.IgnoreDifferences) || len(w.IgnoreDifferences) > maxIgnored {
		return ""
	}
	var out bytes.Buffer
	if json.Compact(&out, w.IgnoreDifferences) != nil {
		return "" // it was decoded
	}
	return out.String()
}

// isAutomated: an empty policy is one; newer Argo CDs can switch it off in place.
func (w *wireSpec) isAutomated() bool {
	p := w.SyncPolicy
	return p != nil && p.Automated != nil && (p.Automated.Enabled == nil || *p.Automated.Enabled)
}

// isSelfHealing says that Argo CD undoes changes in the cluster.
func (w *wireSpec) isSelfHealing() bool {
	return w.isAutomated() && w.SyncPolicy.Automated.SelfHeal != nil && *w.SyncPolicy.Automated.SelfHeal
}

func (w wireRevisions) allRevisions() []string {
	switch {
	case len(w.Revisions) > 0:
		return slices.Clone(w.Revisions[:min(len(w.Revisions), maxSources)])
	case w.Revision != "":
		return []string{w.Revision}
	}
	return nil
}

func isPresent(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// clipMessage bounds a message from outside.
func clipMessage(s string) string { return wording.Clip(s, maxMessage) }
