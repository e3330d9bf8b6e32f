package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

var (
	pullNumber = regexp.MustCompile(`^[#!]?([1-9][0-9]{0,8})$`)
	// pullAddressPath is the end of a pull request's address on GitHub, GitLab and Gitea; behind it
	// may be one of its tabs.
	pullAddressPath = regexp.MustCompile(`^/(.+?)(?:/-)?/(?:pull|pulls|merge_requests)/([1-9][0-9]{0,8})(?:/.*)?$`)
)

// IsPull says that an argument names a pull request: 14, #14, !14, or its address.
func IsPull(name string) bool { return pullNumber.MatchString(name) || strings.Contains(name, "://") }

// maxOfPull is how many promotions of one pull request's number are read: a batch has several, and
// several repositories may have that number.
const maxOfPull = 500

// FindPull is what a pull request moves, by its number or address: the promotion, or those of a
// batch. The error says which repositories may be meant where several have that number.
func (c *Client) FindPull(ctx context.Context, repository, name string) ([]api.Promotion, error) {
	number, matches := "", func(*api.Promotion) bool { return true }
	switch found := pullNumber.FindStringSubmatch(name); {
	case found != nil:
		number = found[1]
	case strings.Contains(name, "://"):
		u, err := url.Parse(name)
		if err != nil {
			return nil, fmt.Errorf("%.200q is no address of a pull request", name)
		}
		parts := pullAddressPath.FindStringSubmatch(u.Path)
		if parts == nil {
			return nil, fmt.Errorf("%.200q is no address of a pull request, like https://git.example.com/acme/deploy/pull/14", name)
		}
		number, matches = parts[2], func(p *api.Promotion) bool { return isPullAt(p, u.Host, parts[1]) }
	default:
		return nil, fmt.Errorf("%q is no pull request: give its number, as 14, or its address", name)
	}
	page, err := getJSON[api.Promotions](ctx, c, url.Values{"repository": {repository}, "pull": {number},
		"limit": {strconv.Itoa(maxOfPull)}}, "promotions")
	if err != nil {
		return nil, err
	}
	var found []api.Promotion
	var repositories []string
	for _, p := range page.Promotions {
		if !matches(&p) {
			continue
		}
		found = append(found, p)
		if !slices.Contains(repositories, p.Repository) {
			repositories = append(repositories, p.Repository)
		}
	}
	switch len(repositories) {
	case 0:
		return nil, fmt.Errorf("no promotion is known with the pull request %s", name)
	case 1:
		return found, nil
	}
	return nil, fmt.Errorf("several repositories have a pull request %s: %s; give its address, or --repository", name,
		strings.Join(repositories, ", "))
}

// isPullAt says whether a promotion's pull request is one of the repository at a path of a host.
// Where its own address isn't known, the repository's name says so.
func isPullAt(p *api.Promotion, host, path string) bool {
	if p.Pull != nil && p.Pull.URL != "" {
		u, err := url.Parse(p.Pull.URL)
		if err != nil || !strings.EqualFold(u.Host, host) {
			return false
		}
		parts := pullAddressPath.FindStringSubmatch(u.Path)
		return parts != nil && strings.EqualFold(parts[1], path)
	}
	_, name, _ := strings.Cut(p.Repository, ":")
	return strings.EqualFold(name, path) || strings.HasSuffix(strings.ToLower(path), "/"+strings.ToLower(name))
}

// Location is an environment of a component, as it is.
type Location struct {
	Repository, Pipeline, Component string
	Environment                     *api.Environment
}

// FindLocation reads an environment of a component. The pipeline may be left out where one alone has
// such a component and environment.
func (c *Client) FindLocation(ctx context.Context, repository, pipeline, component, environment string) (*Location, error) {
	if pipeline != "" {
		return c.readLocation(ctx, repository, pipeline, component, environment)
	}
	all, err := c.Pipelines(ctx)
	if err != nil {
		return nil, err
	}
	var found []*Location
	var environments []string
	var missing error
	for _, p := range all.Pipelines {
		if environments = append(environments, p.Environments...); repository != "" && p.Repository != repository ||
			!slices.Contains(p.Environments, environment) {
			continue
		}
		at, err := c.readLocation(ctx, p.Repository, p.Name, component, environment)
		var refused *Refused
		switch {
		case err == nil:
			found = append(found, at)
		case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
			missing = err
		default:
			return nil, err
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && missing != nil:
		return nil, missing
	case len(found) == 0:
		return nil, fmt.Errorf("there is no environment %q%s", environment, strictyaml.DidYouMean(environment, environments))
	}
	var pipelines []string
	for _, at := range found {
		pipelines = append(pipelines, at.Pipeline+" ("+at.Repository+")")
	}
	return nil, fmt.Errorf("several pipelines have %s in %s: %s; name the pipeline before them", component, environment,
		strings.Join(pipelines, ", "))
}

func (c *Client) readLocation(ctx context.Context, repository, pipeline, component, environment string) (*Location, error) {
	y, err := c.Why(ctx, repository, pipeline, component, environment)
	if err != nil {
		return nil, err
	}
	if len(y.Environments) != 1 {
		return nil, fmt.Errorf("the server says nothing of %s in %s", component, environment)
	}
	return &Location{y.Repository, y.Pipeline, y.Component, &y.Environments[0].Environment}, nil
}
