package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/checkout"
	"github.com/liftlock/liftlock/internal/cli/propose"
	"github.com/liftlock/liftlock/internal/controller/onboard"
	"github.com/liftlock/liftlock/internal/controller/plan"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// proposeCommand is what the server starts to have a pipeline file proposed. People have no use for it:
// it speaks only to its parent.
func proposeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    onboard.Command,
		Short:  "Propose a pipeline file for a parent process, over standard input and output",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return ServeProposal(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// ServeProposal reads an [onboard.Request], and writes the [onboard.Proposal] for it.
func ServeProposal(ctx context.Context, in io.Reader, out io.Writer) error {
	var q onboard.Request
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return fmt.Errorf("read what to propose a pipeline file for: %w", err)
	}
	p, err := proposeFor(ctx, &q, time.Now())
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(p)
}

// proposeFor makes a proposal of a server's mirror.
func proposeFor(ctx context.Context, q *onboard.Request, now time.Time) (p *onboard.Proposal, err error) {
	folder, err := os.MkdirTemp("", "liftlock-proposal-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	r, err := checkout.OpenBorrowed(ctx, checkout.Borrowed{GitDir: q.GitDir, Folder: folder, Branch: q.Branch, Heads: q.Heads,
		URLs: q.URLs})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	query := checkout.ProposalQuery{Now: now,
		Known: checkout.Known{Clusters: q.Clusters, Globbing: q.Globbing, Version: q.Version}}
	proposed, err := r.Propose(ctx, query)
	if errors.Is(err, propose.ErrNothingUsable) && len(q.Sets) > 0 {
		query.Live, query.Running = true, q.Sets
		if live, liveErr := r.Propose(ctx, query); !errors.Is(liveErr, propose.ErrNothingUsable) {
			proposed, err = live, liveErr
		}
	}
	return describeProposal(proposed, err)
}

// describeProposal is what a proposal, or why there is none, is for readers of the pull request.
func describeProposal(p *checkout.Proposal, err error) (*onboard.Proposal, error) {
	out := &onboard.Proposal{File: pipeline.FileName}
	var choice *propose.ChoiceError
	switch {
	case errors.As(err, &choice) && choice.Draft != nil:
		out.Text, out.Open = string(choice.Draft), describeChoice(choice)
		describeKnown(out, choice.Known)
		return out, nil
	case errors.Is(err, propose.ErrNothingUsable):
		return &onboard.Proposal{Nothing: err.Error()}, nil
	case err != nil:
		return nil, err
	}
	out.Text = string(p.Text)
	describeKnown(out, p.Known)
	for _, n := range append(p.Problems, p.Notes...) {
		out.Notes = append(out.Notes, n.String())
	}
	if p.PlanError != nil {
		out.PlanErr = p.PlanError.Error()
	}
	if p.Plan != nil {
		describePlan(out, p.Plan)
	}
	return out, nil
}

func describeChoice(c *propose.ChoiceError) *onboard.OpenQuestion {
	open := &onboard.OpenQuestion{Question: c.Question, Seen: c.Seen, Other: c.Other}
	for _, o := range c.Options {
		text := strings.Join(o.Flags, " ") + ": " + o.Meaning
		if o.Example != "" {
			text += "; " + o.Example
		}
		open.Options = append(open.Options, text)
	}
	return open
}

// describeKnown adds what was made out of the repository.
func describeKnown(out *onboard.Proposal, known *propose.Proposal) {
	if known == nil || known.Assignment == nil {
		return
	}
	out.Components, out.Environments = known.Assignment.Components, known.Assignment.Environments
	out.Carry = known.CarryTexts()
	if known.Open.Order == nil {
		out.Steps, out.OrderWhy = known.Steps, known.OrderWhy
	}
	out.Notes = append(out.Notes, known.Notes...)
}

// describePlan adds what would open now, and why nothing else would.
func describePlan(out *onboard.Proposal, p *plan.Plan) {
	for _, part := range p.Pipelines {
		for _, m := range part.Promotions {
			var files []string
			for _, f := range m.Files {
				files = append(files, f.Path)
			}
			for _, moved := range m.Parts {
				out.Promotions = append(out.Promotions, onboard.Promotion{Component: moved.Component, Environment: m.Environment,
					From: moved.From.Name, To: moved.To.Name, Files: files})
			}
		}
		for _, w := range part.Waiting {
			why := w.State
			if len(w.Why) > 0 {
				why = w.Why[0].Text
			}
			out.Waiting = append(out.Waiting, onboard.Waiting{Component: w.Component, Environment: w.Environment, Why: why})
		}
	}
	for _, n := range append(p.Problems, p.Notes...) {
		out.Notes = append(out.Notes, n.String())
	}
	out.Notes = appset.SortedUnique(out.Notes)
}
