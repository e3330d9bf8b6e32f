package console

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/promotion/stored"
	"github.com/liftlock/liftlock/internal/store/record"
)

// readAvailable reads what registries have and source environments haven't, by the unit's key and the environment.
func (r *reader) readAvailable(ctx context.Context) (map[string]map[string]stored.Available, error) {
	all, err := stored.AvailableVersions.List(ctx, r.store.all, record.Within{})
	if err != nil {
		return nil, err
	}
	out := make(map[string]map[string]stored.Available, len(all))
	for _, one := range all {
		key := unitKey(promotion.Unit(one.About.Unit))
		if out[key] == nil {
			out[key] = map[string]stored.Available{}
		}
		out[key][one.About.Name] = one.Value
	}
	return out, nil
}

func isSameAvailable(a, b stored.Available) bool { return a.IsEqual(&b) }

// writeAvailable writes what is available, so that a snapshot with something else has another version.
func writeAvailable(w io.Writer, available map[string]stored.Available) {
	for _, environment := range slices.Sorted(maps.Keys(available)) {
		a := available[environment]
		for _, v := range a.Versions {
			fmt.Fprintf(w, "%q %q %q %q %d\n", environment, v.Name, v.Version, v.Reason, v.Since.UnixMicro())
		}
		fmt.Fprintf(w, "%d\n", a.More)
	}
}

// addAvailable adds to a component's environments what is available besides, in the words of its forge.
func addAvailable(c *api.Component, available map[string]stored.Available, words func(string) string) {
	for i := range c.Environments {
		e := &c.Environments[i]
		a, ok := available[e.Environment]
		if !ok {
			continue
		}
		for _, v := range a.Versions {
			v.Reason = words(v.Reason)
			e.Available = append(e.Available, api.AvailableVersion(v))
		}
		e.MoreAvailable = a.More
	}
}
