package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/controller/charts"
	"github.com/liftlock/liftlock/internal/git"
	"github.com/liftlock/liftlock/internal/server/config"
	"github.com/liftlock/liftlock/internal/server/doctor"
)

// reachFrom gives a call a folder of its own, which is removed again. refusals are the errors by which it is refused.
func reachFrom(reach func(ctx context.Context, dir string) error, refusals ...error) func(ctx context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		dir, err := os.MkdirTemp("", "liftlock-doctor-")
		if err != nil {
			return false, fmt.Errorf("there is no folder for what it says (TMPDIR): %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // only read; what is left of it is the system's to remove
		err = reach(ctx, dir)
		return slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) }), err
	}
}

// sourcesForDoctor are the sources of the server's file.
func sourcesForDoctor(all []config.GitSource) (out []doctor.External) {
	for i := range all {
		g := &all[i]
		out = append(out, doctor.External{URL: g.URL, Reach: reachFrom(func(ctx context.Context, dir string) error {
			m, err := git.Open(ctx, sourceOptions(g, filepath.Join(dir, "source.git")))
			if err != nil {
				return err
			}
			_, err = m.RemoteHeads(ctx, "main") // whether it has that branch or not
			return errors.Join(err, m.Close())
		}, git.ErrAuth, git.ErrNoRepository)})
	}
	return out
}

// chartsForDoctor are the chart repositories of the server's file. The error is of one that the server couldn't start
// with either.
func chartsForDoctor(all []config.ChartHost, now func() time.Time) ([]doctor.External, error) {
	hosts, err := chartHosts(all)
	if err != nil {
		return nil, err
	}
	var out []doctor.External
	for _, h := range hosts {
		out = append(out, doctor.External{URL: h.URL, Reach: reachFrom(func(ctx context.Context, dir string) error {
			f, err := charts.New(charts.Options{Hosts: []charts.Host{h}, Dir: dir, Now: now})
			if err != nil {
				return err
			}
			return f.Check(ctx, h.URL)
		}, charts.ErrRefused)})
	}
	return out, nil
}
