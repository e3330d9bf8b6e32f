package argocd

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/liftlock/liftlock/internal/argocd/api"
)

// apiList keeps a sink up to date with what there are few of, by listing it again and
// again: ApplicationSets and projects.
type apiList struct {
	feedState
	client   *api.Client
	which    string
	sink     sink
	interval time.Duration
	onListed func(ctx context.Context) error // called with each list that was read; nil: nobody is
}

// run lists until ctx ends.
func (a *apiList) run(ctx context.Context) {
	for {
		err := a.listAll(ctx)
		if ctx.Err() != nil {
			return
		}
		pause := a.interval
		if err != nil {
			a.recordTrouble(fmt.Errorf("%s: %w", a.title, err), api.IsForbidden(err))
			a.markBroken()
			if api.IsForbidden(err) {
				pause = optionalRetry
			}
		} else {
			a.markAlive()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

func (a *apiList) listAll(ctx context.Context) error {
	listed := map[string]bool{}
	err := a.visitAll(ctx, "", "", func(raw json.RawMessage) error {
		if key, put := a.sink.decodeObject(raw); key != "" {
			listed[key] = true
			put()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(listed) == 0 {
		if err := checkMaySee(ctx, a.client, a.which); err != nil {
			return err
		}
	}
	if a.onListed != nil {
		if err := a.onListed(ctx); err != nil {
			return err
		}
	}
	for _, key := range a.sink.listKeys("") {
		if !listed[key] {
			a.sink.dropObject(key)
		}
	}
	a.changeState(func(f *feedState) { f.listed, f.lastErr = true, nil })
	return nil
}

// covers says that a namespace's objects may be among those that are seen.
func (a *apiList) covers(string) bool { return true }

// visitAll lists the objects anew; there is nothing to choose them by.
func (a *apiList) visitAll(ctx context.Context, _, _ string, visit func(json.RawMessage) error) error {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	body, err := a.client.List(ctx, a.which)
	return visitList(body, err, a.title, visit)
}

// listClustersByAPI lists the clusters that the API tells of. Their credentials aren't among what
// it tells. The cluster that Argo CD runs in is always one of them. Where no Secret describes it,
// it has no labels, and generators don't find it.
func listClustersByAPI(ctx context.Context, client *api.Client) ([]Cluster, error) {
	out := []Cluster{}
	body, err := client.List(ctx, api.Clusters)
	err = visitList(body, err, "list clusters", func(raw json.RawMessage) error {
		var c struct {
			Name        string            `json:"name"`
			Server      string            `json:"server"`
			Project     string            `json:"project"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		}
		if err := json.Unmarshal(raw, &c); err != nil || c.Server == "" {
			return fmt.Errorf("list clusters: one of them can't be read")
		}
		if c.Name == "in-cluster" && len(c.Labels) == 0 && len(c.Annotations) == 0 {
			return nil
		}
		labels := map[string]string{clusterLabel: clusterLabelValue} // which the API leaves out
		maps.Copy(labels, c.Labels)
		delete(c.Annotations, lastApplied)
		out = append(out, Cluster{Secret: "cluster-" + c.Name, Name: c.Name, Server: c.Server, Project: c.Project, Labels: labels,
			Annotations: c.Annotations})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		if err := checkMaySee(ctx, client, api.Clusters); err != nil {
			return nil, err
		}
	}
	return out, nil
}
