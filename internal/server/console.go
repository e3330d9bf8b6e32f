package server

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/liftlock/liftlock/internal/console"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/controller"
	"github.com/liftlock/liftlock/internal/forge"
	"github.com/liftlock/liftlock/internal/promotion"
	"github.com/liftlock/liftlock/internal/server/config"
)

// newConsole builds the pages and the API.
func (s *Server) newConsole(ctx context.Context) (*console.Console, error) {
	tokens, err := s.consoleTokens(ctx)
	if err != nil {
		return nil, err
	}
	signIn, err := newLogin(s.o.Config, len(tokens) > 0, s.o.Clock.Now)
	if err != nil {
		return nil, err
	}
	s.login = signIn
	return console.New(console.Options{Store: s.store, Login: signIn, Health: s.listTroubles, Command: s.runCommand,
		Differences: s.compareLive, Diff: s.renderDiff, Tokens: tokens,
		CommitURL: s.commitURL, ApplicationURL: s.applicationURL,
		Readers:   s.newAccess(),
		ReadToken: s.o.Config.ReadAccess != config.ReadOpen, Client: s.clients.clientOf,
		ExternalURL: s.o.Config.ExternalURL, Version: s.o.Version, Now: s.o.Clock.Now, Log: s.log.Named("console"), Caches: &s.caches})
}

// commitURL is the forge's page of a commit or, with a base, of what it has and the base
// hasn't; empty where the repository isn't known.
func (s *Server) commitURL(repository, base, commit string) string {
	name, path, _ := strings.Cut(repository, ":")
	f, i := s.forges[name], strings.LastIndexByte(path, '/')
	if f == nil || i < 0 {
		return ""
	}
	repo := forge.Repo{Owner: path[:i], Name: path[i+1:]}
	if base != "" {
		return f.CompareURL(repo, base, commit)
	}
	return f.CommitURL(repo, commit)
}

// applicationURL is the page of an Application, given as namespace/name, in an Argo CD whose
// API's address is known; else empty.
func (s *Server) applicationURL(argocd, application string) string {
	for i := range s.o.Config.ArgoCD {
		if a := &s.o.Config.ArgoCD[i]; a.Name == argocd && a.API != nil {
			return strings.TrimRight(a.API.URL, "/") + "/applications/" + application
		}
	}
	return ""
}

// runCommand hands an order of the API to the engine.
func (s *Server) runCommand(ctx context.Context, o console.Command) (string, error) {
	e := s.runningEngine()
	if e == nil {
		return "", console.ErrNotReady
	}
	answer, err := e.ExecuteCommand(ctx, controller.Command{
		Unit: promotion.Unit{Repo: o.Repo, Pipeline: o.Pipeline, Component: o.Component}, Pull: o.Pull,
		Command: o.Grammar(),
		By:      o.By, Subject: o.Subject, Account: o.Account, Role: o.Role, Via: o.Via, Source: o.Source, Head: o.Head,
	})
	var refused *controller.RefusedError
	if errors.As(err, &refused) {
		return "", &console.Refusal{Reason: refused.Why}
	}
	return answer, err
}

// listTroubles are what keeps Liftlock from working as a whole, for the console.
func (s *Server) listTroubles(ctx context.Context) []api.Trouble {
	out := s.health.listTroubles()
	for i := range out {
		s.attributeTrouble(&out[i])
	}
	for _, p := range append(s.argocdStatuses(), s.clusterFileStatuses()...) {
		if p.err != nil {
			out = append(out, api.Trouble{General: true, Part: p.name, Message: p.err.Error()})
		}
	}
	if e := s.runningEngine(); e != nil {
		for repo, why := range e.PipelineErrors() {
			out = append(out, api.Trouble{Repository: repo, Part: "pipeline file of " + repo, Message: why})
		}
		for id, why := range e.EmptyPipelines() {
			out = append(out, api.Trouble{Repository: id.Repo, Part: "pipeline " + id.Name + " of " + id.Repo, Message: why})
		}
		for repo, f := range e.DeploymentRefusals() {
			out = append(out, api.Trouble{Repository: repo, Part: "deployments of " + repo, Message: f.Reason, Since: f.Since})
		}
		out = append(out, proposalTroubles(ctx, e)...)
		for key, f := range e.FailingRuns() {
			out = append(out, api.Trouble{Repository: repositoryOfKey(key), Part: describeKey(key),
				Message: fmt.Sprintf("%s (tried again at %s)", f.Err, f.RetryAt.UTC().Format(time.RFC3339)), Since: f.Since})
		}
	}
	if s.login != nil && s.login.Provider != nil {
		if why, since := s.login.Provider.Failure(); why != "" {
			out = append(out, api.Trouble{General: true, Part: "login", Message: why, Since: since})
		}
	}
	for name, f := range s.notifier.Failures() {
		out = append(out, api.Trouble{General: true, Part: "channel " + name, Message: f.Err, Since: f.Since})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Part < out[j].Part })
	return out
}

// describeKey names a key of the queue for people.
func describeKey(key string) string {
	kind, rest, _ := strings.Cut(key, ":")
	switch kind {
	case "repo":
		return "fetching " + rest
	case "unit":
		return "component " + strings.ReplaceAll(rest, "|", " ")
	case "pr":
		return "pull request " + rest
	case "merge":
		return "merging in " + rest
	case "sweep":
		return "sweep of " + rest
	case "hook":
		return "webhook of " + rest
	case "onboard":
		return "proposing a pipeline file to " + rest
	}
	return key
}

// listTroubles lists the troubles.
func (h *health) listTroubles() []api.Trouble {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []api.Trouble
	for part, t := range h.troubles {
		out = append(out, api.Trouble{Part: part, Message: t.why, Since: t.since})
	}
	return out
}

// trouble is one of them.
type trouble struct {
	why   string
	since time.Time
}
