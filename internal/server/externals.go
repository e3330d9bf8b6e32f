package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/controller/charts"
	"github.com/liftlock/liftlock/internal/controller/facts"
	"github.com/liftlock/liftlock/internal/controller/gateclient"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/sandbox"
)

const (
	// sourcesFolder and chartsFolder are the data directory's folders of what renderings read.
	sourcesFolder = "sources"
	chartsFolder  = "charts"
	// sourceTimeout bounds a call to a source's remote but the first, which has git.DefaultTimeout.
	sourceTimeout = 2 * time.Minute
)

// newExternals makes what opens the sources and charts of the server's file, and the tracked
// repositories, for renderings. It asks nobody yet.
func (s *Server) newExternals(children *sandbox.Runner) (*facts.ExternalFiles, error) {
	var sources []facts.ReadOnlySource
	for i := range s.o.Config.Sources {
		g := &s.o.Config.Sources[i]
		sum := sha256.Sum256([]byte(g.URL))
		m, err := git.Open(context.Background(), git.Options{
			Dir: filepath.Join(s.o.Config.DataDir, sourcesFolder, hex.EncodeToString(sum[:8])+".git"), URL: g.URL, CAFile: g.CAFile,
			Credentials: func(context.Context) (string, string, error) { return g.Username, g.Password.Reveal(), nil },
			Caches:      &s.caches, Log: s.log.Named("git"), Now: s.o.Clock.Now, Timeout: sourceTimeout,
			Author: git.Ident{Name: "Liftlock", Email: "liftlock@localhost"}, // nothing is ever written
		})
		if err != nil {
			return nil, fmt.Errorf("the source %s: %w", g.URL, err)
		}
		s.sources = append(s.sources, m)
		sources = append(sources, facts.ReadOnlySource{URL: g.URL, Mirror: m})
	}
	open, err := s.newCharts(children)
	return facts.NewExternalFiles(sources, open, s.o.Clock.Now), err
}

// newCharts makes what fetches charts; nil where the server's file lists none.
func (s *Server) newCharts(children *sandbox.Runner) (render.OpenExternal, error) {
	var hosts []charts.Host
	for i := range s.o.Config.Charts {
		h := &s.o.Config.Charts[i]
		known, err := readCallTLS(&h.TLS)
		if err != nil {
			return nil, fmt.Errorf("the chart repository %s: %w", h.URL, err)
		}
		transport, err := gateclient.NewTransport(known)
		if err != nil {
			return nil, fmt.Errorf("the chart repository %s: %w", h.URL, err)
		}
		hosts = append(hosts, charts.Host{URL: h.URL, Hosts: h.Hosts, Username: h.Username, Password: h.Password.Reveal(), Transport: transport})
	}
	if hosts == nil {
		return nil, nil
	}
	f, err := charts.New(charts.Options{Hosts: hosts, Dir: filepath.Join(s.o.Config.DataDir, chartsFolder), Now: s.o.Clock.Now,
		Find: func(ctx context.Context, index []byte, chart, constraint string) (render.ChartVersion, error) {
			return evaluate.FindChartInWorker(ctx, children, index, chart, constraint)
		}})
	if err != nil {
		return nil, err
	}
	return f.Open, nil
}

// closeSources closes the mirrors of the sources.
func (s *Server) closeSources() {
	var errs []error
	for _, m := range s.sources {
		errs = append(errs, m.Close())
	}
	if err := errors.Join(errs...); err != nil {
		s.log.Warn("a source's mirror did not close cleanly", zap.Error(err))
	}
}
