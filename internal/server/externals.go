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
	"github.com/liftlock/liftlock/internal/controller/facts/branch"
	"github.com/liftlock/liftlock/internal/controller/gateclient"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/manifest/render"
	"github.com/liftlock/liftlock/internal/proc/sandbox"
	"github.com/liftlock/liftlock/internal/server/config"
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
func (s *Server) newExternals(charts *charts.Fetcher) (*branch.ExternalFiles, error) {
	var sources []branch.ReadOnlySource
	for i := range s.o.Config.Sources {
		g := &s.o.Config.Sources[i]
		sum := sha256.Sum256([]byte(g.URL))
		o := sourceOptions(g, filepath.Join(s.o.Config.DataDir, sourcesFolder, hex.EncodeToString(sum[:8])+".git"))
		o.Caches, o.Log, o.Now = &s.caches, s.log.Named("git"), s.o.Clock.Now
		m, err := git.Open(context.Background(), o)
		if err != nil {
			return nil, fmt.Errorf("the source %s: %w", g.URL, err)
		}
		s.sources = append(s.sources, m)
		sources = append(sources, branch.ReadOnlySource{URL: g.URL, Mirror: m})
	}
	var open render.OpenExternal
	if charts != nil {
		open = charts.Open
	}
	return branch.NewExternalFiles(sources, open, s.o.Clock.Now), nil
}

// sourceOptions open a source's mirror in a folder.
func sourceOptions(g *config.GitSource, dir string) git.Options {
	return git.Options{
		Dir: dir, URL: g.URL, CAFile: g.CAFile, Timeout: sourceTimeout,
		Credentials: func(context.Context) (string, string, error) { return g.Username, g.Password.Reveal(), nil },
		Author:      git.Ident{Name: "Liftlock", Email: "liftlock@localhost"}, // nothing is ever written
	}
}

// newCharts makes what fetches charts; nil where the server's file lists none.
func (s *Server) newCharts(children *sandbox.Runner) (*charts.Fetcher, error) {
	hosts, err := chartHosts(s.o.Config.Charts)
	if err != nil || hosts == nil {
		return nil, err
	}
	return charts.New(charts.Options{Hosts: hosts, Dir: filepath.Join(s.o.Config.DataDir, chartsFolder), Now: s.o.Clock.Now,
		Find: func(ctx context.Context, index []byte, chart, constraint string) (render.ChartVersion, error) {
			return evaluate.FindChartInWorker(ctx, children, index, chart, constraint)
		}, List: func(ctx context.Context, index []byte, chart string) ([]string, error) {
			return evaluate.ListChartInWorker(ctx, children, index, chart)
		}})
}

// chartHosts are the chart repositories of the server's file.
func chartHosts(all []config.ChartHost) ([]charts.Host, error) {
	var hosts []charts.Host
	for i := range all {
		h := &all[i]
		known, err := readCallTLS(&h.TLS)
		if err != nil {
			return nil, fmt.Errorf("the chart repository %s: %w", h.URL, err)
		}
		transport, err := gateclient.NewTransport(known)
		if err != nil {
			return nil, fmt.Errorf("the chart repository %s: %w", h.URL, err)
		}
		hosts = append(hosts, charts.Host{URL: h.URL, Hosts: h.Hosts, Username: h.Username, Password: h.Password.Reveal(),
			Transport: transport})
	}
	return hosts, nil
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
