package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/liftlock/liftlock/internal/appset/evaluate"
	"github.com/liftlock/liftlock/internal/console/api"
	"github.com/liftlock/liftlock/internal/controller"
	"github.com/liftlock/liftlock/internal/controller/onboard"
	"github.com/liftlock/liftlock/internal/proc"
)

// Limits of the process that makes a proposal. It reads the history and resolves every set several
// times, so that they are wider than those of a pull request's evaluation.
const (
	proposalMemory = 1 << 30
	proposalCPU    = 3 * time.Minute
	proposalTime   = 4 * time.Minute
	proposalFiles  = 1024
	proposalSize   = 1 << 30 // of a file that it writes: objects of trees that it tries
	maxProposal    = 8 << 20 // of its answer
	// proposalGrace lets it remove what it wrote.
	proposalGrace = 2 * time.Second
	// proposalFolder is the data directory's folder of what it writes.
	proposalFolder = "proposal"
)

// proposer makes pipeline files in processes of their own, one at a time: what a repository says is
// read by parsers that a file can have take all memory.
type proposer struct {
	server *Server
	memory uint64
	slot   chan struct{}
	log    *zap.Logger
}

func (s *Server) newProposer() controller.Propose {
	p := &proposer{server: s, memory: cmp.Or(s.o.Seams.Sandbox.Memory, proposalMemory), slot: make(chan struct{}, 1),
		log: s.log.Named("proposals")}
	return p.propose
}

// propose implements controller.Propose.
func (p *proposer) propose(ctx context.Context, q *onboard.Request) (*onboard.Proposal, error) {
	select {
	case p.slot <- struct{}{}:
		defer func() { <-p.slot }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	request := *q
	dir, _ := p.server.mirrorDirs(q.Repository)
	var err error
	if request.GitDir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("find the mirror: %w", err)
	}
	input, err := json.Marshal(&request)
	if err != nil {
		return nil, fmt.Errorf("write down what a pipeline file is proposed for: %w", err)
	}
	answer, err := p.run(ctx, input)
	if err != nil {
		return nil, fmt.Errorf("make the proposal in a process of its own: %w", err)
	}
	out := &onboard.Proposal{}
	if err := json.Unmarshal(answer, out); err != nil {
		return nil, fmt.Errorf("read the proposal: %w", err)
	}
	return out, nil
}

// run runs the process in a folder that is removed after it, with nothing of our environment but where
// git is.
func (p *proposer) run(ctx context.Context, input []byte) (answer []byte, err error) {
	program, err := evaluate.OwnProgram()
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(filepath.Join(p.server.o.Config.DataDir, proposalFolder))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, ownerOnly)); err != nil { // a killed process left one
		return nil, err
	}
	c := proc.Command{Program: program, Args: []string{onboard.Command}, Dir: folder, OnlyEnv: true, Stdin: input,
		MaxStdout: maxProposal, Grace: proposalGrace,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "TMPDIR=" + folder, "LC_ALL=C", "GOTRACEBACK=none", "GOMAXPROCS=2",
			"GOMEMLIMIT=" + strconv.FormatUint(p.memory/4*3, 10)}}
	if proc.CanLimit() {
		c.Limits = proc.Limits{Data: p.memory, CPU: proposalCPU, Files: proposalFiles, Size: proposalSize}
	}
	timed, cancel := context.WithTimeout(ctx, proposalTime)
	defer cancel()
	began := p.server.o.Clock.Now()
	done, err := proc.Run(timed, c)
	p.log.Debug("a process made a proposal", zap.Duration("took", p.server.o.Clock.Now().Sub(began)), zap.Error(err))
	return done.Stdout, err
}

// proposalTroubles are why repositories that are to be proposed a pipeline file aren't.
func proposalTroubles(ctx context.Context, e *controller.Controller) []api.Trouble {
	all, err := e.Onboardings(ctx)
	if err != nil {
		return nil // the database's own trouble is told by whatever else needs it
	}
	var out []api.Trouble
	for repo, o := range all {
		if o.Why != "" {
			out = append(out, api.Trouble{Repository: repo, Part: "pipeline file for " + repo, Message: o.Why, Since: o.Since})
		}
	}
	return out
}
