package appset

import (
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// Policy is what an ApplicationSet says about how its Applications follow it.
// The zero value is Argo CD's default: they are created, updated and deleted,
// all at once.
type Policy struct {
	NoUpdate          bool `json:"noUpdate,omitempty"`          // applicationsSync create-only or create-delete: an Application stays as it was created
	NoDelete          bool `json:"noDelete,omitempty"`          // applicationsSync create-only or create-update: an Application outlives its parameters
	PreserveResources bool `json:"preserveResources,omitempty"` // preserveResourcesOnDeletion: a deleted Application leaves its resources
	Rolling           bool `json:"rolling,omitempty"`           // strategy RollingSync: the controller syncs step by step, and turns automated sync off

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

// policyOf reads a set's policy. The controller follows applicationsSync
// unless it was started with a policy of its own.
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
		p.IgnoreDifferences = append(p.IgnoreDifferences, IgnoreDifference{Name: d.Name, JSONPointers: d.JSONPointers, JQPaths: d.JQPathExpressions})
	}
	return p
}
