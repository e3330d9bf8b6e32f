package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/pipeline/strictyaml"
)

// Wait is which promotion is waited for, and how.
type Wait struct {
	Repository, Pipeline, Component, Environment string

	Every time.Duration // between two looks
	// Grace is how long a promotion that was on its way before the request isn't taken for its
	// answer while nothing has become of it. A server records a command, and then carries it out.
	Grace time.Duration
	// Report is told what the promotion does, each time that this is something else.
	Report func(text string)
}

// ErrNotVerified says that a promotion came to another end than being verified.
var ErrNotVerified = errors.New("the release is not verified")

// The ends of a promotion and of what it brought, as the API names them.
var (
	failedStates  = []string{"degraded", "failed", "reverting", "reverted"}
	blockedStates = []string{"held", "closed"}
)

// maxSilence is how many looks in a row may fail, as while a server is replaced.
const maxSilence = 10

// WaitForPromotion waits until the release that comes into an environment is verified there. It
// begins after a promotion was asked for: the release is the first one that is seen on its way, or
// that has come since before. The error is ErrNotVerified, wrapped with the reason, where the
// promotion is held or closed, or the release degrades or fails. Otherwise it is the context's or
// that of a server that is silent.
func (c *Client) WaitForPromotion(ctx context.Context, w Wait, before *api.Environment) error {
	ticker := time.NewTicker(w.Every)
	defer ticker.Stop()
	release, last, silent, looks := "", "", 0, 0
	for {
		e, err := c.Environment(ctx, w.Repository, w.Pipeline, w.Component, w.Environment)
		var refused *Refused
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused) && refused.Status < http.StatusInternalServerError:
			return err
		case err != nil:
			if silent++; silent >= maxSilence {
				return err
			}
		default:
			silent = 0
			if release == "" {
				release = awaitedRelease(e, before, time.Duration(looks)*w.Every >= w.Grace)
			}
			looks++
			text, done, err := progressOf(e, release)
			if text != last {
				w.Report(text)
				last = text
			}
			if done || err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Environment is one environment of a component, as it is.
func (c *Client) Environment(ctx context.Context, repository, pipeline, component, environment string) (*api.Environment, error) {
	p, err := c.Pipeline(ctx, repository, pipeline)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range p.Components {
		if names = append(names, p.Components[i].Component); p.Components[i].Component != component {
			continue
		}
		for j := range p.Components[i].Environments {
			if e := &p.Components[i].Environments[j]; e.Environment == environment {
				return e, nil
			}
		}
		return nil, refuseEnvironment(p, environment)
	}
	return nil, &Refused{http.StatusNotFound, fmt.Sprintf("%s has no component %q%s", pipeline, component,
		strictyaml.DidYouMean(component, names))}
}

// refuseEnvironment says which environment may have been meant.
func refuseEnvironment(p *api.Pipeline, name string) error {
	return &Refused{http.StatusNotFound, fmt.Sprintf("%s has no environment %q%s", p.Name, name,
		cmp.Or(strictyaml.DidYouMean(name, p.Environments), "; it has "+strings.Join(p.Environments, ", ")))}
}

// CheckNames says of names that choose nothing that there are none such, and which may have been
// meant. An empty name is not checked.
func (c *Client) CheckNames(ctx context.Context, repository, pipeline, component, environment string) error {
	if pipeline == "" {
		return nil
	}
	p, err := c.Pipeline(ctx, repository, pipeline)
	if err == nil && component != "" {
		_, err = c.Why(ctx, repository, pipeline, component, environment)
	}
	var refused *Refused
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusConflict: // several have it
		return nil
	case err != nil || environment == "" || slices.Contains(p.Environments, environment):
		return err
	}
	return refuseEnvironment(p, environment)
}

// awaitedRelease is the release that is on its way, or that came since before; "" while none is.
// One that was on its way before, just as it is now, is it only when it is late.
func awaitedRelease(e, before *api.Environment, late bool) string {
	switch {
	case e.Incoming != nil && e.Incoming.Release != "" && (late || !isSameIncoming(e.Incoming, before.Incoming)):
		return e.Incoming.Release
	case e.Release != before.Release:
		return e.Release
	}
	return ""
}

// isSameIncoming says whether nothing has become of what is on its way, whatever its gates say.
func isSameIncoming(now, before *api.Incoming) bool {
	if now == nil || before == nil {
		return now == before
	}
	number := func(i *api.Incoming) int {
		if i.Pull == nil {
			return 0
		}
		return i.Pull.Number
	}
	return now.State == before.State && now.Release == before.Release && number(now) == number(before)
}

// progressOf says what becomes of a release in an environment, and whether that is the end.
func progressOf(e *api.Environment, release string) (text string, done bool, err error) {
	switch {
	case release == "":
		return "waiting for the pull request", false, nil
	case e.Release == release && e.State == "verified":
		return fmt.Sprintf("%s is verified in %s", replaceUnprintable(e.Name), e.Environment), true, nil
	case e.Release == release && slices.Contains(failedStates, e.State), e.Revert != nil && e.Release == release:
		return fmt.Sprintf("%s is %s in %s", replaceUnprintable(e.Name), e.State, e.Environment), true,
			fmt.Errorf("%w: %s", ErrNotVerified, replaceUnprintable(e.Reason))
	case e.Release == release:
		return fmt.Sprintf("%s is in %s, %s: %s", replaceUnprintable(e.Name), e.Environment, e.State, replaceUnprintable(e.Reason)), false,
			nil
	case e.Incoming == nil:
		return "the release isn't on its way any more", true, fmt.Errorf("%w: nothing is on its way into %s; see liftlock why",
			ErrNotVerified, e.Environment)
	case e.Incoming.Release != release:
		return fmt.Sprintf("%s comes instead", replaceUnprintable(e.Incoming.Name)), true,
			fmt.Errorf("%w: a newer release took its place; wait for that one", ErrNotVerified)
	case slices.Contains(blockedStates, e.Incoming.State):
		return fmt.Sprintf("%s is %s", replaceUnprintable(e.Incoming.Name), e.Incoming.State), true,
			fmt.Errorf("%w: its pull request is %s", ErrNotVerified, e.Incoming.State)
	}
	text = fmt.Sprintf("%s %s", replaceUnprintable(e.Incoming.Name), e.Incoming.State)
	if e.Incoming.Pull != nil {
		text += fmt.Sprintf(" %s", e.Incoming.Pull)
	}
	for _, g := range e.Incoming.Gates {
		if g.Outcome != "pass" {
			text += fmt.Sprintf("; %s: %s", replaceUnprintable(g.Gate), replaceUnprintable(g.Reason))
		}
	}
	return text, false, nil
}
