package rest

import (
	"slices"

	"github.com/liftlock/liftlock/internal/forge"
)

// AddMissingLabels has a pull request carry labels, by add where some are missing. That goes for
// one that was found, too: a process may have died between opening it and labeling it.
func AddMissingLabels(pr *forge.PullRequest, labels []string, add func(missing ...string) error) error {
	missing := slices.DeleteFunc(slices.Clone(labels), pr.HasLabel)
	if len(missing) == 0 {
		return nil
	}
	if err := add(missing...); err != nil {
		return err
	}
	pr.Labels = append(pr.Labels, missing...)
	slices.Sort(pr.Labels)
	return nil
}
