package api

import "time"

// Evidence is the reason why a promotion is, or isn't, to blame for a degradation: of a revert, or
// of a hold for as long as that lasts.
type Evidence struct {
	Component   string           `json:"component"`
	Environment string           `json:"environment"`
	Pull        *Pull            `json:"pull,omitempty"` // the promotion that brought the release
	Commit      string           `json:"commit"`         // where it landed
	Release     string           `json:"release"`
	Name        string           `json:"name,omitempty"`
	Targets     []TargetEvidence `json:"targets"`               // the degraded ones, at most 10
	MoreTargets int              `json:"moreTargets,omitempty"` // how many more are degraded
	AllTargets  int              `json:"allTargets"`            // how many the environment has
	RuledOut    []RuledOut       `json:"ruledOut,omitempty"`    // other explanations that don't hold
	Held        *Reason          `json:"held,omitempty"`        // why a person has to decide; absent: it is taken back
	Confidence  string           `json:"confidence"`            // guilty, unclear or incident
}

// RuledOut is another explanation that was looked into and doesn't hold.
type RuledOut struct {
	Check  string `json:"check"` // quorum, unhealthy-before, other-commit, self-running or incident
	Answer string `json:"answer"`
}

// TargetEvidence is what is known of one degraded target.
type TargetEvidence struct {
	Target    string             `json:"target"`
	ArgoCD    string             `json:"argocd,omitempty"`
	Cluster   string             `json:"cluster,omitempty"`
	Reason    string             `json:"reason"`
	Since     time.Time          `json:"since,omitzero"`
	Operation *Operation         `json:"operation,omitempty"` // the Application's last sync
	Resources []ResourceEvidence `json:"resources,omitempty"` // those that aren't Healthy, the culprits first, at most 20
	// ResourcesUnknown says why they aren't known.
	ResourcesUnknown string        `json:"resourcesUnknown,omitempty"`
	OtherTargets     []OtherTarget `json:"neighbours,omitempty"`   // at most 20
	OtherCommits     []string      `json:"otherCommits,omitempty"` // that changed what the target reads since, at most 20
	Timeline         []StateChange `json:"timeline,omitempty"`     // oldest first, at most 20
}

// Operation is a sync of an Application.
type Operation struct {
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
	// ChangedByPromotion says that what landed may have made it so; absent: that isn't known.
	ChangedByPromotion *bool `json:"changedByPromotion,omitempty"`
	// what it brought forth and isn't Healthy, the most telling first, at most 5
	Children []Descendant `json:"children,omitempty"`
}

// Changed says that what landed may have made it so, as far as that is known.
func (r *ResourceEvidence) Changed() bool {
	return r.ChangedByPromotion != nil && *r.ChangedByPromotion
}

// Descendant is what a resource brought forth, such as a pod.
type Descendant struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Health  string `json:"health"`
	Reason  string `json:"reason,omitempty"` // such as ImagePullBackOff
	Message string `json:"message,omitempty"`
}

// OtherTarget is an Application that the promotion didn't touch and that became unhealthy.
type OtherTarget struct {
	Application string    `json:"application"` // with its Argo CD and namespace
	Cluster     string    `json:"cluster"`
	Health      string    `json:"health,omitempty"`
	Since       time.Time `json:"since"`
	Until       time.Time `json:"until,omitzero"`
	// RevisionChanged says that it was synced, or made, just before; absent: that isn't known.
	RevisionChanged *bool `json:"revisionChanged,omitempty"`
}
