package facts

import (
	"context"
	"fmt"
	"slices"

	"github.com/liftlock/liftlock/internal/store/record"

	"github.com/liftlock/liftlock/internal/promotion"
)

// StoredDeployment is what the store knows of a deployment on the forge.
type StoredDeployment struct {
	promotion.DeploymentRecord
	ID int64 `json:"id,omitempty"` // the forge's; 0 where it took none
}

// StoredDeployments are those of a unit, by environment. An environment that isn't in it was never
// evaluated, or the database was lost: the forge's deployments of it aren't known.
type StoredDeployments map[string][]StoredDeployment

// Deployments are those of units.
var Deployments = record.Declare[record.Unit, StoredDeployments](record.Declaration{
	Name: "deployments", Owner: "controller/act", Lifetime: record.UntilDropped,
	Doc: "The deployments that the forge shows of the component, by environment. Without it the forge is read.",
})

// ReadDeployments reads a unit's deployments; none where they can't be understood: then the
// forge is asked which there are.
func ReadDeployments(ctx context.Context, s record.Reader, u promotion.Unit) (StoredDeployments, error) {
	d, _, err := Deployments.Get(ctx, s, record.Unit(u))
	return d, err
}

// Put changes what is known of one deployment, or adds it. Settled deployments are dropped: those
// that keep says aren't there any more, in a final state.
func (s *StoredDeployments) Put(env string, changed StoredDeployment, keep func(commit string) bool) {
	if *s == nil {
		*s = StoredDeployments{}
	}
	all := slices.DeleteFunc((*s)[env], func(k StoredDeployment) bool { return k.Commit == changed.Commit })
	all = append(all, changed)
	(*s)[env] = slices.DeleteFunc(all, func(k StoredDeployment) bool {
		over := k.State == promotion.DeploymentFailure || k.State == promotion.DeploymentError || k.State == promotion.DeploymentInactive ||
			k.Refused != ""
		return over && !keep(k.Commit)
	})
}

// Find finds what is known of the deployment of a commit.
func (s StoredDeployments) Find(env, commit string) (StoredDeployment, bool) {
	i := slices.IndexFunc(s[env], func(k StoredDeployment) bool { return k.Commit == commit })
	if i < 0 {
		return StoredDeployment{}, false
	}
	return s[env][i], true
}

// gatherDeployments reads what the forge was told of the unit's deployments, where the pipeline
// wants it told.
func (ga *Gatherer) gatherDeployments(ctx context.Context, ev *Evaluation) (out promotion.Deployments, err error) {
	if !ev.Pipeline.Spec.Deployments {
		return out, nil
	}
	r := ev.Snapshot.Repo
	if !r.Forge.HasDeployments() {
		out.Unsupported = fmt.Sprintf("spec.deployments: the forge %s keeps no deployments; only GitHub does", r.ForgeRef)
		return out, nil
	}
	stored, err := ReadDeployments(ctx, ga.opts.Store, ev.Unit)
	if err != nil {
		return out, err
	}
	out.Records = map[string][]promotion.DeploymentRecord{}
	for env, all := range stored {
		for _, d := range all {
			out.Records[env] = append(out.Records[env], d.DeploymentRecord)
		}
	}
	return out, nil
}
