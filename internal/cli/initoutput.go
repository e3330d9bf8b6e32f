package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/liftlock/liftlock/internal/appset"
	"github.com/liftlock/liftlock/internal/cli/checkout"
	"github.com/liftlock/liftlock/internal/cli/propose"
	"github.com/liftlock/liftlock/internal/pipeline"
)

// proposalAnswer is what init prints for programs: a proposal, or what has to be chosen first.
type proposalAnswer struct {
	File     string           `json:"file,omitempty"`    // where it is written, or would be; from the checkout's root
	Written  bool             `json:"written,omitempty"` // by --write
	Text     string           `json:"text,omitempty"`    // the pipeline file
	Problems []appset.Problem `json:"problems"`
	Notes    []appset.Problem `json:"notes"`
	Choice   *choiceAnswer    `json:"choice,omitempty"` // then something in text is open, and the exit code is 3
}

type choiceAnswer struct {
	Question string           `json:"question"`
	Options  []propose.Option `json:"options"` // the flags of init that choose each
	Seen     []string         `json:"seen,omitempty"`
}

// printProposal gives the proposal as the flags say.
func printProposal(cmd *cobra.Command, dir string, p *checkout.Proposal, write bool, data dataWriter) error {
	if write {
		if err := writeProposal(dir, p.Text); err != nil {
			return err
		}
	}
	if data != nil {
		return data(cmd.OutOrStdout(), proposalAnswer{File: pipeline.FileName, Written: write, Text: string(p.Text),
			Problems: listed(p.Problems), Notes: listed(p.Notes)})
	}
	if write {
		fmt.Fprintf(cmd.OutOrStdout(), "%s is written. Read it, see `liftlock plan`, and commit it; it is in mode: observe.\n",
			filepath.Join(dir, pipeline.FileName))
	} else if _, err := cmd.OutOrStdout().Write(p.Text); err != nil {
		return err
	}
	printNotes(cmd, p.Problems, p.Notes, appset.NameFew)
	return nil
}

// printDraft gives what has to be said, and the pipeline file with the rest. It is written where no flag chooses: else
// init has to make another one.
func printDraft(cmd *cobra.Command, dir string, c *propose.ChoiceError, write bool, data dataWriter) error {
	if write = write && len(c.Options) == 0; write {
		if err := writeProposal(dir, c.Draft); err != nil {
			return err
		}
	}
	if data != nil {
		choice := choiceAnswer{Question: c.Question, Options: listed(c.Options), Seen: c.Seen}
		return data(cmd.OutOrStdout(), proposalAnswer{
			File: pipeline.FileName, Written: write, Text: string(c.Draft), Problems: []appset.Problem{}, Notes: []appset.Problem{},
			Choice: &choice,
		})
	}
	printChoice(cmd, c)
	if write {
		fmt.Fprintf(cmd.OutOrStdout(), "%s is written. What is open in it is marked TODO.\n", filepath.Join(dir, pipeline.FileName))
		return nil
	}
	_, err := cmd.OutOrStdout().Write(c.Draft)
	return err
}

// writeProposal makes the file; one that is there stays.
func writeProposal(dir string, text []byte) error {
	f, err := os.OpenFile(filepath.Join(dir, pipeline.FileName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write the proposal: %w", err)
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(fmt.Errorf("write the proposal: %w", err), f.Close())
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write the proposal: %w", err)
	}
	return nil
}
