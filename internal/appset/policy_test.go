package appset

import (
	"testing"

	argoutils "github.com/argoproj/argo-cd/v2/applicationset/utils"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"
)

// TestControllerPolicy holds what a set's Applications are let do against Argo CD's own decision,
// for each policy of the controller and of the set.
func TestControllerPolicy(t *testing.T) {
	policies := []argov1alpha1.ApplicationsSyncPolicy{"", "create-only", "create-update", "create-delete", "sync"}
	for _, controller := range policies {
		for _, own := range policies {
			for _, override := range []bool{false, true} {
				var s appSet
				if own != "" {
					s.spec.Spec.SyncPolicy = &argov1alpha1.ApplicationSetSyncPolicy{ApplicationsSync: &own}
				}
				s.policy = policyOf(&s.spec)
				s.applyController(ControllerPolicy{Sync: string(controller), Override: override})
				// Without a policy the controller is sync, and the sets' own count (cmd/argocd-applicationset-controller).
				started, counts := controller, override
				if started == "" {
					started, counts = argov1alpha1.ApplicationsSyncPolicySync, true
				}
				want := argoutils.DefaultPolicy(s.spec.Spec.SyncPolicy, started, counts)
				if s.policy.NoUpdate != !want.AllowUpdate() || s.policy.NoDelete != !want.AllowDelete() {
					t.Errorf("controller %q (override %t), set %q: %+v, Argo CD says %s", controller, override, own, s.policy, want)
				}
			}
		}
	}
}
