package story

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/liftlock/liftlock/internal/console/api"
)

// StateReader asks a server's API what it makes of an environment.
func StateReader(server string) func(context.Context, string) (*api.Environment, error) {
	return func(ctx context.Context, env string) (*api.Environment, error) {
		q := url.Values{"pipeline": {Pipeline}, "component": {Component}, "environment": {env}}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/why?"+q.Encode(), nil)
		if err != nil {
			return nil, err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close() // it was read
		if res.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("GET /api/v1/why: HTTP %d", res.StatusCode)
		}
		var why api.Why
		if err := json.NewDecoder(res.Body).Decode(&why); err != nil {
			return nil, fmt.Errorf("GET /api/v1/why: %w", err)
		}
		if len(why.Environments) != 1 {
			return nil, fmt.Errorf("GET /api/v1/why: %d environments", len(why.Environments))
		}
		return &why.Environments[0].Environment, nil
	}
}
