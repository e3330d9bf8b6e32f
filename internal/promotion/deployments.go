package promotion

import (
	"fmt"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/pipeline"
	"github.com/liftlock/liftlock/internal/promotion/cause"
	"github.com/liftlock/liftlock/internal/wording"
)

// DeploymentState is how the forge shows what landed in an environment.
type DeploymentState string

// The states of a deployment.
const (
	DeploymentInProgress DeploymentState = "in_progress"
	DeploymentSuccess    DeploymentState = "success"  // verified
	DeploymentFailure    DeploymentState = "failure"  // degraded
	DeploymentError      DeploymentState = "error"    // it never arrived, or can't be verified
	DeploymentInactive   DeploymentState = "inactive" // something else is there by now
)

// Deployments are what the forge was told of the deployments of a unit.
type Deployments struct {
	Unsupported string `json:"unsupported,omitempty"` // why the forge has none; empty: it has
	// by environment, of what is there and of what was there before
	Records map[string][]DeploymentRecord `json:"records,omitempty"`
}

// DeploymentRecord is what the forge was told of a commit that landed.
type DeploymentRecord struct {
	Commit string          `json:"commit"`
	At     time.Time       `json:"at"`              // when it landed
	State  DeploymentState `json:"state,omitempty"` // the last that the forge took; empty: not known
	// Refused is why the forge takes nothing of it, in its words, and RefusedAt when it said so.
	Refused   string    `json:"refused,omitempty"`
	RefusedAt time.Time `json:"refusedAt,omitzero"`
}

// SetDeployment has the forge show how what landed in an environment stands. Done again it
// says the same again.
type SetDeployment struct {
	Environment string
	Commit      string
	At          time.Time // when it landed
	State       DeploymentState
	Reason      string
	// The pull request that brought it, and what that moved, as far as it is still there;
	// 0 and nobody where something else is there by now.
	Pull    int
	Revert  bool
	Members []Member
}

func (s SetDeployment) environment() string { return s.Environment }

// Describe says it in a few words.
func (s SetDeployment) Describe() string {
	return fmt.Sprintf("show the deployment of %s in %s as %s", wording.Short(s.Commit), s.Environment, s.State)
}

// deploymentRetry is how long a forge isn't tried again that refused to take a deployment: a
// person may give the permission meanwhile.
const deploymentRetry = time.Hour

// landing is what one merge brought to an environment and what is still there of it.
type landing struct {
	SetDeployment
	watched bool  // somebody may still look at how it comes out
	first   int   // component of it
	all     []int // components of it
}

// planDeployments compares what the forge shows of the environments with how they are.
func (d *Decision) planDeployments(f *Facts) {
	var envs []string
	for i := range f.Components {
		c := &f.Components[i]
		if c.Pipeline == nil || !c.Pipeline.Spec.Deployments || c.Pipeline.Spec.Mode == pipeline.ModeDryRun {
			continue
		}
		for k := range c.Envs {
			if !slices.Contains(envs, c.Envs[k].Name) {
				envs = append(envs, c.Envs[k].Name)
			}
		}
	}
	for _, env := range envs {
		landings, known := d.groupLandings(f, env)
		for i := range landings {
			d.planLanding(f, &landings[i])
		}
		if known {
			d.retireDeployments(f, env, landings)
		}
	}
}

// groupLandings lists the merges of ours that brought what is in an environment; known is
// that this can be told of all components.
func (d *Decision) groupLandings(f *Facts, env string) (out []landing, known bool) {
	known = true
	for i := range f.Components {
		c := &f.Components[i]
		e, st := c.findEnv(env), d.Components[i].Env(env)
		if e == nil || st == nil {
			continue
		}
		if !e.Landed.OK || !e.Release.OK {
			known = false
			continue
		}
		l := e.Landed.Value
		if l.Pull == 0 {
			continue
		}
		k := slices.IndexFunc(out, func(o landing) bool { return o.Commit == l.Commit })
		if k < 0 {
			k = len(out)
			out = append(out, landing{SetDeployment: SetDeployment{Environment: env, Commit: l.Commit, At: l.At, Pull: l.Pull,
				Revert: l.By == ByRevert}, first: i,
				watched: c.Now.Sub(l.At) <= e.Spec.Verify.WatchWindow()})
		}
		o := &out[k]
		o.all = append(o.all, i)
		o.Members = append(o.Members, Member{Component: c.Unit.Component, Release: e.Release.Value.ID, Name: e.Release.Value.Name})
		o.join(deploymentStateOf(st), st.Reason, c.Unit.Component, l.Batch)
	}
	return out, known
}

// deploymentStateOf is how a state is shown; empty where nothing is said of it.
func deploymentStateOf(st *EnvState) DeploymentState {
	switch st.State {
	case Verifying:
		return DeploymentInProgress
	case Verified:
		return DeploymentSuccess
	case Degraded:
		return DeploymentFailure
	case Failed:
		return DeploymentError
	}
	return ""
}

// deploymentStates are the states of what is there, the one that speaks for several first.
var deploymentStates = []DeploymentState{DeploymentFailure, DeploymentError, DeploymentInProgress, DeploymentSuccess, ""}

// join adds what is said of one component of it.
func (l *landing) join(state DeploymentState, reason, component string, batch bool) {
	if slices.Index(deploymentStates, state) >= slices.Index(deploymentStates, l.State) {
		return
	}
	if l.State, l.Reason = state, reason; batch {
		l.Reason = component + ": " + reason
	}
}

// planLanding has the forge show what is there.
func (d *Decision) planLanding(f *Facts, o *landing) {
	record := f.findDeployment(o.Environment, o.Commit)
	switch {
	case o.State == "", record == nil && !o.watched:
		return // nobody looks at it any more
	case f.Deployments.Unsupported != "":
		d.addDeploymentReason(o, f.Deployments.Unsupported)
		return
	case record != nil && record.Refused != "":
		d.addDeploymentReason(o, "the forge takes no deployment of it: "+record.Refused)
		now, again := f.Components[o.first].Now, record.RefusedAt.Add(deploymentRetry)
		if now.Before(again) || !o.watched {
			if o.watched {
				c := &d.Components[o.first]
				c.Next, d.Next = earliest(c.Next, again), earliest(d.Next, again)
			}
			return
		}
	case record != nil && record.State == o.State:
		return
	}
	d.Actions = append(d.Actions, o.SetDeployment)
}

func (d *Decision) addDeploymentReason(o *landing, text string) {
	for _, i := range o.all {
		d.Components[i].Env(o.Environment).addReason(cause.Deployments, text)
	}
}

// retireDeployments has the forge show that something else is there by now. As on GitHub, what
// was a success stays one until what took its place is one, and what wasn't one stays what it
// was. Where what took its place is shown by no deployment, it is over at once.
func (d *Decision) retireDeployments(f *Facts, env string, landings []landing) {
	for _, r := range f.Deployments.Records[env] {
		if slices.ContainsFunc(landings, func(o landing) bool { return o.Commit == r.Commit }) || r.Refused != "" {
			continue
		}
		newer := slices.DeleteFunc(slices.Clone(landings), func(o landing) bool { return !o.At.After(r.At) })
		over := len(newer) == 0 || slices.ContainsFunc(newer, func(o landing) bool { return o.State == DeploymentSuccess })
		switch r.State {
		case DeploymentFailure, DeploymentError, DeploymentInactive:
			continue
		case DeploymentInProgress:
			over = true // nobody verifies it any more
		}
		if over {
			d.Actions = append(d.Actions, SetDeployment{Environment: env, Commit: r.Commit, At: r.At, State: DeploymentInactive,
				Reason: "something else is in " + env + " by now"})
		}
	}
}

// findDeployment finds what the forge was told of a commit; nil where it was told nothing.
func (f *Facts) findDeployment(env, commit string) *DeploymentRecord {
	records := f.Deployments.Records[env]
	i := slices.IndexFunc(records, func(r DeploymentRecord) bool { return r.Commit == commit })
	if i < 0 {
		return nil
	}
	return &records[i]
}

// DeploymentTask tells the deployments of a unit from others in the same environment of a
// forge.
func DeploymentTask(u Unit) string {
	return "liftlock:" + u.Pipeline + "/" + u.Component
}
