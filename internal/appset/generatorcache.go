package appset

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argoproj/argo-cd/v2/applicationset/generators"
	argov1alpha1 "github.com/argoproj/argo-cd/v2/pkg/apis/application/v1alpha1"

	"github.com/liftlock/liftlock/internal/cache"
)

const (
	// answerTimeout bounds the wait for one answer of the network.
	answerTimeout = 30 * time.Second
	// retryInterval is when a question is asked again that wasn't answered.
	retryInterval = time.Minute
	// minAnswerAge bounds how often a set's requeueAfterSeconds can have a
	// question asked, and defaultAnswerAge is when it is asked again without one.
	minAnswerAge     = 30 * time.Second
	defaultAnswerAge = 30 * time.Minute
	// maxCachedAnswers bounds how many replies are held.
	maxCachedAnswers = 4096
)

// generatorCache holds what forges, plugins and clusters answered to generators
// until it is time to request it again: every resolution of a busy repository
// would otherwise cost calls. It is safe for concurrent use.
type generatorCache struct {
	now     func() time.Time
	answers *cache.Cache[string, *cachedAnswer]
	pending singleflight.Group
}

// cachedAnswer is one answer, and how long it is good.
type cachedAnswer struct {
	until  time.Time
	params []map[string]any
	err    error
}

func newGeneratorCache(group *cache.Group, now func() time.Time) *generatorCache {
	return &generatorCache{now: now, answers: cache.New(group, cache.Options[string, *cachedAnswer]{Name: "appset-generators",
		Entries: maxCachedAnswers})}
}

// fetchParams returns the answer to a question, and how long it is good for. The library gives no
// way to end its calls, so a question that isn't answered in time goes on by itself. It isn't put a
// second time meanwhile, and its answer counts when it comes.
func (g *generatorCache) fetchParams(ctx context.Context, key string, every time.Duration,
	question func() ([]map[string]any, error)) (params []map[string]any, left time.Duration, err error) {
	select {
	case done := <-g.pending.DoChan(key, func() (any, error) { return g.reuseOrRequest(key, every, question), nil }):
		answer, _ := done.Val.(*cachedAnswer)
		return copyParams(answer.params), max(minAnswerAge, answer.until.Sub(g.now())), answer.err
	case <-time.After(answerTimeout):
		return nil, retryInterval, fmt.Errorf("%w: no answer within %s", errTimedOut, answerTimeout)
	case <-ctx.Done():
		return nil, retryInterval, fmt.Errorf("%w: no answer yet", errTimedOut)
	}
}

func (g *generatorCache) reuseOrRequest(key string, every time.Duration, question func() ([]map[string]any, error)) (answer *cachedAnswer) {
	if known, ok := g.answers.Get(key); ok && g.now().Before(known.until) {
		return known
	}
	answer = &cachedAnswer{}
	defer func() {
		if p := recover(); p != nil {
			answer.params, answer.err = nil, fmt.Errorf("%w: %v", errPanicked, p)
		}
		if answer.err != nil {
			every = min(every, retryInterval)
		}
		answer.until = g.now().Add(every)
		g.answers.Put(key, answer)
	}()
	answer.params, answer.err = question()
	return answer
}

// generatorAccess is one set's way to the replies.
type generatorAccess struct {
	ctx      context.Context // the library drops the caller's
	cache    *generatorCache
	waitIdle func(wait func()) // runs wait without taking part in the work that is bounded
	scope    *scopeRun         // the set's; nil until it runs

	mu           sync.Mutex
	refreshAfter time.Duration // when the first answer is to be asked again; 0: nothing was asked
}

// nextRefresh is when another answer may be had; 0: nothing was asked.
func (g *generatorAccess) nextRefresh() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refreshAfter
}

// cachedGenerator is a generator of the library that asks the network.
type cachedGenerator struct {
	generators.Generator
	kind, argocd string
	access       *generatorAccess
}

// GenerateParams returns what the generator was answered, requesting it if it is time to.
func (cg *cachedGenerator) GenerateParams(spec *argov1alpha1.ApplicationSetGenerator, set *argov1alpha1.ApplicationSet,
	c client.Client) ([]map[string]any, error) {
	if spec == nil {
		return nil, generators.EmptyAppSetGeneratorError
	}
	if err := withoutOurToken(spec); err != nil {
		return nil, fmt.Errorf("asking %s: %w", cg.kind, err)
	}
	// The key has all that the answer depends on: a matrix asks the same generator with other
	// parameters, and a values block is part of it.
	key, err := json.Marshal([]any{
		cg.kind, cg.argocd, set.Namespace, set.Name, set.Spec.GoTemplate, set.Spec.GoTemplateOptions,
		spec.SCMProvider, spec.PullRequest, spec.Plugin, spec.ClusterDecisionResource,
	})
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", cg.kind, err)
	}
	// They outlive the call if the answer is late.
	spec, set = spec.DeepCopy(), set.DeepCopy()
	every := max(minAnswerAge, cmp.Or(cg.GetRequeueAfter(spec), defaultAnswerAge))
	var params []map[string]any
	var left time.Duration
	cg.access.waitIdle(func() {
		params, left, err = cg.access.cache.fetchParams(cg.access.ctx, string(key), every, func() ([]map[string]any, error) {
			return cg.Generator.GenerateParams(spec, set, c)
		})
	})
	cg.access.mu.Lock()
	cg.access.refreshAfter = earliestNonZero(cg.access.refreshAfter, left)
	cg.access.mu.Unlock()
	if err != nil && !errors.Is(err, generators.EmptyAppSetGeneratorError) {
		return nil, fmt.Errorf("asking %s: %w", cg.kind, err)
	}
	return params, err
}

// withoutOurToken refuses a generator that has no token of its own while this process has one in
// its environment. The library would send that token, which is likely Liftlock's, to whatever
// address the generator names.
func withoutOurToken(spec *argov1alpha1.ApplicationSetGenerator) error {
	bare := map[string]bool{} // by the variable that stands in
	if s := spec.SCMProvider; s != nil {
		bare["GITHUB_TOKEN"] = s.Github != nil && s.Github.TokenRef == nil && s.Github.AppSecretName == ""
		bare["GITLAB_TOKEN"] = s.Gitlab != nil && s.Gitlab.TokenRef == nil
		bare["GITEA_TOKEN"] = s.Gitea != nil && s.Gitea.TokenRef == nil
	}
	if p := spec.PullRequest; p != nil {
		bare["GITHUB_TOKEN"] = bare["GITHUB_TOKEN"] || p.Github != nil && p.Github.TokenRef == nil && p.Github.AppSecretName == ""
		bare["GITLAB_TOKEN"] = bare["GITLAB_TOKEN"] || p.GitLab != nil && p.GitLab.TokenRef == nil
		bare["GITEA_TOKEN"] = bare["GITEA_TOKEN"] || p.Gitea != nil && p.Gitea.TokenRef == nil
	}
	for _, variable := range []string{"GITHUB_TOKEN", "GITLAB_TOKEN", "GITEA_TOKEN"} {
		if bare[variable] && os.Getenv(variable) != "" {
			return fmt.Errorf("it has no tokenRef, and Argo CD's library would send the %s of Liftlock's own environment: give it a "+
				"tokenRef, or give Liftlock its token in a file or under another name", variable)
		}
	}
	return nil
}

// earliestNonZero is the smaller of two times, of which 0 means never.
func earliestNonZero(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// copyParams copies what the library writes into.
func copyParams(list []map[string]any) []map[string]any {
	if list == nil {
		return nil
	}
	out := make([]map[string]any, len(list))
	for i, m := range list {
		out[i] = copyValue(m).(map[string]any)
	}
	return out
}

func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = copyValue(value)
		}
		return out
	case map[string]string:
		return maps.Clone(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copyValue(v[i])
		}
		return out
	}
	return v
}
