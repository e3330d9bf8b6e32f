package checkout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/migrate"
	"github.com/liftlock/liftlock/internal/cli/propose"
)

// readMigrated reads the other tools' objects in the manifests that were named.
func (pq *ProposalQuery) readMigrated() (*migrate.Manifests, error) {
	out := &migrate.Manifests{}
	for _, f := range pq.From {
		if f.InFolder && !migrate.Mentions(f.Data) {
			continue
		}
		documents, err := readDocuments(f.Data)
		if err != nil && !f.InFolder {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		for i := 0; i < len(documents); i++ {
			documents = append(documents, itemsOf(documents[i])...)
			if err := out.Add(documents[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
	}
	return out, nil
}

// orderEnvironments orders the environments: as a person says, else as Kargo's Stages do, else by what names and history tell.
func (d *deployed) orderEnvironments() (err error) {
	p, order, why := &d.proposal, d.query.Order, ""
	if d.query.From != nil {
		if d.migrated, err = d.query.readMigrated(); err != nil {
			return err
		}
	}
	if len(order) == 0 && d.migrated != nil {
		after, problem := d.migrated.FindUpstream(p.Assignment.Environments)
		if problem != "" {
			p.Notes = append(p.Notes, problem+".")
		}
		if after != nil {
			p.After, why = after, "that of Kargo's Stages"
			order = orderOf(after)
		}
	}
	p.Steps, p.OrderWhy, err = propose.OrderEnvironments(p.Assignment.Environments, p.Carried, order)
	p.OrderWhy = cmp.Or(why, p.OrderWhy)
	return err
}

// orderOf has each environment in the first step in which all before it are there, in the form of --order. There is no circle.
func orderOf(after map[string][]string) []string {
	var steps []string
	done := map[string]bool{}
	for len(done) < len(after) {
		var step []string
		for e, before := range after {
			if !done[e] && !slices.ContainsFunc(before, func(b string) bool { return !done[b] }) {
				step = append(step, e)
			}
		}
		slices.Sort(step)
		for _, e := range step {
			done[e] = true
		}
		steps = append(steps, strings.Join(step, "+"))
	}
	return steps
}

// migrate has the pipeline file say what other tools do, and notes what it can't say.
func (d *deployed) migrate(managed *appset.TargetSet) error {
	if d.migrated == nil {
		return nil
	}
	applications, err := applicationsOf(managed)
	if err != nil {
		return err
	}
	p := &d.proposal
	found := d.migrated.Migrate(applications, p.Assignment.Environments, p.Steps[0])
	p.Discover = map[string][]propose.DiscoverEntry{}
	for environment, rules := range found.Rules {
		for _, r := range rules {
			p.Discover[environment] = append(p.Discover[environment], propose.DiscoverEntry{Discovery: r.Discovery, From: r.From})
		}
	}
	p.Notes = append(p.Notes, found.Notes...)
	if len(found.Rules)+len(found.Notes) == 0 {
		p.Notes = append(p.Notes, "Nothing of Argo CD Image Updater and Kargo was found in what --from names, and in the Applications' "+
			"annotations.")
	}
	return nil
}

// applicationsOf are the targets with what their manifests say of other tools.
func applicationsOf(managed *appset.TargetSet) ([]migrate.Application, error) {
	out := make([]migrate.Application, len(managed.Targets))
	for i := range managed.Targets {
		t := &managed.Targets[i]
		var manifest struct {
			Metadata struct {
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(t.Application, &manifest); err != nil {
			return nil, fmt.Errorf("read the manifest of %s: %w", t.Name, err)
		}
		out[i] = migrate.Application{Namespace: t.Namespace, Name: t.Name, Environment: t.Environment,
			Labels: manifest.Metadata.Labels, Annotations: manifest.Metadata.Annotations}
	}
	return out, nil
}
