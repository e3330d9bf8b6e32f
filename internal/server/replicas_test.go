package server_test

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/emulator"
	"github.com/liftlock/liftlock/internal/server"
	"github.com/liftlock/liftlock/internal/store/storetest"
)

// startReplica runs one more server on the scene's database, with files of its own, until
// the test's end.
func (s *harness) startReplica(name string) {
	s.t.Helper()
	o := s.serverOptions(zap.NewNop().Core())
	o.Config.Listen, o.Config.DataDir = "127.0.0.1:0", filepath.Join(s.dir, name)
	srv, err := server.New(context.Background(), o)
	s.must("build "+name, err)
	s.t.Cleanup(s.run(srv))
}

// The benchmark's forge is far away, as forges are, and a replica has few workers: the
// forge and Argo CD share its processors. A repository's merges come one after the other,
// whoever makes them, so there are several.
const (
	replicaRepositories = 10
	replicaComponents   = 12 // of each
	replicaLatency      = 50 * time.Millisecond
	replicaWorkers      = 2
	replicaPatience     = 20 * time.Minute
)

// replicaTimings are those of an Argo CD that doesn't look at what is quiet a hundred
// times a second: it runs on the replicas' processors.
func replicaTimings() emulator.Timings {
	t := emulator.FastTimings()
	t.Tick, t.Resync = 100*time.Millisecond, 2*time.Minute
	return t
}

// BenchmarkReplicas promotes the components of several repositories on one PostgreSQL, by
// one replica and by three.
func BenchmarkReplicas(b *testing.B) {
	for _, replicas := range []int{1, 3} {
		b.Run(fmt.Sprintf("replicas=%d", replicas), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				promoteWithReplicas(b, replicas)
				b.StartTimer()
			}
			b.ReportMetric(float64(b.N*replicaRepositories*replicaComponents)/b.Elapsed().Seconds(), "promotions/s")
		})
	}
}

// benchedRepository is one of several repositories.
type benchedRepository struct {
	name       string
	components []string
}

// addRepository makes a repository whose components the server's one Argo CD deploys too.
func (s *harness) addRepository(f benchedRepository, set string) {
	s.t.Helper()
	files := map[string]string{".liftlock.yaml": s.opts.pipeline,
		"argocd/shop.yaml": strings.NewReplacer("REPO", s.Forge.URL()+"/"+f.name+".git", "name: shop", "name: "+set).Replace(applicationSetTemplate)}
	s.addComponentFiles(files, f.components)
	s.must("make "+f.name, s.Forge.CreateRepo(f.name, emulator.RepoOptions{Author: "linus", Message: "Overlays", Files: files, Access: map[string]emulator.Permission{bot: emulator.Admin, "linus": emulator.Write}}))
	for _, c := range f.components {
		for _, env := range s.environmentNames() {
			s.must("add an Application", s.ArgoCD.AddApplication(emulator.AppSpec{Name: c + "-" + env, Repo: f.name, Path: overlayPath(c, env),
				DestinationNamespace: c + "-" + env, Cluster: "https://kubernetes.default.svc", ApplicationSet: set}))
		}
	}
}

func promoteWithReplicas(b *testing.B, replicas int) {
	var repositories []benchedRepository
	lines := ""
	for i := range replicaRepositories {
		f := benchedRepository{name: fmt.Sprintf("acme/fleet-%d", i)}
		for k := range replicaComponents {
			f.components = append(f.components, fmt.Sprintf("c%d-%d", i, k))
		}
		repositories, lines = append(repositories, f), lines+fmt.Sprintf("  - {forge: hub, name: %s}\n", f.name)
	}
	s := newHarness(b, harnessOptions{store: storetest.PostgresSchema(b), timings: replicaTimings(), seams: server.Seams{Workers: replicaWorkers}, repositoryLines: lines,
		pipeline: pipelineYAML([]string{"limits: {openPerEnvironment: 1000, mergesPerHour: 10000}"}, dev, qa)})
	for i, f := range repositories {
		s.addRepository(f, fmt.Sprintf("shop-%d", i))
	}
	s.start()
	for _, f := range repositories {
		s.must("make a hook", s.Forge.AddHook(f.name, bot, emulator.Hook{URL: s.url + "/webhooks/hub", Secret: secret, Active: true}))
	}
	for i := 1; i < replicas; i++ {
		s.startReplica(fmt.Sprintf("replica-%d", i))
	}
	for _, f := range repositories {
		s.awaitAllJudged(f)
	}
	s.Forge.SetLatency(replicaLatency)
	b.StartTimer()
	for _, f := range repositories {
		files := map[string]string{}
		for _, c := range f.components {
			files[overlayPath(c, "dev")+"/kustomization.yaml"] = strings.NewReplacer("NAME", c, "TAG", "1.1.0").Replace(kustomizationTemplate)
		}
		_, err := s.Forge.LandAs(f.name, "linus", "main", "Release", files)
		s.must("release", err)
	}
	s.awaitAllMerged(repositories)
	b.StopTimer()
	s.stop()
}

// awaitAllJudged waits until every component of a repository was looked at.
func (s *harness) awaitAllJudged(f benchedRepository) {
	s.t.Helper()
	for _, c := range f.components {
		s.waitFor("the server looks at "+c, func() (bool, string) {
			var why api.Why
			q := url.Values{"repository": {"hub:" + f.name}, "pipeline": {"shop"}, "component": {c}, "environment": {"dev"}}
			if _, err := s.getJSON("/api/v1/why?"+q.Encode(), &why); err != nil {
				return false, err.Error()
			}
			return len(why.Environments) == 1, c
		})
	}
}

// awaitAllMerged waits until a pull request of each component is merged.
func (s *harness) awaitAllMerged(repositories []benchedRepository) {
	s.t.Helper()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	deadline := time.Now().Add(replicaPatience)
	for _, f := range repositories {
		for merged := -1; merged < len(f.components); <-tick.C {
			pulls, err := s.Forge.Pulls(f.name)
			s.must("list the pull requests", err)
			merged = 0
			for _, p := range pulls {
				if p.Merged {
					merged++
				}
			}
			if time.Now().After(deadline) {
				s.t.Fatalf("%s: %d of %d are merged", f.name, merged, len(f.components))
			}
		}
	}
}
