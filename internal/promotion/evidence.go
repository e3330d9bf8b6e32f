package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/promotion/verification"
	"github.com/liftlock/liftlock/internal/wording"
)

// Evidence is what it was decided by whether a promotion is to blame for a degradation. It
// is kept with the revert, and with a hold for as long as that lasts; whatever is shown of
// either is read from it. Decide makes it as it judges, and nothing is decided by it.
type Evidence struct {
	Component   string           `json:"component"`
	Environment string           `json:"environment"`
	Pull        int              `json:"pull,omitempty"` // the promotion that brought the release
	Commit      string           `json:"commit"`         // where it landed
	Release     string           `json:"release"`
	Name        string           `json:"name,omitempty"`
	Targets     []TargetEvidence `json:"targets"`               // the degraded ones, at most maxEvidenceTargets
	MoreTargets int              `json:"moreTargets,omitempty"` // how many more are degraded
	AllTargets  int              `json:"allTargets"`            // how many the environment has
	RuledOut    []RuledOut       `json:"ruledOut,omitempty"`
	Held        *Reason          `json:"held,omitempty"` // why a person has to decide; nil: it is taken back
	Confidence  Confidence       `json:"confidence"`
}

// Confidence is how sure it is that the promotion is to blame.
type Confidence string

// Guilty: nothing else explains the degradation. Unclear: that isn't known, or wasn't
// looked into, because a person asked or has to decide anyway.
const (
	Guilty         Confidence = "guilty"
	Unclear        Confidence = "unclear"
	LikelyIncident Confidence = "incident"
)

// RuledOut is another explanation that was looked into and doesn't hold.
type RuledOut struct {
	Check  string `json:"check"`  // stable, for programs
	Answer string `json:"answer"` // a sentence
}

// The checks.
const (
	CheckQuorum          = "quorum"
	CheckUnhealthyBefore = "unhealthy-before"
	CheckOtherCommit     = "other-commit"
	CheckSelfRunning     = "self-running"
	CheckImagePull       = "image-pull"
	CheckIncident        = "incident"
)

// TargetEvidence is what is known of one degraded target.
type TargetEvidence struct {
	Target    string    `json:"target"`
	ArgoCD    string    `json:"argocd,omitempty"`
	Cluster   string    `json:"cluster,omitempty"`
	Reason    string    `json:"reason"` // its verdict's
	Since     time.Time `json:"since,omitzero"`
	Operation *SyncInfo `json:"operation,omitempty"` // the Application's last
	// Resources are those that aren't Healthy, the culprits first; ResourcesUnknown says
	// why they aren't known.
	Resources        []ResourceEvidence         `json:"resources,omitempty"`
	ResourcesUnknown string                     `json:"resourcesUnknown,omitempty"`
	OtherTargets     []OtherTarget              `json:"otherTargets,omitempty"` // that became unhealthy too and weren't touched
	OtherCommits     []string                   `json:"otherCommits,omitempty"` // that changed what the target reads since
	Timeline         []verification.StateChange `json:"timeline,omitempty"`
}

// SyncInfo is the sync that an Application ran last.
type SyncInfo struct {
	StartedAt   time.Time `json:"startedAt,omitzero"`
	FinishedAt  time.Time `json:"finishedAt,omitzero"`
	Phase       string    `json:"phase"`
	InitiatedBy string    `json:"initiatedBy,omitempty"` // empty: Argo CD itself, or it isn't said
	Message     string    `json:"message,omitempty"`
}

// ResourceEvidence is a resource that isn't Healthy.
type ResourceEvidence struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Health    string `json:"health"`
	Message   string `json:"message,omitempty"`
	// ChangedByPromotion says that what landed may have made it so; nil: that wasn't looked
	// into, or can't be told.
	ChangedByPromotion *bool `json:"changedByPromotion,omitempty"`
	// what it brought forth and isn't Healthy, the most telling first
	Children []verification.Descendant `json:"children,omitempty"`
}

// OtherTarget is an Application that the promotion didn't touch and that became unhealthy.
type OtherTarget struct {
	Application string    `json:"application"` // its name across Argo CDs
	Cluster     string    `json:"cluster"`
	Health      string    `json:"health,omitempty"`
	Since       time.Time `json:"since"`
	Until       time.Time `json:"until,omitzero"`
	// RevisionChanged says that it was synced to something else just before; nil: that
	// can't be told.
	RevisionChanged *bool `json:"revisionChanged,omitempty"`
}

// These bound a record.
const (
	maxEvidenceTargets   = 10
	maxEvidenceResources = 20
	maxEvidenceOthers    = 20
	maxEvidenceChanges   = 20 // of a timeline, the last ones
)

// ruleOut records that another explanation doesn't hold.
func (ev *evaluator) ruleOut(e *Env, check, answer string, args ...any) {
	ev.ruledOut[e.Name] = append(ev.ruledOut[e.Name], RuledOut{check, fmt.Sprintf(answer, args...)})
}

// holdDegradation leaves a degradation to people, and says by what.
func (ev *evaluator) holdDegradation(e *Env, st *EnvState, code cause.Code, why string, sure Confidence) {
	st.addReason(code, why)
	x := ev.collectEvidence(e, sure)
	x.Held = &Reason{Code: code, Text: why}
	st.Evidence = &x
}

// collectEvidence writes down what is known of the degraded targets.
func (ev *evaluator) collectEvidence(e *Env, sure Confidence) Evidence {
	x := Evidence{Component: ev.facts.Unit.Component, Environment: e.Name, Commit: e.Landed.Value.Commit, Pull: e.Landed.Value.Pull,
		Release: e.Release.Value.ID, Name: e.Release.Value.Name, AllTargets: len(e.Targets), RuledOut: ev.ruledOut[e.Name],
		Confidence: sure}
	bad := e.degradedTargets()
	for _, t := range bad[:min(len(bad), maxEvidenceTargets)] {
		x.Targets = append(x.Targets, ev.collectTargetEvidence(e, t))
	}
	x.MoreTargets = len(bad) - len(x.Targets)
	return x
}

func (ev *evaluator) collectTargetEvidence(e *Env, t *Target) TargetEvidence {
	x := TargetEvidence{Target: t.Name, ArgoCD: t.ArgoCD, Cluster: t.Cluster, Reason: t.Verdict.Reason, Since: t.Verdict.Since,
		Operation: t.LastSync}
	x.Timeline = t.Timeline[max(0, len(t.Timeline)-maxEvidenceChanges):]
	if !t.Unhealthy.OK {
		x.ResourcesUnknown = cmp.Or(t.Unhealthy.Err, "nobody has looked")
	}
	culprits := verification.Culprits(t.Unhealthy.Value)
	for _, r := range append(culprits, t.Unhealthy.Value...) {
		if len(x.Resources) < maxEvidenceResources &&
			!slices.ContainsFunc(x.Resources, func(k ResourceEvidence) bool { return k.isAbout(r) }) {
			x.Resources = append(x.Resources, newResourceEvidence(t, r))
		}
	}
	for i := range ev.facts.ClusterIncidents {
		if w := &ev.facts.ClusterIncidents[i]; ev.speaksForIncident(w, e, t) && len(x.OtherTargets) < maxEvidenceOthers {
			x.OtherTargets = append(x.OtherTargets, OtherTarget{cmp.Or(w.ID, w.Target), w.Cluster, w.Health, w.Since, w.Until,
				w.RevisionChanged})
		}
	}
	if commits := t.ChangedSince.Value; t.ChangedSince.OK {
		x.OtherCommits = commits[:min(len(commits), maxEvidenceOthers)]
	}
	return x
}

func newResourceEvidence(t *Target, r verification.Resource) ResourceEvidence {
	x := ResourceEvidence{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Health: r.Health, Message: r.Message,
		Children: r.Descendants}
	if t.ChangedObjects.OK {
		changed := filterChanged(t, []verification.Resource{r}) != nil
		x.ChangedByPromotion = &changed
	}
	return x
}

func (re *ResourceEvidence) isAbout(r verification.Resource) bool {
	return re.Group == r.Group && re.Kind == r.Kind && re.Namespace == r.Namespace && re.Name == r.Name
}

// isChanged says that it is known to be of the promotion's making.
func (re *ResourceEvidence) isChanged() bool {
	return re.ChangedByPromotion != nil && *re.ChangedByPromotion
}

// DescribeAll says several in words, one after the other.
func DescribeAll(all []Evidence) []string {
	var out []string
	for i := range all {
		out = append(out, all[i].Describe()...)
	}
	return out
}

// Describe says it in words, a line a fact; the first is the cause, as far as it is known.
// Nothing where no target was degraded.
func (e *Evidence) Describe() []string {
	if len(e.Targets) == 0 {
		return nil
	}
	out := []string{e.describeCause()}
	for i := range e.Targets {
		out = append(out, e.Targets[i].describe()...)
	}
	if e.MoreTargets > 0 {
		out = append(out, wording.Plural(e.MoreTargets, "more target is degraded", "more targets are degraded"))
	}
	return out
}

func (t *TargetEvidence) describe() []string {
	since := ""
	if !t.Since.IsZero() {
		since = " since " + t.Since.UTC().Format(time.RFC3339)
	}
	out := []string{fmt.Sprintf("%s on %s: %s%s", t.Target, cmp.Or(t.Cluster, "its cluster"), t.Reason, since)}
	for i := range t.Resources {
		r := &t.Resources[i]
		out = append(out, fmt.Sprintf("%s: %s %s is %s: %s", t.Target, r.Kind, r.Name, r.Health, cmp.Or(r.Message, "no message")))
	}
	if t.ResourcesUnknown != "" {
		out = append(out, fmt.Sprintf("%s: which of its resources are unhealthy is not known: %s", t.Target, t.ResourcesUnknown))
	}
	for _, m := range t.Timeline {
		out = append(out, fmt.Sprintf("%s: %s %s %s", t.Target, m.At.UTC().Format(time.RFC3339), m.State, m.Note))
	}
	return out
}

// describeCause names in one line what broke, and where. It is the unhealthy resource, of several
// one that the promotion changed, in Argo CD's words; else the reason of the target's verdict.
func (e *Evidence) describeCause() string {
	t := &e.Targets[0]
	where := t.Target
	if more := len(e.Targets) + e.MoreTargets - 1; more > 0 {
		where += fmt.Sprintf(" and %d more of %s", more, wording.Count(e.AllTargets, "target"))
	}
	what := t.Reason
	if r := t.findCulprit(); r != nil {
		what = fmt.Sprintf("%s %s: %s", r.Kind, r.Name, cmp.Or(strings.TrimSpace(r.Message), "it is "+r.Health))
		if r.isChanged() && e.Pull > 0 {
			where += fmt.Sprintf("; #%d changed it", e.Pull)
		}
	}
	return fmt.Sprintf("%s (%s)", what, where)
}

// findCulprit is the resource that makes the target degraded, of several one that the
// promotion changed, and of those one about which Argo CD says something. nil: Argo CD
// names none.
func (t *TargetEvidence) findCulprit() *ResourceEvidence {
	var list []verification.Resource
	for _, r := range t.Resources {
		list = append(list, verification.Resource{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Health: r.Health})
	}
	var best *ResourceEvidence
	for _, r := range verification.Culprits(list) {
		k := &t.Resources[slices.IndexFunc(t.Resources, func(k ResourceEvidence) bool { return k.isAbout(r) })]
		if best == nil || k.isLikelierThan(best) {
			best = k
		}
	}
	return best
}

// isLikelierThan says that a resource is likelier to be the cause than another: what the promotion
// changed comes first, then what has a message.
func (re *ResourceEvidence) isLikelierThan(other *ResourceEvidence) bool {
	if re.isChanged() != other.isChanged() {
		return re.isChanged()
	}
	return re.Message != "" && other.Message == ""
}
