package appset

import (
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// Policy is what an ApplicationSet says about how its Applications follow it.
// The zero value is Argo CD's default: they are created, updated and deleted,
// all at once.
type Policy struct {
	// applicationsSync create-only or create-delete: an Application stays as it was created
	NoUpdate bool `json:"noUpdate,omitempty"`
	// applicationsSync create-only or create-update: an Application outlives its parameters
	NoDelete          bool `json:"noDelete,omitempty"`
	PreserveResources bool `json:"preserveResources,omitempty"` // preserveResourcesOnDeletion: a deleted Application leaves its resources
	// strategy RollingSync: the controller syncs step by step, and turns automated sync off
	Rolling bool `json:"rolling,omitempty"`

	PreservedAnnotations []string           `json:"preservedAnnotations,omitempty"` // keys that are left as they are on a live Application
	PreservedLabels      []string           `json:"preservedLabels,omitempty"`      // likewise
	IgnoreDifferences    []IgnoreDifference `json:"ignoreDifferences,omitempty"`    // what of a live Application may differ and stays
}

// IgnoreDifference is one entry of ignoreApplicationDifferences.
type IgnoreDifference struct {
	Name         string   `json:"name,omitempty"`         // of one Application; empty: all
	JSONPointers []string `json:"jsonPointers,omitempty"` // into the Application
	JQPaths      []string `json:"jqPathExpressions,omitempty"`
}

// ControllerPolicy is the policy that the ApplicationSet controller was started with, for all
// sets: --policy, or applicationsetcontroller.policy in argocd-cmd-params-cm. Nothing else that
// Argo CD shows tells of it. The zero value: none, so a set's own applicationsSync counts.
type ControllerPolicy struct {
	Sync     string // create-only, create-update, create-delete or sync; empty: none
	Override bool   // --enable-policy-override: a set's own counts all the same, where it has one
}

// applyController has the controller's policy count, where it has one, as the controller does
// (applicationset/utils.DefaultPolicy): it doesn't look at a set's own then, unless it is told to.
func (as *appSet) applyController(c ControllerPolicy) {
	own := as.spec.Spec.SyncPolicy
	if c.Sync == "" || c.Override && own != nil && own.ApplicationsSync != nil {
		return
	}
	sync := argov1alpha1.ApplicationsSyncPolicy(c.Sync)
	as.policy.NoUpdate, as.policy.NoDelete = !sync.AllowUpdate(), !sync.AllowDelete()
}

// policyOf reads a set's policy, as it is where the controller has none of its own.
func policyOf(a *argov1alpha1.ApplicationSet) Policy {
	var p Policy
	if s := a.Spec.SyncPolicy; s != nil {
		p.PreserveResources = s.PreserveResourcesOnDeletion
		if s.ApplicationsSync != nil {
			p.NoUpdate = !s.ApplicationsSync.AllowUpdate()
			p.NoDelete = !s.ApplicationsSync.AllowDelete()
		}
	}
	p.Rolling = a.Spec.Strategy != nil && a.Spec.Strategy.Type == "RollingSync" && a.Spec.Strategy.RollingSync != nil
	if k := a.Spec.PreservedFields; k != nil {
		p.PreservedAnnotations, p.PreservedLabels = k.Annotations, k.Labels
	}
	for _, d := range a.Spec.IgnoreApplicationDifferences {
		p.IgnoreDifferences = append(p.IgnoreDifferences, IgnoreDifference{Name: d.Name, JSONPointers: d.JSONPointers,
			JQPaths: d.JQPathExpressions})
	}
	return p
}
