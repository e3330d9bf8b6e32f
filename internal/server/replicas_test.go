package server_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/server"
)

// postgresVariable names a PostgreSQL database; every world makes a schema of its own there.
const postgresVariable = "LIFTLOCK_TEST_POSTGRES"

// newSchema makes an empty schema and returns the address that uses it.
func newSchema(t testing.TB) string {
	t.Helper()
	address := os.Getenv(postgresVariable)
	if address == "" {
		t.Skipf("%s is not set to the URL of a PostgreSQL database", postgresVariable)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatalf("%s: %v", postgresVariable, err)
	}
	db, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf("liftlock_server_%d_%d", os.Getpid(), time.Now().UnixNano())
	exec := func(statement string) {
		if _, err := db.Exec(statement + schema); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	exec("CREATE SCHEMA ")
	t.Cleanup(func() {
		exec("SET client_min_messages = error; DROP SCHEMA IF EXISTS " + schema + " CASCADE; SELECT 1 AS ")
		_ = db.Close() // nothing is read any more
	})
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// startReplica runs one more server on the scene's database, with files of its own, until
// the test's end.
func (s *harness) startReplica(name string) {
	s.t.Helper()
	o := s.serverOptions(zap.NewNop().Core())
	o.Config.Listen, o.Config.DataDir = "127.0.0.1:0", filepath.Join(s.dir, name)
	srv, err := server.New(context.Background(), o)
	s.must("build "+name, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("%s ended: %v", name, err)
		}
	})
}

// The benchmark's forge is far away, as forges are, and a replica has few workers: the
// forge and Argo CD share its processors. There is one repository, whose merges come one
// after the other, whoever makes them.
const (
	replicaPromotions = 60
	replicaLatency    = 50 * time.Millisecond
	replicaWorkers    = 2
)

// BenchmarkReplicas promotes 60 components on one PostgreSQL, by one replica and by three.
func BenchmarkReplicas(b *testing.B) {
	for _, replicas := range []int{1, 3} {
		b.Run(fmt.Sprintf("replicas=%d", replicas), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				promoteWithReplicas(b, replicas)
				b.StartTimer()
			}
		})
	}
}

func promoteWithReplicas(b *testing.B, replicas int) {
	var components []string
	for i := range replicaPromotions {
		components = append(components, fmt.Sprintf("c%03d", i))
	}
	s := newHarness(b, harnessOptions{components: components, store: newSchema(b), seams: server.Seams{Workers: replicaWorkers},
		pipeline: pipelineYAML([]string{"limits: {openPerEnvironment: 1000, mergesPerHour: 10000}"}, dev, qa)})
	s.start()
	for i := 1; i < replicas; i++ {
		s.startReplica(fmt.Sprintf("replica-%d", i))
	}
	s.awaitJudged()
	s.Forge.SetLatency(replicaLatency)
	var pairs []string
	for _, c := range components {
		pairs = append(pairs, c, "1.1.0")
	}
	b.StartTimer()
	s.commitReleases(pairs...)
	s.waitEvery(time.Second, "everything is promoted", func() (bool, string) {
		pulls, err := s.Forge.Pulls(repoName)
		s.must("list the pull requests", err)
		merged := 0
		for _, p := range pulls {
			if p.Merged {
				merged++
			}
		}
		return merged == replicaPromotions, fmt.Sprintf("%d of %d merged", merged, len(pulls))
	})
	b.StopTimer()
	s.stop()
}
